package bind_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

const zone = corev1.LabelTopologyZone

// apart is a pod that keeps away from others of its app, by a label of nodes.
func apart(key string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "web"}}}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}}}
	return p
}

// cluster is a node in each zone, with four units free, and what a pod of the class asks of others.
func cluster(t testing.TB, pods []*corev1.Pod, classes []*bind.Class, taints []corev1.Taint, zones ...string) (*bind.Cluster, []*bind.Node) {
	t.Helper()
	x := interpod.NewIndex(requirements.Aliases{}, nil, false)
	for i, p := range pods {
		all, err := x.Read(p, requirements.AnyOf(requirements.Set{}))
		require.NoError(t, err)
		classes[i].Constraints, _ = all.Split()
	}
	for i, p := range pods {
		x.Join(&classes[i].Constraints, p)
	}
	var asked requirements.Keys
	for i, c := range classes {
		if c.Number = i; c.Required.IsZero() {
			c.Required = requirements.AnyOf(requirements.Set{})
		}
		asked = asked.Union(c.Required.Keys())
	}
	out := bind.New(x, asked)
	var nodes []*bind.Node
	for i, z := range zones {
		n := &bind.Node{Free: []int64{4, 4}}
		out.Describe(n, map[string]string{zone: z, corev1.LabelHostname: fmt.Sprintf("n%d", i)}, taints)
		nodes = append(nodes, n)
	}
	out.Start()
	for _, n := range nodes {
		out.CountNode(n, 1)
	}
	return out, nodes
}

func ExampleCluster() {
	web := &bind.Class{Need: []int64{3, 1}}
	c, nodes := cluster(&testing.T{}, []*corev1.Pod{apart(zone)}, []*bind.Class{web}, nil, "a", "a", "b")
	for _, n := range nodes {
		r := c.Check(web, n)
		fmt.Println(r.OK(), r.By == bind.Interpod)
		if r.OK() {
			c.Add(web, n, false)
		}
	}
	// Output:
	// true false
	// false true
	// true false
}

func TestWhatKeepsAPodOut(t *testing.T) {
	port := hostport.Port{IP: "0.0.0.0", Protocol: corev1.ProtocolTCP, Number: 80}
	spot := []corev1.Taint{{Key: "spot", Effect: corev1.TaintEffectNoSchedule}}
	for name, c := range map[string]struct {
		class  bind.Class
		taints []corev1.Taint
		there  []bind.Class
		want   bind.Refusal
	}{
		"nothing":            {class: bind.Class{Need: []int64{4, 4}}},
		"another zone":       {class: bind.Class{Required: requirements.AnyOf(requirements.MustParse(zone + "=b"))}, want: bind.Refusal{By: bind.Labels}},
		"a taint":            {taints: spot, want: bind.Refusal{By: bind.Labels}},
		"a tolerated taint":  {taints: spot, class: bind.Class{Tolerations: []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}}},
		"the second is full": {class: bind.Class{Need: []int64{1, 2}}, there: []bind.Class{{Need: []int64{3, 3}}}, want: bind.Refusal{By: bind.Free, Resource: 1}},
		"needs none of it":   {class: bind.Class{Need: []int64{0, 0}}, there: []bind.Class{{Need: []int64{9, 9}}}},
		"a port":             {class: bind.Class{Ports: []hostport.Port{port}}, there: []bind.Class{{Ports: []hostport.Port{port}}}, want: bind.Refusal{By: bind.Ports, Port: port}},
		"a volume of two": {
			class: bind.Class{Need: []int64{3, 0}, Shared: []bind.Shared{{Name: "v", Resource: 0}, {Name: "w", Resource: 0}}},
			there: []bind.Class{{Need: []int64{2, 0}, Shared: []bind.Shared{{Name: "v", Resource: 0}}}},
		},
		"a volume that is there, beside too many": {
			class: bind.Class{Need: []int64{1, 0}, Shared: []bind.Shared{{Name: "v", Resource: 0}}},
			there: []bind.Class{{Need: []int64{9, 0}, Shared: []bind.Shared{{Name: "v", Resource: 0}}}},
		},
		"no volume in common": {
			class: bind.Class{Need: []int64{3, 0}, Shared: []bind.Shared{{Name: "w", Resource: 0}}},
			there: []bind.Class{{Need: []int64{2, 0}, Shared: []bind.Shared{{Name: "v", Resource: 0}}}}, want: bind.Refusal{By: bind.Free},
		},
	} {
		t.Run(name, func(t *testing.T) {
			classes := []*bind.Class{&c.class}
			for i := range c.there {
				classes = append(classes, &c.there[i])
			}
			all, nodes := cluster(t, nil, classes, c.taints, "a")
			for i := range c.there {
				all.Add(&c.there[i], nodes[0], false)
			}
			assert.Equal(t, c.want, all.Check(&c.class, nodes[0]))
			assert.Equal(t, c.want, all.Clone().Check(&c.class, nodes[0]))
		})
	}
}

