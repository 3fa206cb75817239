package scheduling_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// script is a packer that answers by round.
type script func(context.Context, *scheduling.Problem, scheduling.Round) (scheduling.Outcome, error)

func (s script) Pack(ctx context.Context, p *scheduling.Problem, r scheduling.Round) (scheduling.Outcome, error) {
	return s(ctx, p, r)
}

// asPacked is a packer whose nodes are kept.
func asPacked(f packing) packing {
	return func(p *scheduling.Problem, items []scheduling.Item) scheduling.Outcome {
		out := f(p, items)
		out.AsPacked = true
		return out
	}
}

// Every placed pod is bound by the name of its node, whether the node exists, was bought, or is to
// be bought. No name stands for two nodes.
func TestBindingsNameTheirNodes(t *testing.T) {
	big := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("4", "1Gi") }
	labels := map[string]string{nodepool.LabelKey: "default"}
	p := compile(t, scheduling.Snapshot{
		Pods: []*corev1.Pod{pod("a", big), pod("b", big), pod("c", big), pod("d", big)}, Pools: []scheduling.Pool{pool("default")},
		Nodes: []*corev1.Node{node("default-0")},
		NodeClaims: []scheduling.NodeClaim{
			{Name: "default-1", Labels: labels, Allocatable: node("").Status.Allocatable},
			{Name: "default-3", NodeName: "default-0", ProviderID: "i"},
		},
	})
	result := solve(p, func(p *scheduling.Problem, items []scheduling.Item) scheduling.Outcome {
		out := scheduling.Outcome{AsPacked: true, Existing: [][]scheduling.Share{{{Item: 0, Count: 1}}, {{Item: 0, Count: 1}}}}
		for i := range p.Shapes {
			if p.InstanceType(i).Name == "large" {
				bin := scheduling.OutcomeBin{Shape: i, Shares: []scheduling.Share{{Item: 0, Count: 1}}}
				out.Bins = append(out.Bins, bin, bin)
			}
		}
		return out
	})
	got := map[string]scheduling.Binding{}
	for _, b := range result.Bindings() {
		got[b.Node] = b
	}
	require.Len(t, got, 4, "%v", result.Bindings())
	assert.False(t, got["default-1"].New)
	assert.True(t, got["default-1"].InFlight)
	assert.True(t, got["default-0"].InFlight, "it is there, and not initialized")
	assert.True(t, got["default-2"].New)
	assert.True(t, got["default-4"].New, "default-3 is the name of a claim")
	for _, n := range result.NewNodes() {
		assert.Same(t, n.Pods[0], got[n.Name].Pod)
	}
}

// A meaningless answer of a packer is an error, and the packer's own error is passed on.
func TestAnswersOfPackersAreChecked(t *testing.T) {
	p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a")}, Pools: []scheduling.Pool{pool("default")}})
	bin := func(shape, offering, item, count int) scheduling.Outcome {
		return scheduling.Outcome{Bins: []scheduling.OutcomeBin{{Shape: shape, Offering: offering, Shares: []scheduling.Share{{Item: item, Count: count}}}}}
	}
	elsewhere := bin(0, 0, 0, 1)
	elsewhere.Bins[0].Labels = requirements.MustParse(corev1.LabelTopologyZone + "=nowhere")
	for want, o := range map[string]scheduling.Outcome{
		"bin 0: ":                                                  elsewhere,
		"the packer fills 1 existing nodes of 0":                   {Existing: [][]scheduling.Share{{}}},
		"bin 0: there is no offering 0 of shape 7":                 bin(7, 0, 0, 1),
		"bin 0: there is no offering 9 of shape 0":                 bin(0, 9, 0, 1),
		"a count of 1 of item 3, of 1 items, is invalid":           bin(0, 0, 3, 1),
		"a count of -1 of item 0, of 1 items, is invalid":          bin(0, 0, 0, -1),
		"the packer places 2 of item shop/a, but there are only 1": bin(0, 0, 0, 2),
	} {
		_, err := p.Solve(t.Context(), packing(func(*scheduling.Problem, []scheduling.Item) scheduling.Outcome { return o }))
		require.ErrorContains(t, err, "scheduling: round 0: "+want)
	}
	broken := errors.New("broken")
	_, err := p.Solve(t.Context(), script(func(context.Context, *scheduling.Problem, scheduling.Round) (scheduling.Outcome, error) {
		return scheduling.Outcome{}, broken
	}))
	require.ErrorIs(t, err, broken)
}

// The final packing is used only if it places what the first one placed.
func TestTheFinalPackingMustPlaceAll(t *testing.T) {
	for _, c := range []struct {
		shares, offering int
		draft            bool
	}{{2, 0, false}, {1, 0, true}, {2, 1, false}} { // overlooked: the other zone does not suit the pods, so they get a node that does
		here := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-a"} }
		p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a", here), pod("b", here)}, Pools: []scheduling.Pool{pool("default")}})
		r, err := p.Solve(t.Context(), script(func(_ context.Context, _ *scheduling.Problem, r scheduling.Round) (scheduling.Outcome, error) {
			bin := scheduling.OutcomeBin{Shape: 1, Shares: []scheduling.Share{{Item: 0, Count: 2}}}
			if r.Final {
				bin.Shape, bin.Offering, bin.Shares[0].Count = 0, c.offering, c.shares
			}
			return scheduling.Outcome{Bins: []scheduling.OutcomeBin{bin}, AsPacked: true}, nil
		}))
		require.NoError(t, err)
		assert.Equal(t, c.draft, r.Draft)
		assert.Len(t, r.Bindings(), 2)
		assert.Equal(t, map[bool]string{true: "large", false: "small"}[c.draft], r.NewNodes()[0].InstanceType.Name)
	}
}

