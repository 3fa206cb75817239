package scenario

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Diverse is the mix of Karpenter's own benchmark: a fifth each of plain pods, pods spread over zones and over nodes,
// whose selectors are of a label that they need not have themselves, pods with affinity to their own kind by zone, and
// pods that keep apart from each other by node. Requests are of 5 CPU and 6 memory sizes.
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
