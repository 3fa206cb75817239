package whatif_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

func leaving(n *corev1.Node) *corev1.Node {
	n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
	return n
}

func zone(z string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: z} }
}

func terminating(p *corev1.Pod) {
	p.DeletionTimestamp = &metav1.Time{}
}

// claim is the claim n of a node in a zone that is not there yet.
func claim(zone string) scheduling.NodeClaim {
	return scheduling.NodeClaim{Name: "n", Labels: map[string]string{corev1.LabelTopologyZone: zone}, Capacity: list("8", "64Gi"), Allocatable: list("8", "64Gi")}
}

// A pod goes only where kube-scheduler lets it whenever the pods and nodes move that move by themselves.
func TestOthersMoveAtAnyMoment(t *testing.T) {
	a, b, c := node("a", "z1", "8"), node("b", "z1", "4"), node("c", "z2", "4")
	zones := spread(corev1.LabelTopologyZone)
	for name, x := range map[string]struct {
		nodes  []*corev1.Node
		claims []scheduling.NodeClaim
		moves  *corev1.Pod
		others []*corev1.Pod // the last moves by itself
		want   []string
	}{
		"it is still in its zone":              {[]*corev1.Node{a, b, c, leaving(node("l", "z1", "4"))}, nil, pod("p", "a", "1", zones), []*corev1.Pod{pod("q", "b", "1"), pod("x", "l", "1", zone("z2"))}, []string{"p>c"}},
		"it is in its next zone already":       {[]*corev1.Node{a, b, c, leaving(node("l", "z1", "4"))}, nil, pod("p", "a", "1", zones), []*corev1.Pod{pod("q", "c", "1"), pod("x", "l", "1", zone("z2"))}, []string{"p>b"}},
		"it moves within its zone":             {[]*corev1.Node{a, b, c, leaving(node("l", "z1", "4"))}, nil, pod("p", "a", "1", zones), []*corev1.Pod{pod("q", "c", "1"), pod("x", "l", "1", zone("z1"))}, []string{"p>b"}},
		"it ends, and is made again there":     {[]*corev1.Node{a, b, node("c", "z2", "0.5"), leaving(node("l", "z1", "4"))}, nil, pod("p", "a", "1", zones), []*corev1.Pod{pod("x", "l", "1", zone("z1"), terminating)}, nil},
		"its node is still a zone":             {[]*corev1.Node{a, b, leaving(node("l", "z3", "4"))}, nil, pod("p", "a", "1", zones), []*corev1.Pod{pod("q", "b", "1"), pod("x", "l", "1", labelled("other"))}, nil},
		"a node will be a zone":                {[]*corev1.Node{a, b}, []scheduling.NodeClaim{claim("z3")}, pod("p", "a", "1", zones), []*corev1.Pod{pod("q", "b", "1"), pod("x", "", "1", labelled("other"))}, nil},
		"what is followed moves":               {[]*corev1.Node{a, b, c, leaving(node("l", "z1", "4"))}, nil, pod("p", "a", "1", near), []*corev1.Pod{pod("x", "l", "1", zone("z2"))}, nil},
		"what is followed is pending":          {[]*corev1.Node{a, b, c}, nil, pod("p", "a", "1", near), []*corev1.Pod{pod("x", "", "1")}, nil},
		"what is followed ends":                {[]*corev1.Node{a, b, c}, nil, pod("p", "a", "1", near), []*corev1.Pod{pod("x", "b", "1", terminating)}, nil},
		"what is followed stays":               {[]*corev1.Node{a, b, c}, nil, pod("p", "a", "1", near), []*corev1.Pod{pod("q", "c", "1"), pod("x", "b", "1", terminating)}, []string{"p>c"}},
		"what is avoided will be there":        {[]*corev1.Node{a, b, c}, nil, pod("p", "a", "1", apart), []*corev1.Pod{pod("x", "", "1", zone("z1"))}, []string{"p>c"}},
		"what is avoided is nominated there":   {[]*corev1.Node{a, b, c}, nil, pod("p", "a", "1", apart), []*corev1.Pod{pod("x", "", "1", func(p *corev1.Pod) { p.Status.NominatedNodeName = "c" })}, []string{"p>b"}},
		"the place of a pending pod is taken":  {[]*corev1.Node{a, b, c}, nil, pod("p", "a", "1", zone("z1")), []*corev1.Pod{pod("x", "", "4", labelled("other"), zone("z1"))}, nil},
		"a pending pod waits for another node": {[]*corev1.Node{a, b, c}, []scheduling.NodeClaim{claim("z1")}, pod("p", "a", "1", zone("z1")), []*corev1.Pod{pod("x", "", "7", labelled("other"), zone("z1"))}, []string{"p>b"}},
	} {
		s := snapshot(x.nodes, append([]*corev1.Pod{x.moves}, x.others...)...)
		s.NodeClaims = x.claims
		compiled, err := whatif.Compile(s, nil)
		require.NoError(t, err, name)
		reserved, _ := compiled.Reserve(x.others[len(x.others)-1:])
		for _, at := range []*whatif.Cluster{reserved, reserved.Rebase()} {
			answer := at.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: s.Pods[:1], Explain: true})
			assert.Equal(t, x.want, places(answer), "%s: %s", name, answer.Why)
		}
		before := compiled.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: s.Pods[:1]})
		again := compiled.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: s.Pods[:1]})
		assert.Equal(t, places(before), places(again), "%s: the version before is unchanged", name)
	}
}

