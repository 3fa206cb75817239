package scenario

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Diverse is the mix of Karpenter's own benchmark, a fifth each: plain pods, pods spread over
// zones, pods spread over nodes, pods with affinity to their own kind by zone, and pods with
// anti-affinity to their own kind by node. The selector of a spread need not match the pod itself.
// Requests have 5 CPU sizes and 6 memory sizes.
func Diverse(n int, seed uint64) []*corev1.Pod {
	r := rand.New(rand.NewPCG(seed, 1))
	letter := func() string { return string(rune('a' + r.IntN(7))) }
	var all []*corev1.Pod
	add := func(count int, kind string, change func(*corev1.Pod)) {
		for range count {
			p := newPod(fmt.Sprintf("%s-%d", kind, len(all)), map[string]string{"my-label": letter()})
			request(p, []string{"100m", "250m", "500m", "1", "1500m"}[r.IntN(5)], []string{"100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"}[r.IntN(6)])
			change(p)
			all = append(all, p)
		}
	}
	spread := func(key string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: matching("my-label", letter()),
			}}
		}
	}
	add(n-4*(n/5), "plain", func(*corev1.Pod) {})
	add(n/5, "zones", spread(corev1.LabelTopologyZone))
	add(n/5, "hosts", spread(corev1.LabelHostname))
	add(n/5, "near", func(p *corev1.Pod) {
		p.Labels = map[string]string{"my-affinity": letter()}
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelTopologyZone, LabelSelector: matching("my-affinity", p.Labels["my-affinity"])},
		}}}
	})
	add(n/5, "apart", func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "apart"}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: matching("app", "apart")},
		}}}
	})
	return all
}

func newPod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func request(p *corev1.Pod, cpu, memory string) {
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: quantity("%s", cpu), corev1.ResourceMemory: quantity("%s", memory),
	}
}

func matching(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// Usual is n pods in deployments of 5 to 50 replicas of a few common sizes without any constraint,
// as most pods are.
func Usual(n int, seed uint64) []*corev1.Pod {
	r := rand.New(rand.NewPCG(seed, 2))
	sizes := [][2]string{{"100m", "128Mi"}, {"250m", "512Mi"}, {"500m", "1Gi"}, {"1", "2Gi"}, {"1", "4Gi"}, {"2", "4Gi"}, {"2", "8Gi"}, {"4", "16Gi"}}
	return deployments(n, r, func(int) (int, func(*corev1.Pod)) {
		size := sizes[r.IntN(len(sizes))]
		return 5 + r.IntN(46), func(p *corev1.Pod) { request(p, size[0], size[1]) }
	})
}

// Deployments is n pods in deployments of 5 to 50 replicas with mixed constraints: a third has
// none, the others a spread over zones of their own pods, a spread over nodes, apart by node,
// together by zone, or a zone of their own.
func Deployments(n int, seed uint64) []*corev1.Pod {
	r := rand.New(rand.NewPCG(seed, 3))
	return deployments(n, r, func(i int) (int, func(*corev1.Pod)) {
		cpu, memory := []string{"100m", "250m", "500m", "1", "2"}[r.IntN(5)], []string{"128Mi", "512Mi", "1Gi", "2Gi", "4Gi"}[r.IntN(5)]
		kind, zone := r.IntN(9), Zones()[r.IntN(3)]
		own := matching("app", fmt.Sprintf("app-%d", i))
		spread := func(key string, skew int32) []corev1.TopologySpreadConstraint {
			return []corev1.TopologySpreadConstraint{{MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own}}
		}
		return 5 + r.IntN(46), func(p *corev1.Pod) {
			request(p, cpu, memory)
			switch kind {
			case 0, 1:
				p.Spec.TopologySpreadConstraints = spread(corev1.LabelTopologyZone, 1)
			case 2:
				p.Spec.TopologySpreadConstraints = spread(corev1.LabelHostname, 2)
			case 3:
				p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{TopologyKey: corev1.LabelHostname, LabelSelector: own},
				}}}
			case 4:
				p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{TopologyKey: corev1.LabelTopologyZone, LabelSelector: own},
				}}}
			case 5:
				p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
			}
		}
	})
}

// Distinct is n pods of which no two ask for the same, without constraints: the case in which
// classes do not help.
func Distinct(n int, seed uint64) []*corev1.Pod {
	r := rand.New(rand.NewPCG(seed, 4))
	all := make([]*corev1.Pod, 0, n)
	for i := range n {
		p := newPod(fmt.Sprintf("pod-%d", i), map[string]string{"app": fmt.Sprintf("app-%d", i)})
		// The index is in the memory's last digits, so that no draw repeats another.
		request(p, fmt.Sprintf("%dm", 50+r.IntN(3950)), fmt.Sprint((64+r.IntN(8192))<<20+i))
		all = append(all, p)
	}
	return all
}

// deployments makes n pods of deployments that draw describes by their index; the last one is cut
// short.
func deployments(n int, r *rand.Rand, draw func(int) (int, func(*corev1.Pod))) []*corev1.Pod {
	all := make([]*corev1.Pod, 0, n)
	for i := 0; len(all) < n; i++ {
		replicas, change := draw(i)
		for k := range min(replicas, n-len(all)) {
			p := newPod(fmt.Sprintf("app-%d-%d", i, k), map[string]string{"app": fmt.Sprintf("app-%d", i)})
			change(p)
			all = append(all, p)
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
