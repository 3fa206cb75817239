package bruteforce_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
)

const image = "registry.example.com/app:1"

// priorities are the values of the priority classes.
func priorities() map[string]int32 { return map[string]int32{"high": 1000, "low": -10} }

// mostPending is the largest number of pending pods.
const mostPending = 6

// pending draws one to three workloads.
func (d *drawer) pending() {
	total := 1 + d.r.IntN(mostPending)
	for app := 0; app < d.apps && total > 0; app++ {
		n := total
		if app < d.apps-1 {
			n = 1 + d.r.IntN(total)
		}
		total -= n
		template := d.pod(app, "", d.rich)
		revisions := d.chance(0.3)
		for i := range n {
			p := template.DeepCopy()
			p.Name = fmt.Sprintf("app-%d-%d", app, i)
			if revisions {
				p.Labels[labelRevision] = pick(d, "1", "2")
			}
			d.s.Pods = append(d.s.Pods, p)
		}
	}
	if d.chance(0.7) {
		return
	}
	// As volumes do, each pod is tied to a zone of its own.
	for _, p := range d.s.Pods {
		if p.Spec.NodeName == "" && p.Spec.NodeSelector == nil && d.chance(0.7) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: d.zone()}
		}
	}
}

// pod draws a pod of a workload.
func (d *drawer) pod(app int, name string, rich float64) *corev1.Pod {
	was := d.rich
	d.rich = rich
	defer func() { d.rich = was }()
	own := fmt.Sprint("app-", app)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": own, labelRevision: "1"}}}
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: own, UID: uid(own), Controller: &yes}}
	c := corev1.Container{Name: "c", Image: image}
	c.Resources.Requests = amounts(pick(d, "100m", "300m", "500m", "900m", "1", "1500m", "2", "3500m"), pick(d, "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"))
	if d.feature(0.1) {
		port := corev1.ContainerPort{ContainerPort: 8080, HostPort: pick(d, int32(8080), 9090), Protocol: corev1.ProtocolTCP}
		if d.chance(0.3) {
			port.HostIP = pick(d, "10.0.0.1", "10.0.0.2")
		}
		if d.chance(0.2) {
			port.Protocol = corev1.ProtocolUDP
		}
		c.Ports = append(c.Ports, port)
	}
	p.Spec.Containers = []corev1.Container{c}
	if d.feature(0.2) {
		class := pick(d, "high", "low")
		value := priorities()[class]
		p.Spec.PriorityClassName, p.Spec.Priority = class, &value
	}
	if d.feature(0.25) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, pick(d, corev1.Toleration{Key: "batch", Operator: corev1.TolerationOpExists},
			corev1.Toleration{Key: "batch", Value: "yes"}, corev1.Toleration{Key: "batch", Value: "yes", Effect: corev1.TaintEffectNoSchedule},
			corev1.Toleration{Operator: corev1.TolerationOpExists}, corev1.Toleration{Key: "maintenance", Operator: corev1.TolerationOpExists}))
	}
	d.nodeAffinity(&p.Spec)
	for range 3 {
		if d.feature(0.3) {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, d.spread(own))
		}
	}
	d.podAffinity(&p.Spec, own)
	if d.feature(0.1) {
		d.gather(&p.Spec, own)
	}
	p.Spec.TopologySpreadConstraints = distinct(p.Spec.TopologySpreadConstraints)
	return p
}

// gather has the pods of a workload together in one domain, and spread over the domains of the same label.
func (d *drawer) gather(spec *corev1.PodSpec, own string) {
	spread := d.spread(own)
	spread.WhenUnsatisfiable, spread.MinDomains = corev1.DoNotSchedule, nil
	spec.TopologySpreadConstraints = append([]corev1.TopologySpreadConstraint{spread}, spec.TopologySpreadConstraints...)
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.PodAffinity == nil {
		spec.Affinity.PodAffinity = &corev1.PodAffinity{}
	}
	list := &spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*list = append(*list, corev1.PodAffinityTerm{TopologyKey: spread.TopologyKey, LabelSelector: spread.LabelSelector})
}

func (d *drawer) nodeAffinity(spec *corev1.PodSpec) {
	if d.feature(0.12) {
		key := pick(d, corev1.LabelTopologyZone, instancetypes.LabelCapacityType, labelGeneration, labelRack)
		spec.NodeSelector = map[string]string{key: d.value(key)}
	}
	expression := func() corev1.NodeSelectorRequirement {
		key := pick(d, corev1.LabelTopologyZone, corev1.LabelTopologyZone, instancetypes.LabelCapacityType, corev1.LabelInstanceTypeStable, labelRack)
		if d.chance(0.15) {
			return corev1.NodeSelectorRequirement{Key: labelGeneration, Operator: pick(d, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt), Values: []string{"4"}}
		}
		switch op := pick(d, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist); op {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: []string{d.value(key), d.value(key)}}
		default:
			return corev1.NodeSelectorRequirement{Key: pick(d, labelRack, corev1.LabelTopologyZone), Operator: op}
		}
	}
	term := func() (t corev1.NodeSelectorTerm) {
		for range 1 + d.r.IntN(2) {
			t.MatchExpressions = append(t.MatchExpressions, expression())
		}
		return t
	}
	affinity := &corev1.NodeAffinity{}
	if d.feature(0.12) {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
		for range 1 + d.r.IntN(2) {
			list := &affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			*list = append(*list, term())
		}
	}
	if d.feature(0.1) {
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: int32(1 + d.r.IntN(100)), Preference: term()}}
	}
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution != nil || affinity.PreferredDuringSchedulingIgnoredDuringExecution != nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
	}
}

