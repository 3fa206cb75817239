package bruteforce_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/examples/judges/bruteforce"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// shop sells nodes of 4 cpus: cheap in zone a, and dear in zone b.
func shop(pods ...*corev1.Pod) scheduling.Snapshot {
	small := instancetypes.New("small", nil, amounts("4", "16Gi"), instancetypes.Offer("a", "on-demand", 0.1), instancetypes.Offer("b", "on-demand", 0.5))
	return scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.New("default"), Types: []instancetypes.InstanceType{small}}}, Pods: pods}
}

func several(n int, app string, changes ...func(*corev1.Pod)) (out []*corev1.Pod) {
	for i := range n {
		out = append(out, labelled(fmt.Sprint(app, "-", i), app, "", changes...))
	}
	return out
}

// The search knows the least price in cases that a person can solve.
func TestCheapestNodes(t *testing.T) {
	zone := corev1.LabelTopologyZone
	for _, c := range []struct {
		what     string
		s        scheduling.Snapshot
		counting bruteforce.Counting
		price    float64
	}{
		{"five pods of one cpu need two nodes of four", shop(several(5, "web")...), bruteforce.WithNodes, 0.2},
		{"a zone without nodes is no domain", shop(several(2, "web", spreads(zone, "web", 1))...), bruteforce.WithNodes, 0.1},
		{"a zone for sale is one", shop(several(2, "web", spreads(zone, "web", 1))...), bruteforce.ForSale, 0.6},
		{"but not if zones may be left", shop(several(2, "web", spreads(zone, "web", 1))...), bruteforce.ForSaleButZones, 0.1},
		{"a hostname is always for sale", shop(several(2, "web", spreads(corev1.LabelHostname, "web", 1))...), bruteforce.ForSaleButZones, 0.2},
		{"pods that keep apart by zone", shop(several(2, "web", inAffinity(zone, "web", true))...), bruteforce.WithNodes, 0.6},
	} {
		x := bruteforce.NewSearch(c.s, c.counting, nil, *work)
		a := x.Cheapest(c.s.Pods, bruteforce.Billionths(100))
		require.NotNil(t, a, c.what)
		assert.Equal(t, bruteforce.Billionths(c.price), a.Price, c.what)
		assert.Len(t, a.Pods, len(c.s.Pods), c.what)
	}
}

// More pods of a higher priority come first, whatever that leaves of others.
func TestMostPods(t *testing.T) {
	large := func(priority int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Priority = &priority
			if priority > 0 {
				p.Spec.Containers[0].Resources.Requests = amounts("3", "1Gi")
			}
		}
	}
	s := shop(append(several(2, "large", large(10)), several(4, "small", large(0))...)...)
	s.Pools[0].Limits = corev1.ResourceList{"cpu": resource.MustParse("4")}
	a := bruteforce.NewSearch(s, bruteforce.WithNodes, nil, *work).Most(s.Pods[2:]) // the four small ones
	require.NotNil(t, a)
	assert.Len(t, a.Pods, 2) // a large one, and a small one beside it
	assert.Nil(t, bruteforce.NewSearch(s, bruteforce.WithNodes, nil, *work).Most(a.Pods))
	x := bruteforce.NewSearch(s, bruteforce.WithNodes, nil, 1)
	assert.Nil(t, x.Most(nil))
	assert.Negative(t, x.Left, "it gave up")
}

// Pods may be tied to labels beyond what kube-scheduler looks at.
func TestTiedPods(t *testing.T) {
	s := shop(several(1, "web")...)
	x := bruteforce.NewSearch(s, bruteforce.WithNodes, func(*corev1.Pod) map[string]string { return map[string]string{corev1.LabelTopologyZone: "b"} }, *work)
	assert.Equal(t, bruteforce.Billionths(0.5), x.Cheapest(s.Pods, bruteforce.Billionths(1)).Price)
}