// Pods that move by themselves get places as if all of them had moved, on nodes that are to come, too, and a node that leaves by
// itself cannot be removed.
func TestReserve(t *testing.T) {
	nodes := []*corev1.Node{node("a", "z1", "4"), leaving(node("l", "z2", "4"))}
	x, y, stays := pod("x", "l", "3", apart), pod("y", "", "7"), pod("s", "a", "1")
	s := snapshot(nodes, x, y, stays)
	s.NodeClaims = []scheduling.NodeClaim{claim("z2")}
	c, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	reserved, at := c.Reserve([]*corev1.Pod{x, y, stays})
	assert.Equal(t, []whatif.Placement{{Pod: y, Node: "n"}}, at, "x keeps apart from both")
	for _, name := range []string{"l", "n"} {
		a := reserved.Ask(t.Context(), whatif.Question{Remove: []string{name}, Pods: []*corev1.Pod{y}})
		assert.Equal(t, `there is no node "`+name+`" that could be removed`, a.Why)
	}
	assert.Equal(t, int64(3000), reserved.Free()[0], "n takes only pods that wait for it")
}

// An answer leaves reserved places to their pods: a node is bought only if they are accepted beside it once the pods of the question are there. A
// question that may leave domains may take their places, too.
func TestReservedPlacesAreKept(t *testing.T) {
	host := spread(corev1.LabelHostname)
	o, w, x := pod("o", "a", "2", labelled("other")), pod("w", "a", "1", host), pod("x", "", "1", host)
	s := snapshot([]*corev1.Node{node("a", "z1", "3"), node("b", "z1", "2"), node("c", "z1", "1")}, o, w, x, pod("q", "b", "1", host), pod("r", "c", "1", host))
	s.Pools = []scheduling.Pool{market()}
	c, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	reserved, at := c.Reserve([]*corev1.Pod{x})
	require.Equal(t, []string{"x>b"}, places(whatif.Answer{Placements: at}))
	for _, v := range []*whatif.Cluster{reserved, reserved.Rebase()} {
		q := whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{o}, MaxNodes: 1}
		a := v.Ask(t.Context(), q)
		assert.Equal(t, q.Pods, a.Unplaced)
		assert.Equal(t, "pod shop/x waits for its place on node b, and would not be accepted there", a.Why)
		q.LeaveDomains = true
		a = v.Ask(t.Context(), q)
		assert.True(t, a.OK(), a.Why)
		v = a.After()
		a = v.Ask(t.Context(), whatif.Question{Remove: []string{"c"}, Pods: s.Pods[4:], MaxNodes: 1})
		assert.True(t, a.OK(), "its place is lost already")
	}
	a := reserved.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{o, w}, MaxNodes: 1})
	assert.True(t, a.OK(), "w joins o: %s", a.Why)
}

// Places do not depend on the order of the pods, of which nodes have room for some only, nor on that of the snapshot.
func TestReserveInAnyOrder(t *testing.T) {
	nodes := []*corev1.Node{node("a", "z1", "1"), node("b", "z1", "1"), leaving(node("l", "z2", "4"))}
	pods := []*corev1.Pod{pod("x", "l", "1"), pod("y", "", "1"), pod("z", "l", "1")}
	var want []whatif.Placement
	for turn := range len(pods) {
		pods, nodes = append(pods[1:], pods[0]), append(nodes[1:], nodes[0])
		c, err := whatif.Compile(snapshot(nodes, pods...), nil)
		require.NoError(t, err)
		_, at := c.Reserve(pods)
		require.Len(t, at, 2)
		if turn == 0 {
			want = at
		}
		assert.Equal(t, want, at)
	}
}

// Places are found as if claims had their nodes and terminating pods were gone.
func TestReserveLooksAhead(t *testing.T) {
	q, x := pod("q", "b", "1"), pod("x", "", "10", spread(corev1.LabelTopologyZone)) // larger than n
	s := snapshot([]*corev1.Node{node("b", "z1", "32")}, q, x)
	s.NodeClaims = []scheduling.NodeClaim{claim("z2")}
	ended := snapshot([]*corev1.Node{node("b", "z1", "4")}, pod("q", "b", "1", terminating), pod("x", "", "1", near, labelled("other")))
	for name, s := range map[string]scheduling.Snapshot{"a domain more": s, "the pod that it follows ends": ended} {
		c, err := whatif.Compile(s, nil)
		require.NoError(t, err)
		_, at := c.Reserve(s.Pods[1:])
		assert.Empty(t, places(whatif.Answer{Placements: at}), name)
	}
}

