package bruteforce_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/bruteforce"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Labels and the namespace of drawn problems.
const (
	namespace = "shop"
	// labelRack is a label of some pools and nodes. A pool may leave its value open.
	labelRack = "example.com/rack"
	// labelGeneration is a label of instance types.
	labelGeneration = "example.com/generation"
	// labelRevision differs between the pods of some workloads.
	labelRevision = "revision"
)

type drawer struct {
	r *rand.Rand
	// rich multiplies the probability of each feature of a pod.
	rich  float64
	zones []string
	apps  int
	s     scheduling.Snapshot
}

// draw returns the problem of a seed: at most three nodes with their pods, two pools of at most
// five instance types, and one to six pending pods.
func draw(seed uint64) scheduling.Snapshot {
	d := drawer{r: rand.New(rand.NewPCG(seed, 21))}
	d.rich = pick(&d, 0.2, 0.5, 1, 1.7)
	d.zones = []string{"a", "b", "c"}[:1+d.r.IntN(3)]
	d.apps = 1 + d.r.IntN(3)
	types := d.types()
	for i := range 1 + d.r.IntN(2) {
		d.s.Pools = append(d.s.Pools, d.pool(i, types))
	}
	if d.chance(0.2) {
		d.s.DaemonSets = append(d.s.DaemonSets, d.daemonSet())
	}
	for i := range d.r.IntN(4) {
		d.node(i, types)
	}
	d.pending()
	for _, name := range slices.Sorted(maps.Keys(priorities())) {
		d.s.PriorityClasses = append(d.s.PriorityClasses, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: priorities()[name]})
	}
	return d.s
}

func pick[T any](d *drawer, of ...T) T { return of[d.r.IntN(len(of))] }

func (d *drawer) chance(p float64) bool { return d.r.Float64() < p }

// feature is chance for what makes a problem rich.
func (d *drawer) feature(p float64) bool { return d.chance(min(0.9, p*d.rich)) }

func (d *drawer) zone() string { return pick(d, d.zones...) }

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func (d *drawer) types() []instancetypes.InstanceType {
	var out []instancetypes.InstanceType
	zonal := d.chance(0.5)
	for i := range 2 + d.r.IntN(4) {
		size := pick(d, 1, 2, 2, 4, 4, 8)
		capacity := amounts(fmt.Sprint(size), fmt.Sprintf("%dGi", size*pick(d, 2, 4, 4, 8)))
		if d.chance(0.1) {
			capacity[corev1.ResourcePods] = resource.MustParse(pick(d, "2", "3"))
		}
		base := size*40 + d.r.IntN(31) - 10
		var offers []instancetypes.Offering
		for _, zone := range d.zones {
			price := base
			if zonal {
				price += d.r.IntN(21) - 10
			}
			if d.chance(0.85) {
				offers = append(offers, instancetypes.Offer(zone, instancetypes.CapacityTypeOnDemand, float64(price)/1000))
			}
			if d.chance(0.45) {
				offers = append(offers, instancetypes.Offer(zone, instancetypes.CapacityTypeSpot, float64(price*(3+d.r.IntN(5))/10)/1000))
			}
		}
		if len(offers) == 0 {
			offers = append(offers, instancetypes.Offer(d.zones[0], instancetypes.CapacityTypeOnDemand, float64(base)/1000))
		}
		labels := map[string]string{labelGeneration: pick(d, "3", "4", "5")}
		out = append(out, instancetypes.New(fmt.Sprintf("t%d-%d", i, size), labels, capacity, offers...))
	}
	return out
}

