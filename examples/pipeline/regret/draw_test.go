package regret_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// size is an instance type of a drawn market.
type size struct {
	cpu, memory int // cores and GiB that pods can use
	price       float64
}

// drawn is a small history with all that an oracle needs.
type drawn struct {
	history *history.History
	sale    *history.Sale
	sizes   []size
	mixed   bool // some nodes are of other buyers, larger than the catalogue says, or of unknown price, and daemons run
}

const pool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 5m, budgets: [{nodes: "100%"}]}
`

func start() time.Time { return time.Date(2026, 1, 15, 7, 50, 0, 0, time.UTC) }

// market is the sizes for sale in two zones.
func market(t testing.TB, sizes []size) *pipeline.Market {
	t.Helper()
	type requirement struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	}
	type offering struct {
		Price        float64
		Available    bool
		Requirements []requirement
	}
	type instanceType struct {
		Name             string              `json:"name"`
		Architecture     string              `json:"architecture"`
		OperatingSystems []string            `json:"operatingSystems"`
		Resources        corev1.ResourceList `json:"resources"`
		Offerings        []offering          `json:"offerings"`
	}
	var list []instanceType
	for i, s := range sizes {
		x := instanceType{Name: fmt.Sprintf("size-%d", i), Architecture: "amd64", OperatingSystems: []string{"linux"}, Resources: corev1.ResourceList{
			"cpu": resource.MustParse(fmt.Sprint(s.cpu)), "memory": resource.MustParse(fmt.Sprintf("%dGi", s.memory)), "pods": resource.MustParse("20"),
		}}
		for _, zone := range []string{"zone-a", "zone-b"} {
			x.Offerings = append(x.Offerings, offering{s.price, true, []requirement{{"karpenter.sh/capacity-type", "In", []string{"on-demand"}}, {"topology.kubernetes.io/zone", "In", []string{zone}}}})
		}
		list = append(list, x)
	}
	file, err := json.Marshal(list)
	require.NoError(t, err)
	m, err := pipeline.KWOKMarket("drawn", file)
	require.NoError(t, err)
	return m
}

func pod(name, owner string, cpu, memory int) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": owner}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(cpu)), "memory": resource.MustParse(fmt.Sprintf("%dGi", memory))}},
	}}}}
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: "1", Controller: &yes}}
	}
	return p
}

func on(p *corev1.Pod, node string) *corev1.Pod {
	q := *p
	q.Spec.NodeName = node
	return &q
}

func node(name string, i int, s size, zone string, at time.Time) *corev1.Node {
	list := corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(s.cpu)), "memory": resource.MustParse(fmt.Sprintf("%dGi", s.memory)), "pods": resource.MustParse("20")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at), Labels: map[string]string{
			corev1.LabelInstanceTypeStable: fmt.Sprintf("size-%d", i), corev1.LabelTopologyZone: zone, "karpenter.sh/capacity-type": "on-demand", "karpenter.sh/nodepool": "default",
			corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		}},
		Status: corev1.NodeStatus{Capacity: list, Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func pools(t testing.TB) *manifests.Snapshot {
	t.Helper()
	m, err := manifests.Parse([]manifests.File{{Name: "pool.yaml", Data: []byte(pool)}}, nil)
	require.NoError(t, err)
	return m
}

// draw plays a careless policy over random arrivals: it buys any size that holds a pod, lets pods wait, replaces pods, and keeps empty nodes.
func draw(t testing.TB, seed uint64, steps, mostPods int) drawn {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 48))
	var sizes []size
	for range 2 + r.IntN(3) {
		s := size{cpu: 1 << (1 + r.IntN(4)), memory: 2 << r.IntN(5)}
		s.price = float64(s.cpu)*(0.03+0.02*r.Float64()) + float64(s.memory)*(0.004+0.004*r.Float64())
		sizes = append(sizes, s)
	}
	sizes = append(sizes, size{16, 64, 1.2})
	mixed := seed%3 == 2
	type placed struct {
		pod  *corev1.Pod
		node string
	}
	type machine struct {
		node *corev1.Node
		size int
	}
	var pods []placed
	nodes := map[string]machine{}
	made := 0
	var list []history.Observation
	var taken []string
	at := start()
	for step := range steps {
		for range r.IntN(3) {
			if len(pods) < mostPods {
				made++
				p := pod(fmt.Sprintf("p-%d", made), fmt.Sprintf("app-%d", r.IntN(3)), 1+r.IntN(4), 1+r.IntN(8))
				switch r.IntN(6) {
				case 0:
					p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-b"}
				case 1:
					p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
						TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"alone": "yes"}},
					}}}}
					p.Labels["alone"] = "yes"
				}
				pods = append(pods, placed{pod: p})
			}
		}
		pods = slices.DeleteFunc(pods, func(placed) bool { return r.IntN(8) == 0 })
		for i := range pods {
			if pods[i].node != "" && r.IntN(20) == 0 { // evicted, and replaced by its owner
				made++
				q := *pods[i].pod
				q.Name = fmt.Sprintf("p-%d", made)
				pods[i] = placed{pod: &q}
			}
			if pods[i].node != "" || r.IntN(4) == 0 {
				continue
			}
			for name, m := range ordered(nodes) {
				if pods[i].node == "" && holds(sizes[m.size], m.node, pods[i].pod, others(pods, name, func(p placed) (*corev1.Pod, string) { return p.pod, p.node })) {
					pods[i].node = name
				}
			}
			if pods[i].node != "" {
				continue
			}
			for {
				k, zone := r.IntN(len(sizes)), []string{"zone-a", "zone-b"}[r.IntN(2)]
				n := node(fmt.Sprintf("n-%d", made*100+step), k, sizes[k], zone, at)
				if mixed {
					mix(r, n)
				}
				if holds(sizes[k], n, pods[i].pod, nil) {
					made++
					nodes[n.Name], pods[i].node = machine{n, k}, n.Name
					break
				}
			}
		}
		if seed%4 == 1 && r.IntN(4) == 0 { // the cloud takes a machine back, and its pods get successors
			for name := range ordered(nodes) {
				delete(nodes, name)
				taken = append(taken, name)
				for i := range pods {
					if pods[i].node == name {
						made++
						q := *pods[i].pod
						q.Name = fmt.Sprintf("p-%d", made)
						pods[i] = placed{pod: &q}
					}
				}
				break
			}
		}
		for name := range ordered(nodes) {
			if len(others(pods, name, func(p placed) (*corev1.Pod, string) { return p.pod, p.node })) == 0 && r.IntN(3) == 0 {
				delete(nodes, name)
			}
		}
		o := history.Observation{At: at, TakenBack: taken}
		for _, p := range pods {
			o.Pods = append(o.Pods, on(p.pod, p.node))
		}
		for name, m := range ordered(nodes) {
			o.Nodes = append(o.Nodes, m.node)
			if mixed {
				d := pod("daemon-"+name, "", 0, 0)
				yes := true
				d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "2", Controller: &yes}}
				o.Pods = append(o.Pods, on(d, name))
			}
		}
		list = append(list, o)
		at = at.Add(time.Duration(1+r.IntN(12)) * 97 * time.Second)
	}
	h, err := history.New(pools(t), list, at)
	require.NoError(t, err)
	sale, err := h.Sale(market(t, sizes))
	require.NoError(t, err)
	return drawn{h, sale, sizes, mixed}
}

// mix makes the node one of a node group, one with more for pods than the catalogue says, or one of a type that nobody knows.
func mix(r *rand.Rand, n *corev1.Node) {
	switch r.IntN(5) {
	case 0:
		delete(n.Labels, "karpenter.sh/nodepool")
		n.Labels["eks.amazonaws.com/nodegroup"] = "group"
	case 1:
		n.Status.Allocatable = n.Status.Allocatable.DeepCopy()
		n.Status.Allocatable["cpu"] = resource.MustParse(fmt.Sprint(n.Status.Allocatable.Cpu().Value() + 2))
		n.Status.Capacity = n.Status.Allocatable
	case 2:
		n.Labels[corev1.LabelInstanceTypeStable] = "unknown"
	}
}

func ordered[V any](m map[string]V) func(func(string, V) bool) {
	return func(yield func(string, V) bool) {
		var names []string
		for name := range m {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if v, ok := m[name]; ok && !yield(name, v) {
				return
			}
		}
	}
}

func others[P any](pods []P, node string, of func(P) (*corev1.Pod, string)) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range pods {
		if q, at := of(p); at == node {
			out = append(out, q)
		}
	}
	return out
}

// holds reports whether a node of a size holds a pod beside others.
func holds(s size, n *corev1.Node, p *corev1.Pod, beside []*corev1.Pod) bool {
	if zone := p.Spec.NodeSelector[corev1.LabelTopologyZone]; zone != "" && zone != n.Labels[corev1.LabelTopologyZone] {
		return false
	}
	s.cpu = int(n.Status.Allocatable.Cpu().Value())
	return fit(s, append([]*corev1.Pod{p}, beside...))
}

// fit reports whether the pods fit a node of the size together.
func fit(s size, pods []*corev1.Pod) bool {
	cpu, memory, alone := 0, 0, 0
	for _, p := range pods {
		list := p.Spec.Containers[0].Resources.Requests
		cpu += int(list.Cpu().Value())
		memory += int(list.Memory().Value() >> 30)
		if p.Labels["alone"] != "" {
			alone++
		}
	}
	return cpu <= s.cpu && memory <= s.memory && alone <= 1
}

// optimum is the least price of nodes that hold the pods, over all ways to divide them.
func optimum(sizes []size, pods []*corev1.Pod) float64 {
	all := 1<<len(pods) - 1
	alone := make([]float64, all+1) // of a set on one node
	for set := 1; set <= all; set++ {
		var list []*corev1.Pod
		for i, p := range pods {
			if set>>i&1 == 1 {
				list = append(list, p)
			}
		}
		alone[set] = 1e9
		for _, s := range sizes {
			if fit(s, list) { // zones sell the same at the same prices, and no pod is bound to zone-a
				alone[set] = min(alone[set], s.price)
			}
		}
	}
	best := make([]float64, all+1)
	for set := 1; set <= all; set++ {
		best[set] = 1e9
		for sub := set; sub > 0; sub = (sub - 1) & set {
			best[set] = min(best[set], alone[sub]+best[set^sub])
		}
	}
	return best[all]
}