// A node that starts is what its claim promises: the pod that waits for it is kept a place there, and what will be there forbids.
func TestStartingNodesAreWhatTheirClaimsPromise(t *testing.T) {
	start := node("n", "", "8")
	start.Labels = map[string]string{corev1.LabelHostname: "n"}
	start.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}, {Key: "cni.example.com/agent", Effect: corev1.TaintEffectNoSchedule}}
	a, b, c := node("a", "z1", "8"), node("b", "z1", "4"), node("c", "z2", "1")
	promised := claim("z2")
	promised.NodeName, promised.StartupTaints = "n", start.Spec.Taints[1:]
	zonal := func(p *corev1.Pod) {
		apart(p)
		p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = corev1.LabelTopologyZone
	}
	for name, x := range map[string]struct {
		nodes       []*corev1.Node
		moves, runs *corev1.Pod
		want        []string
	}{
		"labels that it will have":              {[]*corev1.Node{a, c, start}, pod("p", "a", "1", zonal), pod("x", "n", "1"), nil},
		"pods that its labels do not count yet": {[]*corev1.Node{a, c, start}, pod("p", "a", "1", near), pod("x", "n", "1"), nil},
		"a domain that it will be":              {[]*corev1.Node{a, b, start}, pod("p", "a", "1", spread(corev1.LabelTopologyZone)), pod("x", "b", "1"), nil},
		"nothing that matters":                  {[]*corev1.Node{a, c, start}, pod("p", "a", "1", zonal), pod("x", "n", "1", labelled("other")), []string{"p>c"}},
	} {
		s := snapshot(x.nodes, x.moves, x.runs)
		s.NodeClaims = []scheduling.NodeClaim{promised}
		cluster, err := whatif.Compile(s, nil)
		require.NoError(t, err, name)
		answer := cluster.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: s.Pods[:1], Explain: true})
		assert.Equal(t, x.want, places(answer), "%s: %s", name, answer.Why)
	}
	waits := pod("x", "", "7", zone("z2"))
	s := snapshot([]*corev1.Node{a, start}, waits)
	s.NodeClaims = []scheduling.NodeClaim{promised}
	cluster, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	_, at := cluster.Reserve(s.Pods)
	assert.Equal(t, []whatif.Placement{{Pod: waits, Node: "n"}}, at)
}

// The pods that DaemonSets are still to start on nodes that are there or to come count as what may be there at any moment.
func TestDaemonsThatAreStillToStart(t *testing.T) {
	zonal := func(term func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			term(p)
			if a := p.Spec.Affinity.PodAntiAffinity; a != nil {
				a.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = corev1.LabelTopologyZone
			}
		}
	}
	for name, x := range map[string]struct {
		claims    []scheduling.NodeClaim
		moves, by func(*corev1.Pod)
		want      []string
	}{
		"avoided on a node to come":    {[]scheduling.NodeClaim{claim("z2")}, zonal(apart), labelled("web"), nil},
		"avoiding from a node to come": {[]scheduling.NodeClaim{claim("z2")}, labelled("web"), func(p *corev1.Pod) { labelled("agent")(p); zonal(apart)(p) }, nil},
		"followed on a node to come":   {[]scheduling.NodeClaim{claim("z2")}, func(p *corev1.Pod) { labelled("job")(p); near(p) }, labelled("web"), nil},
		"avoided on a node":            {nil, apart, labelled("web"), nil},
		"its port":                     {nil, hostPort, func(p *corev1.Pod) { labelled("agent")(p); hostPort(p) }, nil},
		"not selected":                 {[]scheduling.NodeClaim{claim("z2")}, zonal(apart), labelled("agent"), []string{"p>c"}},
	} {
		s := snapshot([]*corev1.Node{node("a", "z1", "8"), node("c", "z2", "4")}, pod("p", "a", "1", x.moves))
		s.NodeClaims = x.claims
		s.DaemonSets = append(s.DaemonSets, agent(x.by))
		c, err := whatif.Compile(s, nil)
		require.NoError(t, err, name)
		for _, at := range []*whatif.Cluster{c, c.Rebase()} {
			a := at.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: s.Pods[:1], Explain: true})
			assert.Equal(t, x.want, places(a), "%s: %s", name, a.Why)
		}
	}
}

// Where pods go depends on the state of the cluster and not on the way there: a node with a reserved place is as full as if the pod
// were there.
func TestReservedPlacesFillNodes(t *testing.T) {
	p, x := pod("p", "r", "1"), pod("x", "", "2", zone("z2"))
	s := snapshot([]*corev1.Node{node("a", "z1", "3"), node("b", "z2", "4"), node("r", "z1", "4")}, p, x)
	compiled, err := whatif.Compile(s, nil)
	require.NoError(t, err)
	reserved, _ := compiled.Reserve([]*corev1.Pod{x})
	for _, at := range []*whatif.Cluster{reserved, reserved.Rebase()} {
		assert.Equal(t, []string{"p>b"}, places(at.Ask(t.Context(), whatif.Question{Remove: []string{"r"}, Pods: []*corev1.Pod{p}})))
	}
}