// value draws a value of a node label.
func (d *drawer) value(key string) string {
	switch key {
	case corev1.LabelTopologyZone:
		return d.zone()
	case instancetypes.LabelCapacityType:
		return pick(d, instancetypes.CapacityTypeOnDemand, instancetypes.CapacityTypeSpot)
	case corev1.LabelInstanceTypeStable:
		return pick(d, d.s.Pools[0].Types...).Name
	case labelGeneration:
		return pick(d, "3", "4", "5")
	default:
		return pick(d, "r1", "r2")
	}
}

// topology draws a topology key. Zones and hosts are the usual ones.
func (d *drawer) topology() string {
	return pick(d, corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelHostname, corev1.LabelHostname, corev1.LabelHostname,
		instancetypes.LabelCapacityType, labelRack, corev1.LabelInstanceTypeStable)
}

// selector selects a workload, most often the given one.
func (d *drawer) selector(own string, others float64) *metav1.LabelSelector {
	app := own
	if d.chance(others) {
		app = pick(d, fmt.Sprint("app-", d.r.IntN(d.apps)), fmt.Sprint("app-", d.r.IntN(d.apps)), "full")
	}
	s := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	switch {
	case d.chance(0.06):
		s.MatchLabels[labelRevision] = pick(d, "1", "2")
	case d.chance(0.04):
		s = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{app, "app-0"}}}}
	case d.chance(0.03):
		s = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{app}}}}
	}
	return s
}

func (d *drawer) spread(own string) corev1.TopologySpreadConstraint {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(pick(d, 1, 1, 1, 2)), TopologyKey: d.topology(), WhenUnsatisfiable: pick(d, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway),
		LabelSelector: d.selector(own, 0.1),
	}
	if c.WhenUnsatisfiable == corev1.DoNotSchedule && d.chance(0.12) {
		n := int32(1 + d.r.IntN(3))
		c.MinDomains = &n
	}
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	if d.chance(0.15) {
		c.NodeAffinityPolicy = pick(d, &honor, &ignore)
	}
	if d.chance(0.15) {
		c.NodeTaintsPolicy = pick(d, &honor, &ignore)
	}
	if _, selected := c.LabelSelector.MatchLabels[labelRevision]; d.chance(0.12) && !selected {
		c.MatchLabelKeys = []string{labelRevision}
	}
	return c
}

// distinct leaves one constraint of each key and kind, because an API server refuses two.
func distinct(list []corev1.TopologySpreadConstraint) (out []corev1.TopologySpreadConstraint) {
	have := map[string]bool{}
	for _, c := range list {
		if id := strings.Join([]string{c.TopologyKey, string(c.WhenUnsatisfiable)}, " "); !have[id] {
			have[id], out = true, append(out, c)
		}
	}
	return out
}

func (d *drawer) podAffinity(spec *corev1.PodSpec, own string) {
	term := func() corev1.PodAffinityTerm {
		t := corev1.PodAffinityTerm{TopologyKey: d.topology(), LabelSelector: d.selector(own, 0.4)}
		if d.chance(0.05) {
			t.Namespaces = []string{"other", namespace}
		}
		return t
	}
	draw := func(p float64) (required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for range 2 {
			if d.feature(p) {
				required = append(required, term())
			}
		}
		if d.feature(p / 2) {
			preferred = append(preferred, corev1.WeightedPodAffinityTerm{Weight: int32(1 + d.r.IntN(100)), PodAffinityTerm: term()})
		}
		return required, preferred
	}
	near, away := &corev1.PodAffinity{}, &corev1.PodAntiAffinity{}
	near.RequiredDuringSchedulingIgnoredDuringExecution, near.PreferredDuringSchedulingIgnoredDuringExecution = draw(0.1)
	away.RequiredDuringSchedulingIgnoredDuringExecution, away.PreferredDuringSchedulingIgnoredDuringExecution = draw(0.12)
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if len(near.RequiredDuringSchedulingIgnoredDuringExecution)+len(near.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
		spec.Affinity.PodAffinity = near
	}
	if len(away.RequiredDuringSchedulingIgnoredDuringExecution)+len(away.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
		spec.Affinity.PodAntiAffinity = away
	}
	if spec.Affinity.NodeAffinity == nil && spec.Affinity.PodAffinity == nil && spec.Affinity.PodAntiAffinity == nil {
		spec.Affinity = nil
	}
}
