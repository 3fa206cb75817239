package bruteforce

import (
	"maps"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// limitNodes is the limit of a pool's number of nodes.
const limitNodes = "nodes"

// Offer is one way to buy a node.
type Offer struct {
	// Pool is an index into the snapshot's pools.
	Pool int
	// Price is in billionths of a dollar an hour.
	Price int64
	// Node is the node as it registers, and Daemons are the pods of DaemonSets there.
	Node    *corev1.Node
	Daemons []*corev1.Pod
}

// Billionths returns an amount of dollars in the unit of [Offer].
func Billionths(dollars float64) int64 { return int64(math.Round(dollars * 1e9)) }

// Offers returns all ways to buy a node: one for each pool, type, zone, capacity type and value of
// a label that the pool leaves open.
func Offers(s scheduling.Snapshot) []Offer {
	var out []Offer
	for i := range s.Pools {
		p := &s.Pools[i]
		for _, t := range p.Types {
			for _, o := range t.Offerings {
				labels := map[string]string{nodepool.LabelKey: p.Name}
				for _, more := range []map[string]string{t.Requirements.Labels(), o.Requirements.Labels(), p.Labels} {
					maps.Copy(labels, more)
				}
				for _, labels := range openLabels(p, labels) {
					if o.Available && allows(p, labels) {
						n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: t.Name, Labels: labels}}
						n.Spec.Taints = p.Taints
						n.Status.Capacity, n.Status.Allocatable = t.Capacity, t.Allocatable()
						out = append(out, Offer{Pool: i, Price: Billionths(o.Price), Node: n, Daemons: daemons(s.DaemonSets, n)})
					}
				}
			}
		}
	}
	return out
}

func daemons(sets []*appsv1.DaemonSet, n *corev1.Node) (out []*corev1.Pod) {
	for _, set := range sets {
		if pod := DaemonPod(set, n); pod != nil {
			out = append(out, pod)
		}
	}
	return out
}

// openLabels are the choices of values for labels that only the pool's requirements name.
func openLabels(p *scheduling.Pool, labels map[string]string) []map[string]string {
	out := []map[string]string{labels}
	for r := range p.Requirements.All() {
		values, some := r.Values()
		if _, has := labels[r.Key()]; has || !some {
			continue
		}
		var next []map[string]string
		for _, value := range values {
			for _, more := range out {
				more = maps.Clone(more)
				more[r.Key()] = value
				next = append(next, more)
			}
		}
		out = next
	}
	return out
}

func allows(p *scheduling.Pool, labels map[string]string) bool {
	for r := range p.Requirements.All() {
		value, has := labels[r.Key()]
		if has && !r.Contains(value) || !has && !r.AllowsAbsent() {
			return false
		}
	}
	return true
}

// DaemonPod returns the pod of a DaemonSet on a node, or nil if the node gets none: it must match
// the pod's node affinity, and the pod must tolerate its taints.
func DaemonPod(set *appsv1.DaemonSet, n *corev1.Node) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: set.Name + "-" + n.Name, Labels: set.Spec.Template.Labels,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name, UID: set.UID, Controller: &yes}},
	}, Spec: *set.Spec.Template.Spec.DeepCopy()}
	if !matchesNode(&pod.Spec, n) || !toleratesAll(pod.Spec.Tolerations, n.Spec.Taints) {
		return nil
	}
	pod.Spec.NodeName = n.Name
	return pod
}

// Budget is what a pool may still buy. A negative number means any amount.
type Budget struct{ Nodes, CPU int64 }

// Budgets returns what the pools may still buy, beside their existing nodes.
func Budgets(s scheduling.Snapshot) []Budget {
	out := make([]Budget, len(s.Pools))
	for i := range s.Pools {
		b := Budget{Nodes: -1, CPU: -1}
		nodes, cpu := int64(0), int64(0)
		for _, n := range s.Nodes {
			if n.Labels[nodepool.LabelKey] == s.Pools[i].Name {
				nodes, cpu = nodes+1, cpu+n.Status.Capacity.Cpu().MilliValue()
			}
		}
		if most, limited := s.Pools[i].Limits[limitNodes]; limited {
			b.Nodes = max(0, most.Value()-nodes)
		}
		if most, limited := s.Pools[i].Limits[corev1.ResourceCPU]; limited {
			b.CPU = max(0, most.MilliValue()-cpu)
		}
		out[i] = b
	}
	return out
}

// Take returns the budget after one more node, and whether it allows that.
func (b Budget) Take(n *corev1.Node) (Budget, bool) {
	if b.Nodes >= 0 {
		if b.Nodes--; b.Nodes < 0 {
			return b, false
		}
	}
	if b.CPU >= 0 {
		if b.CPU -= n.Status.Capacity.Cpu().MilliValue(); b.CPU < 0 {
			return b, false
		}
	}
	return b, true
}

// IsOffer reports whether a planned node is for sale at its price.
func IsOffer(offers []Offer, s scheduling.Snapshot, n *scheduling.NewNode) bool {
	registered := n.Node()
	for i := range offers {
		o := &offers[i]
		same := s.Pools[o.Pool].Name == n.Pool.Name && o.Price == Billionths(n.PricePerHour)
		for key, value := range o.Node.Labels {
			same = same && registered.Labels[key] == value
		}
		for name, q := range o.Node.Status.Allocatable {
			have := registered.Status.Allocatable[name]
			same = same && have.Cmp(q) == 0
		}
		if same {
			return true
		}
	}
	return false
}
