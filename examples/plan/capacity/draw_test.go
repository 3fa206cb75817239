package capacity_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

const tier = "example.com/tier"

// drawn is a cluster and the workloads that pods are asked for of.
type drawn struct {
	scheduling.Snapshot
	templates []*corev1.Pod
	sum       map[string]int // what names are taken
}

// draw draws a cluster over all that bears on a place: resources, labels, taints, ports, volumes, constraints between pods, DaemonSets,
// limits, quotas, counted offerings, defaults of namespaces, and pods that wait.
func draw(r *rand.Rand) *drawn {
	d := &drawn{sum: map[string]int{}}
	some := func(percent int) bool { return r.IntN(100) < percent }
	var types []instancetypes.InstanceType
	for _, cpu := range []int64{2, 4, 8} {
		t := instancetypes.InstanceType{
			Name: fmt.Sprintf("m.%d", cpu), Requirements: requirements.MustParse(fmt.Sprintf("node.kubernetes.io/instance-type=m.%d, kubernetes.io/arch=amd64", cpu)),
			Capacity: amounts(cpu, cpu*4, 20),
		}
		for z := range 3 {
			for k, kind := range []string{"on-demand", "spot"} {
				o := instancetypes.Offering{Price: float64(cpu) * (1 - 0.6*float64(k)) * (0.9 + 0.2*r.Float64()), Available: some(85), Requirements: requirements.MustParse(
					fmt.Sprintf("topology.kubernetes.io/zone=z%d, karpenter.sh/capacity-type=%s", z, kind))}
				if some(3) {
					o.ReservationCount = 1 + r.IntN(2)
				}
				t.Offerings = append(t.Offerings, o)
			}
		}
		types = append(types, t)
	}
	for i := range 1 + r.IntN(2) {
		p := nodepool.NodePool{Name: fmt.Sprintf("pool%d", i), APIVersion: nodepool.V1}
		if some(30) {
			p.Limits = corev1.ResourceList{"cpu": *resource.NewQuantity(int64(4+r.IntN(40)), resource.DecimalSI)}
		}
		if some(20) {
			p.Taints = []corev1.Taint{{Key: "example.com/batch", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
		}
		if some(30) {
			p.Labels = map[string]string{tier: "front"}
			p.Requirements = requirements.FromLabels(p.Labels)
		}
		d.Pools = append(d.Pools, scheduling.Pool{NodePool: p, Types: types})
	}
	if some(40) {
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "agent"}}
		ds.Spec.Template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container("200m", "256Mi")}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}}
		d.DaemonSets = append(d.DaemonSets, ds)
	}
	if some(15) {
		l := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "defaults"}}
		l.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("500m")}}}
		d.LimitRanges = append(d.LimitRanges, l)
	}
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	d.StorageClasses = []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "block"}, Provisioner: "block.csi.example.com", VolumeBindingMode: &mode}}
	for i := range 4 + r.IntN(8) {
		pool, cpu := &d.Pools[r.IntN(len(d.Pools))], []int64{2, 4, 8}[r.IntN(3)]
		name := fmt.Sprintf("n%d", i)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("z%d", r.IntN(3)), nodepool.LabelKey: pool.Name, corev1.LabelInstanceTypeStable: fmt.Sprintf("m.%d", cpu),
			instancetypes.LabelCapacityType: "on-demand", corev1.LabelArchStable: "amd64", "karpenter.sh/initialized": "true",
		}}}
		maps.Copy(n.Labels, pool.Labels)
		n.Spec.Taints = pool.Taints
		if some(4) {
			n.Spec.Taints = append(slices.Clip(n.Spec.Taints), corev1.Taint{Key: "example.com/slow", Effect: corev1.TaintEffectPreferNoSchedule})
		}
		n.Spec.Unschedulable = some(5)
		n.Status.Capacity, n.Status.Allocatable = amounts(cpu, cpu*4, 20), amounts(cpu, cpu*4, 20)
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		d.Nodes = append(d.Nodes, n)
	}
	for i := range 4 + r.IntN(4) {
		d.templates = append(d.templates, template(r, i))
	}
	for range 3 * len(d.Nodes) {
		p := d.pods(d.templates[r.IntN(len(d.templates))], 1)[0]
		if some(85) {
			p.Spec.NodeName = d.Nodes[r.IntN(len(d.Nodes))].Name
		}
		d.Pods = append(d.Pods, p)
	}
	for i := range max(0, r.IntN(4)-1) {
		q := capacityquota.Quota{Name: fmt.Sprintf("quota%d", i), Limits: corev1.ResourceList{"nodes": *resource.NewQuantity(int64(3+r.IntN(10)), resource.DecimalSI)}}
		if some(50) {
			q.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: fmt.Sprintf("z%d", r.IntN(3))}}
		}
		if some(50) {
			q.Limits["cpu"] = *resource.NewQuantity(int64(8+r.IntN(50)), resource.DecimalSI)
		}
		d.Quotas = append(d.Quotas, q)
	}
	return d
}

// template draws a workload, which most often asks for resources alone.
func template(r *rand.Rand, i int) *corev1.Pod {
	some := func(percent int) bool { return r.IntN(100) < percent }
	app := fmt.Sprintf("app%d", r.IntN(6))
	like := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("w%d", i), Labels: map[string]string{"app": app}}}
	p.Spec.Containers = []corev1.Container{container([]string{"0", "250m", "250m", "500m", "1", "1", "3", "3", "7", "30"}[r.IntN(10)], "256Mi")}
	if some(10) {
		p.Spec.Containers[0].Resources.Requests = nil
	}
	if some(25) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: fmt.Sprintf("z%d", r.IntN(3))}
	}
	if some(15) {
		p.Spec.NodeSelector = map[string]string{tier: "front"}
	}
	if some(30) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/batch", Operator: corev1.TolerationOpExists}}
	}
	if some(12) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}
	key := []string{corev1.LabelHostname, corev1.LabelTopologyZone}[r.IntN(2)]
	term := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: like}
	switch r.IntN(20) {
	case 0:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	case 1:
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	case 2, 3:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: key, LabelSelector: like,
			WhenUnsatisfiable: []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}[r.IntN(2)],
		}}
	case 4:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 9, PodAffinityTerm: term}}}}
	case 5:
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("block"), Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}},
		}}}}}
	case 6:
		p.Spec.SchedulerName = "other"
	}
	return p
}

// pods are more pods of a template.
func (d *drawn) pods(template *corev1.Pod, n int) []*corev1.Pod {
	out := make([]*corev1.Pod, n)
	for i := range out {
		p := *template
		p.Name = fmt.Sprintf("%s-%d", template.Name, d.sum[template.Name])
		d.sum[template.Name]++
		out[i] = &p
	}
	return out
}

func amounts(cpu, gigabytes, pods int64) corev1.ResourceList {
	return corev1.ResourceList{
		"cpu": *resource.NewQuantity(cpu, resource.DecimalSI), "memory": *resource.NewQuantity(gigabytes<<30, resource.BinarySI), "pods": *resource.NewQuantity(pods, resource.DecimalSI),
	}
}

func container(cpu, memory string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}}}
}