func (d *drawer) pool(i int, types []instancetypes.InstanceType) scheduling.Pool {
	var rs []requirements.Requirement
	if d.chance(0.15) {
		rs = append(rs, requirements.In(instancetypes.LabelCapacityType, pick(d, instancetypes.CapacityTypeOnDemand, instancetypes.CapacityTypeSpot)))
	}
	if d.chance(0.1) {
		rs = append(rs, requirements.NotIn(corev1.LabelTopologyZone, d.zone()))
	}
	if d.chance(0.1) {
		rs = append(rs, requirements.In(corev1.LabelInstanceTypeStable, types[0].Name, types[1].Name))
	}
	labelled := d.chance(0.35)
	if !labelled && d.chance(0.25) {
		rs = append(rs, requirements.In(labelRack, "r1", "r2"))
	}
	p := scheduling.Pool{NodePool: nodepool.New(fmt.Sprintf("pool-%d", i), rs...), Types: types}
	if labelled {
		p.Labels = map[string]string{labelRack: pick(d, "r1", "r2")}
	}
	if d.chance(0.3) {
		p.Weight = int32(1 + d.r.IntN(20))
	}
	if d.chance(0.2) {
		p.Taints = append(p.Taints, corev1.Taint{Key: "batch", Value: "yes", Effect: pick(d, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)})
	}
	if d.chance(0.08) {
		p.Taints = append(p.Taints, corev1.Taint{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule})
	}
	if d.chance(0.25) {
		p.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick(d, "2", "4", "5", "8", "12"))}
	}
	if d.chance(0.15) {
		if p.Limits == nil {
			p.Limits = corev1.ResourceList{}
		}
		p.Limits["nodes"] = resource.MustParse(pick(d, "1", "2", "3", "4"))
	}
	return p
}

func (d *drawer) daemonSet() *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent", UID: "agent"}}
	labels := map[string]string{"app": "agent"}
	set.Spec.Selector, set.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	spec := &set.Spec.Template.Spec
	spec.Containers = []corev1.Container{{Name: "c", Image: image, Resources: corev1.ResourceRequirements{Requests: amounts("100m", "100Mi")}}}
	if d.chance(0.5) {
		spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	if d.chance(0.3) {
		spec.NodeSelector = map[string]string{instancetypes.LabelCapacityType: instancetypes.CapacityTypeSpot}
	}
	if d.chance(0.2) {
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080, Protocol: corev1.ProtocolTCP}}
	}
	return set
}

// node draws a node and the pods that run there.
func (d *drawer) node(i int, types []instancetypes.InstanceType) {
	name := fmt.Sprintf("node-%d", i)
	t := pick(d, types...)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid(name), Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelInstanceTypeStable: t.Name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		corev1.LabelTopologyZone: d.zone(), instancetypes.LabelCapacityType: pick(d, instancetypes.CapacityTypeOnDemand, instancetypes.CapacityTypeSpot),
		labelGeneration: t.Requirements.Labels()[labelGeneration],
	}}}
	n.Status.Capacity, n.Status.Allocatable = t.Capacity.DeepCopy(), t.Capacity.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if d.chance(0.6) {
		p := pick(d, d.s.Pools...)
		n.Labels[nodepool.LabelKey] = p.Name
		maps.Copy(n.Labels, p.Labels)
		n.Spec.Taints = append(n.Spec.Taints, p.Taints...)
	} else if d.chance(0.3) {
		n.Labels[labelRack] = pick(d, "r1", "r2", "r3")
	}
	if d.chance(0.12) {
		delete(n.Labels, corev1.LabelTopologyZone)
	}
	if d.chance(0.1) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule})
	}
	d.s.Nodes = append(d.s.Nodes, n)
	for _, set := range d.s.DaemonSets {
		if daemon := bruteforce.DaemonPod(set, n); daemon != nil {
			d.s.Pods = append(d.s.Pods, daemon)
		}
	}
	for j := range d.r.IntN(3) {
		pod := d.pod(d.r.IntN(d.apps), fmt.Sprintf("running-%d-%d", i, j), d.rich/2)
		pod.Spec.NodeName = name
		pod.Spec.Containers[0].Resources.Requests = amounts(pick(d, "100m", "300m", "500m"), pick(d, "128Mi", "512Mi"))
		if d.chance(0.1) {
			pod.Namespace = "other"
		}
		d.s.Pods = append(d.s.Pods, pod)
	}
	if d.chance(0.3) {
		d.fill(n)
	}
}

// fill adds a pod that takes all or nearly all of the cpu that is left.
func (d *drawer) fill(n *corev1.Node) {
	left := n.Status.Allocatable.Cpu().DeepCopy()
	for _, p := range d.s.Pods {
		if p.Spec.NodeName == n.Name {
			left.Sub(p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU])
		}
	}
	if d.chance(0.5) {
		left.Sub(resource.MustParse("500m"))
	}
	if left.Sign() <= 0 {
		return
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "full-" + n.Name, Labels: map[string]string{"app": "full"}}}
	pod.Spec.NodeName = n.Name
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: image, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: left}}}}
	d.s.Pods = append(d.s.Pods, pod)
}

func uid(name string) types.UID { return types.UID(name) }