// Removing a pod undoes adding it.
func TestRemoveUndoesAdd(t *testing.T) {
	web := &bind.Class{Need: []int64{1, 1}, Ports: []hostport.Port{{IP: "0.0.0.0", Protocol: corev1.ProtocolTCP, Number: 80}}}
	c, nodes := cluster(t, []*corev1.Pod{apart(corev1.LabelHostname)}, []*bind.Class{web}, nil, "a")
	before := *nodes[0]
	before.Free = []int64{4, 4}
	own := c.Clone()
	own.Add(web, nodes[0], false)
	assert.Equal(t, bind.Ports, own.Check(web, nodes[0]).By)
	assert.Equal(t, int32(0), c.State.Members(0, nodes[0].Values[0]), "a clone counts by itself")
	own.Release(web, nodes[0])
	own.Count(web, nodes[0], false, -1)
	assert.Empty(t, nodes[0].Ports)
	assert.Equal(t, before.Free, nodes[0].Free)
	assert.True(t, own.Check(web, nodes[0]).OK())
}

// Daemons take what was left for them; those that cannot start are not counted.
func TestDaemonsStart(t *testing.T) {
	web, agent := &bind.Class{Need: []int64{1, 1}}, &bind.Class{Need: []int64{2, 2}}
	pods := []*corev1.Pod{apart(corev1.LabelHostname), apart(corev1.LabelHostname)}
	c, nodes := cluster(t, pods, []*bind.Class{web, agent}, nil, "a", "b", "c")
	plain := &bind.Class{Need: []int64{1, 0}}
	nodes[0].Free, nodes[1].Free = []int64{0, 0}, []int64{-1, 0}
	c.Add(web, nodes[2], false)
	for i, want := range [][2][]*bind.Class{{{agent}, nil}, {nil, {agent}}, {nil, nil}} { // plain is not counted; no space; kept away
		daemons := []*bind.Class{plain, agent}
		if i > 0 {
			daemons = daemons[1:]
		}
		counted, late := c.StartDaemons(daemons, nodes[i])
		assert.Equal(t, want, [2][]*bind.Class{counted, late})
	}
	assert.Equal(t, []int64{0, 0}, nodes[0].Free, "what was left for them is theirs")
	assert.Equal(t, bind.Interpod, c.Check(&bind.Class{Number: web.Number, Constraints: web.Constraints, Required: web.Required}, nodes[0]).By)
}

// A daemon that only lacks room keeps its needs and its ports. One whose port is taken, or that other pods keep away, leaves its needs.
func TestWhatDaemonsKeep(t *testing.T) {
	port := []hostport.Port{{IP: hostport.AnyAddress, Protocol: corev1.ProtocolTCP, Number: 9100}}
	web, agent := &bind.Class{Need: []int64{1, 1}, Ports: port}, &bind.Class{Need: []int64{2, 2}, Ports: port}
	c, nodes := cluster(t, []*corev1.Pod{{}, {}}, []*bind.Class{web, agent}, nil, "a", "b", "c")
	nodes[1].Free, nodes[2].Free = []int64{-1, 4}, []int64{1, 1}
	nodes[2].Ports = port
	for i, want := range [][]int64{{4, 4}, {-1, 4}, {3, 3}} { // it starts; it is short; its port is taken
		assert.Equal(t, want, c.Unreserved([]*bind.Class{agent}, nodes[i]))
		_, late := c.StartDaemons([]*bind.Class{agent}, nodes[i])
		assert.Equal(t, i == 1, len(late) == 1)
		assert.Equal(t, bind.Ports, c.Alone(&bind.Class{Number: web.Number, Required: web.Required, Ports: port}, nodes[i]).By)
	}
}

// A daemon without room may be there or not: a pod neither follows it nor goes where it keeps the pod away.
func TestLateDaemons(t *testing.T) {
	near := apart(zone)
	near.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: near.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution}
	near.Spec.Affinity.PodAntiAffinity = nil
	for name, pod := range map[string]*corev1.Pod{"keeps away": apart(zone), "follows": near} {
		t.Run(name, func(t *testing.T) {
			web, agent := &bind.Class{Need: []int64{1, 1}}, &bind.Class{Need: []int64{2, 2}}
			plain := &corev1.Pod{ObjectMeta: pod.ObjectMeta}
			c, nodes := cluster(t, []*corev1.Pod{pod, plain}, []*bind.Class{web, agent}, nil, "a", "b")
			c.CountLate([][]*bind.Class{{agent}, nil}, func(i int) *bind.Node { return nodes[i] })
			assert.Equal(t, bind.Interpod, c.Check(web, nodes[0]).By)
			assert.Equal(t, name == "keeps away", c.Check(web, nodes[1]).OK())
		})
	}
}
