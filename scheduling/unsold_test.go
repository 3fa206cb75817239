package scheduling_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// With pools that buy nothing for pods and no node, the reason is why, and not that there is no pool.
func TestPoolsThatBuyNothing(t *testing.T) {
	static := func(p *nodepool.NodePool) { p.Replicas = new(int64(2)) }
	leaving := func(p *nodepool.NodePool) { p.Metadata.DeletionTimestamp = &metav1.Time{} }
	for want, pools := range map[string][]scheduling.Pool{
		"there is neither a pool nor a node":                                                                           nil,
		"pool s keeps a fixed number of nodes and buys none for pods, and no node takes pods":                          {pool("s", static)},
		"pool l is being deleted, and no node takes pods":                                                              {pool("l", leaving)},
		"pool s keeps a fixed number of nodes and buys none for pods, pool l is being deleted, and no node takes pods": {pool("l", leaving), pool("s", static)},
	} {
		p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a")}, Pools: pools})
		unplaced := solve(p, nothing).Unplaced()
		require.Len(t, unplaced, 1, want)
		reasons := unplaced[0].Reasons()
		require.Len(t, reasons, 1, want)
		assert.Equal(t, want, reasons[0].Detail)
	}
}

// An offering whose labels cannot be those of any node is not for sale, whether it contradicts its
// type, its pool, or only both together. The other offerings are bought all the same.
func TestContradictoryOfferingsAreNotForSale(t *testing.T) {
	for name, c := range map[string]struct {
		pool, typ, offering, note string
	}{
		"zone of type and offering":          {"", "topology.kubernetes.io/zone in (z)", "topology.kubernetes.io/zone in (a)", "offering 0 contradicts the type and is not for sale: requirements: topology.kubernetes.io/zone"},
		"capacity type of type and offering": {"", "karpenter.sh/capacity-type in (spot)", "karpenter.sh/capacity-type in (on-demand)", "karpenter.sh/capacity-type"},
		"label that no pod asks about":       {"", "x in (1)", "!x", "offering 0 contradicts the type"},
		"impossible offering":                {"", "", "impossible()", "offering 0 contradicts the type"},
		"pool and offering":                  {"x in (1)", "", "x in (2)", ""},
		"all three together":                 {"x in (1,2)", "x in (2,3)", "x in (1,3)", ""},
	} {
		parse := func(text string) requirements.Set {
			if text == "impossible()" {
				return requirements.Impossible()
			}
			return requirements.MustParse(text)
		}
		of := func(name, labels string, offers ...string) instancetypes.InstanceType {
			out := instancetypes.InstanceType{Name: name, Requirements: parse(labels), Capacity: list("4", "8Gi")}
			out.Capacity["pods"] = list("9", "1Gi")["cpu"]
			for _, o := range offers {
				out.Offerings = append(out.Offerings, instancetypes.Offering{Requirements: parse(o), Price: 1, Available: true})
			}
			return out
		}
		from := pool("default")
		from.Types = []instancetypes.InstanceType{of("bad", c.typ, c.offering), of("good", "", "x in (1)")}
		from.Requirements = parse(c.pool)
		p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a")}, Pools: []scheduling.Pool{from}})
		require.Len(t, p.Shapes, 1, name)
		assert.Equal(t, "good", p.InstanceType(0).Name, name)
		_, err := p.NodeLabels(0, 0)
		require.NoError(t, err)
		if c.note == "" {
			assert.Empty(t, p.Notes, name)
		} else if assert.Len(t, p.Notes, 1, name) {
			assert.Contains(t, p.Notes[0], "instance type bad: ")
			assert.Contains(t, p.Notes[0], c.note)
		}
	}
}

// A reason names a large enough type that is sold out.
func TestSoldOutTypesAreNamed(t *testing.T) {
	gpu := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = list("1", "1Gi")
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": list("2", "1Gi")["cpu"]}
	}
	from := pool("default")
	with := list("8", "32Gi")
	with["pods"], with["example.com/gpu"] = list("9", "1Gi")["cpu"], list("4", "1Gi")["cpu"]
	offering := instancetypes.Offering{Requirements: requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=a"), Price: 1}
	from.Types = append(from.Types, instancetypes.InstanceType{Name: "g.8", Capacity: with, Offerings: []instancetypes.Offering{offering}})
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a", gpu)}, Pools: []scheduling.Pool{from}}
	assert.Contains(t, solve(compile(t, s), nothing).Unplaced()[0].Reasons()[0].String(), "all lack example.com/gpu; g.8 would fit, but is not available now")
	s.Pools[0].Types[len(from.Types)-1].Offerings[0].Full = true
	assert.Contains(t, solve(compile(t, s), nothing).Unplaced()[0].Reasons()[0].String(), "all lack example.com/gpu; g.8 would fit, but is sold out")
	s.Pools[0].Types[len(from.Types)-1].Capacity = list("8", "32Gi")
	assert.Contains(t, solve(compile(t, s), nothing).Unplaced()[0].Reasons()[0].String(), "no type of this catalogue has enough of it")
}

// A pool that sells nothing says whether its types are sold out, not available, or without a price.
func TestWhatAPoolLacksToSell(t *testing.T) {
	type offers []instancetypes.Offering
	with := func(available, full bool, price float64) instancetypes.Offering {
		return instancetypes.Offering{Available: available, Full: full, Price: price}
	}
	for want, list := range map[string]offers{
		"all of its offerings are sold out":                      {instancetypes.Offer("a", "spot", 1).Stock("", 0), instancetypes.Offer("b", "spot", 1).Stock("s", 0)},
		"all of its offerings are not available now":             {with(false, false, 1), with(false, false, 2)},
		"all of its offerings are sold out or not available now": {with(false, false, 1), with(false, true, 1)},
		"all of its offerings are without a price":               {with(true, false, math.NaN()), with(true, false, math.Inf(1))},
		"all of its types are without offerings":                 nil,
	} {
		from := pool("default")
		for i := range from.Types {
			from.Types[i].Offerings = list
		}
		s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a")}, Pools: []scheduling.Pool{from}}
		assert.Equal(t, want, solve(compile(t, s), nothing).Unplaced()[0].Reasons()[0].Detail)
	}
}

// Who asks for a shape, an offering or a class that does not exist learns how many there are.
func TestWrongIndexesAreNamed(t *testing.T) {
	p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a")}, Pools: []scheduling.Pool{pool("default")}})
	n := len(p.Shapes)
	offerings := len(p.Shapes[0].Offerings)
	for _, i := range []int{-1, n, n + 7} {
		want := fmt.Sprintf("scheduling: there is no shape %d; there are %d", i, n)
		assert.PanicsWithValue(t, want, func() { p.InstanceType(i) })
		assert.PanicsWithValue(t, want, func() { p.Daemons(i) })
		assert.PanicsWithValue(t, want, func() { _, _ = p.NodeLabels(i, 0) })
	}
	assert.PanicsWithValue(t, fmt.Sprintf("scheduling: there is no offering %d; there are %[1]d", offerings), func() { _, _ = p.NodeLabels(0, offerings) })
	assert.PanicsWithValue(t, "scheduling: there is no class 1; there are 1", func() { p.PodPrice(1) })
	assert.PanicsWithValue(t, "scheduling: there is no class -1; there are 1", func() { p.PodPrice(-1) })
}
