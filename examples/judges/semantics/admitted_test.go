package semantics_test

import (
	"encoding/json"
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
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/scheduling"
)

// A pod counts for what kube-scheduler counts once an API server has stored the pod: defaults, LimitRanges and what the pod asks for as a
// whole filled in; and it is refused if the API server refuses it because of a LimitRange. Versions of the API server differ in whether
// LimitRanges come before or after what the pod asks for as a whole. The larger count is ours, so it is never less than that of the version
// that judges, and equal to it for most pods.
func TestAdmittedRequestsAgreeWithKubernetes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	n := rounds(3_000, 60_000)
	admitted, whole, equal, refused := 0, 0, 0, 0
	for i := range n {
		p := podToAdmit(rng, i)
		if _, errs := admit(t, kubejudge.Scenario{Pods: []*corev1.Pod{p}}); len(errs) > 0 {
			continue // whatever its namespace says
		}
		s := kubejudge.Scenario{Pods: []*corev1.Pod{p}}
		for range rng.IntN(3) {
			s.LimitRanges = append(s.LimitRanges, limitRange(rng, len(s.LimitRanges)))
		}
		stored, errs := admit(t, s)
		problem, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{p}, LimitRanges: s.LimitRanges}, nil)
		require.NoError(t, err)
		ours := problem.Classes[0]
		if len(errs) > 0 || ours.Refusal != nil {
			// What a pod asks for as a whole may be less than what its containers ask for in one version only.
			if (len(errs) > 0) != (ours.Refusal != nil) && p.Spec.Resources == nil {
				t.Fatalf("an API server says %v, we say %v\n%s", errs, ours.Refusal, text(t, map[string]any{"pod": p, "ranges": s.LimitRanges}))
			}
			refused++
			continue
		}
		admitted++
		if stored.Spec.Resources != nil {
			whole++
		}
		theirs := resourcehelper.PodRequests(stored, resourcehelper.PodResourcesOptions{})
		same := true
		for name, q := range theirs {
			mine := ours.Requests[name]
			order := mine.Cmp(q)
			same = same && order == 0
			if order < 0 {
				requireSame(t, stored, theirs, ours.Requests)
			}
		}
		if same {
			equal++
		}
	}
	require.Greater(t, admitted, n/4)
	require.Greater(t, refused, n/10)
	require.Greater(t, whole, admitted/5)
	require.Greater(t, equal, admitted*9/10, "of %d", admitted)
}

// admit is the only pod of the scenario as an API server stores it, or why it does not.
func admit(t *testing.T, s kubejudge.Scenario) (*corev1.Pod, []error) {
	t.Helper()
	out, err := kubejudge.Admit(t.Context(), s)
	require.NoError(t, err)
	internal := &core.Pod{}
	require.NoError(t, corev1conversion.Convert_v1_Pod_To_core_Pod(out.Pods[0], internal, nil))
	var errs []error
	for _, err := range validation.ValidatePodCreate(internal, validation.PodValidationOptions{PodLevelResourcesEnabled: true, ResourceIsPod: true}) {
		errs = append(errs, err)
	}
	for _, l := range s.LimitRanges {
		l = l.DeepCopy()
		corev1conversion.SetObjectDefaults_LimitRange(l)
		if err := limitranger.PodValidateLimitFunc(l, internal); err != nil {
			errs = append(errs, err)
		}
	}
	return out.Pods[0], errs
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return string(out)
}

func limitRange(rng *rand.Rand, i int) *corev1.LimitRange {
	out := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("range-%d", i), Namespace: "default"}}
	for _, kind := range []corev1.LimitType{corev1.LimitTypeContainer, corev1.LimitTypePod} { // an API server takes one item of each
		if rng.IntN(3) == 0 {
			continue
		}
		item := corev1.LimitRangeItem{Type: kind}
		if kind == corev1.LimitTypeContainer {
			item.DefaultRequest, item.Default = corev1.ResourceList{}, corev1.ResourceList{}
		}
		item.Min, item.Max, item.MaxLimitRequestRatio = corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if item.Type == corev1.LimitTypeContainer && rng.IntN(2) == 0 {
				item.DefaultRequest[name] = amount(rng, 0)
			}
			if item.Type == corev1.LimitTypeContainer && rng.IntN(3) == 0 {
				item.Default[name] = amount(rng, 1)
			}
			switch rng.IntN(12) {
			case 0:
				item.Min[name] = amount(rng, 0)
			case 1:
				item.Max[name] = amount(rng, 1)
			case 2:
				item.MaxLimitRequestRatio[name] = *resource.NewQuantity(int64(1+rng.IntN(20)), resource.DecimalSI)
			}
		}
		out.Spec.Limits = append(out.Spec.Limits, item)
	}
	return out
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
