package semantics_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/scheduling"
)

// A pod counts for what kube-scheduler counts once an API server has stored the pod: defaults, LimitRanges and what the pod asks for as a
// whole filled in. Versions of the API server differ in whether LimitRanges come before or after the last; the larger count is ours, so
// it is never less than that of the version that judges, and equal to it for most pods.
func TestAdmittedRequestsAgreeWithKubernetes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	n := rounds(2_000, 50_000)
	valid, whole, equal := 0, 0, 0
	for i := range n {
		p := podToAdmit(rng, i)
		s := kubejudge.Scenario{Pods: []*corev1.Pod{p}}
		for range rng.IntN(3) {
			s.LimitRanges = append(s.LimitRanges, limitRange(rng, len(s.LimitRanges)))
		}
		admitted, err := kubejudge.Admit(t.Context(), s)
		require.NoError(t, err)
		stored := admitted.Pods[0]
		internal := &core.Pod{}
		require.NoError(t, corev1conversion.Convert_v1_Pod_To_core_Pod(stored, internal, nil))
		if len(validation.ValidatePodCreate(internal, validation.PodValidationOptions{PodLevelResourcesEnabled: true, ResourceIsPod: true})) > 0 {
			continue
		}
		valid++
		if stored.Spec.Resources != nil {
			whole++
		}
		theirs := resourcehelper.PodRequests(stored, resourcehelper.PodResourcesOptions{})
		problem, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{p}, LimitRanges: s.LimitRanges}, nil)
		require.NoError(t, err)
		ours := problem.Classes[0].Requests
		same := true
		for name, q := range theirs {
			mine := ours[name]
			order := mine.Cmp(q)
			same = same && order == 0
			if order < 0 {
				requireSame(t, stored, theirs, ours)
			}
		}
		if same {
			equal++
		}
	}
	require.Greater(t, valid, n/4)
	require.Greater(t, whole, valid/4)
	require.Greater(t, equal, valid*9/10, "of %d valid pods", valid)
}

func limitRange(rng *rand.Rand, i int) *corev1.LimitRange {
	item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{}, Default: corev1.ResourceList{}}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if rng.IntN(2) == 0 {
			item.DefaultRequest[name] = amount(rng, 0)
		}
		if rng.IntN(3) == 0 {
			item.Default[name] = amount(rng, 1)
		}
	}
	return &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("defaults-%d", i), Namespace: "default"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}},
	}
}

// amount is small for requests of containers (0), larger for their limits (1), for requests of pods (2) and limits of pods (3), so that most
// pods are valid.
func amount(rng *rand.Rand, level int) resource.Quantity {
	return *resource.NewMilliQuantity(int64(1+rng.IntN(9))*[]int64{100, 1_000, 10_000, 100_000}[level], resource.DecimalSI)
}

func podToAdmit(rng *rand.Rand, i int) *corev1.Pod {
	draw := func(requests, limits int) corev1.ResourceRequirements {
		r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if rng.IntN(3) == 0 {
				r.Requests[name] = amount(rng, requests)
			}
			if rng.IntN(3) == 0 {
				r.Limits[name] = amount(rng, limits)
			}
		}
		return r
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), Namespace: "default"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
			TerminationGracePeriodSeconds: new(int64(30)), SecurityContext: &corev1.PodSecurityContext{},
		},
	}
	for k := range 1 + rng.IntN(3) {
		c := corev1.Container{Name: fmt.Sprintf("c%d", k), Image: "registry.example.com/app", Resources: draw(0, 1)}
		if k > 0 && rng.IntN(3) == 0 {
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
			continue
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	if rng.IntN(2) == 0 {
		whole := draw(2, 3)
		p.Spec.Resources = &whole
	}
	return p
}