// When the context ends, the best plan so far remains. Progress is reported after each round.
func TestASearchEndsWithItsContext(t *testing.T) {
	var progress [][3]int
	large := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("7500m", "1Gi") } // more than the first leaves free
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a"), pod("b", large)}, Pools: []scheduling.Pool{pool("default")}}
	p, err := scheduling.Compile(s, &scheduling.Options{Progress: func(rounds, placed, pods int) { progress = append(progress, [3]int{rounds, placed, pods}) }})
	require.NoError(t, err)
	one := script(func(_ context.Context, _ *scheduling.Problem, r scheduling.Round) (scheduling.Outcome, error) {
		if len(r.Items) == 0 {
			return scheduling.Outcome{}, nil
		}
		return scheduling.Outcome{Bins: []scheduling.OutcomeBin{{Shape: 1, Shares: []scheduling.Share{{Item: 0, Count: 1}}}}}, nil
	})
	whole, err := p.Solve(t.Context(), one)
	require.NoError(t, err)
	require.Greater(t, whole.Rounds, 1)
	require.False(t, whole.Stopped)
	require.Len(t, progress, whole.Rounds)
	require.Equal(t, [3]int{1, 1, 2}, progress[0])

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := p.Solve(ctx, one)
	require.NoError(t, err)
	assert.True(t, r.Stopped)
	assert.Equal(t, 1, r.Rounds)
	assert.Len(t, r.Bindings(), 1)
	assert.Len(t, r.Unplaced(), 1)
}

// oneNode is a pool that buys one node.
func oneNode() scheduling.Pool {
	p := pool("default")
	p.Limits = corev1.ResourceList{"nodes": resource.MustParse("1")}
	return p
}

// Attempts that ask for a round that was already packed reuse its outcome.
func TestTheSameIsNotPackedTwice(t *testing.T) {
	whole := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("1500m", "1Gi") } // one a node
	p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a", whole), pod("b", whole)}, Pools: []scheduling.Pool{oneNode()}})
	calls := 0
	r, err := p.Solve(t.Context(), script(func(context.Context, *scheduling.Problem, scheduling.Round) (scheduling.Outcome, error) {
		calls++
		return scheduling.Outcome{Bins: []scheduling.OutcomeBin{{Shares: []scheduling.Share{{Item: 0, Count: 1}}}}}, nil
	}))
	require.NoError(t, err)
	assert.Len(t, r.Bindings(), 1)
	assert.Equal(t, 2, r.Rounds, "of all pods, and of the placed ones alone")
	assert.Equal(t, 4, calls, "and the final packing of each")
}

// For open labels, a node gets what a cloud would choose by default, and the provider is told so.
func TestLabelsOfNewNodes(t *testing.T) {
	const tenancy = "example.com/tenancy"
	types := types()
	for i := range types {
		set, err := types[i].Requirements.Intersect(requirements.MustOf(requirements.In(tenancy, "dedicated", "default")))
		require.NoError(t, err)
		types[i].Requirements = set
	}
	for name, c := range map[string]struct {
		selector map[string]string
		want     string
	}{
		"nobody asks":   {nil, "default"},
		"a pod asks so": {map[string]string{tenancy: "dedicated"}, "dedicated"},
	} {
		t.Run(name, func(t *testing.T) {
			bought := pool("default", func(p *nodepool.NodePool) {
				p.Requirements = requirements.MustParse("team in (blue,red)")
			})
			bought.Types = types
			p := compile(t, scheduling.Snapshot{Pods: []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Spec.NodeSelector = c.selector })}, Pools: []scheduling.Pool{bought}})
			n := solve(p, func(_ *scheduling.Problem, items []scheduling.Item) scheduling.Outcome {
				return scheduling.Outcome{Bins: []scheduling.OutcomeBin{{Labels: items[0].Requires.At(0), Shares: []scheduling.Share{{Item: 0, Count: 1}}}}}
			}).NewNodes()[0]
			assert.Equal(t, c.want, n.Labels[tenancy])
			assert.Equal(t, "blue", n.Labels["team"])
			assert.Equal(t, map[string]string{tenancy: c.want, "team": "blue"}, n.Open.Labels(), "type and offering decide all else")
			assert.Equal(t, c.want, n.Node().Labels[tenancy])
		})
	}
}

// If the first shape of a type does not suit the pod but another does, labels are not the reason.
func TestReasonsOfTypesWithSeveralShapes(t *testing.T) {
	inZoneB := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-b"} }
	p := compile(t, scheduling.Snapshot{
		Pods:  []*corev1.Pod{pod("web", inZoneB)},
		Pools: []scheduling.Pool{pool("default", func(p *nodepool.NodePool) { p.Limits = corev1.ResourceList{"nodes": resource.MustParse("0")} })},
		DaemonSets: []*appsv1.DaemonSet{daemonSet("zonal", "100m", func(d *appsv1.DaemonSet) {
			d.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-a"}
		})},
	})
	reasons := solve(p, nothing).Unplaced()[0].Reasons()
	assert.Equal(t, "the limit of 0 nodes is reached", reasons[0].Detail)
}
