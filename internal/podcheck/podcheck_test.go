package podcheck_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/podcheck"
	"github.com/joinery-sdk/joinery/internal/strictjson"
)

func paths(problems []strictjson.Problem) []string {
	out := []string{}
	for _, p := range problems {
		out = append(out, p.Path)
	}
	return out
}

// TestPaths puts the path of a template before all that is found in it. What each rule says is in the malformed
// manifests of the package above.
func TestPaths(t *testing.T) {
	var c podcheck.Checker
	spec := corev1.PodSpec{
		InitContainers:   []corev1.Container{{RestartPolicy: ptr(corev1.ContainerRestartPolicy("always"))}},
		RestartPolicy:    "Sometimes",
		PreemptionPolicy: ptr(corev1.PreemptionPolicy("No")),
		Resources:        &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("-1")}},
		Overhead:         corev1.ResourceList{"cpu": resource.MustParse("-1")},
		SchedulingGates:  []corev1.PodSchedulingGate{{Name: "a"}, {Name: "a"}, {Name: "b c"}},
		Volumes:          []corev1.Volume{{Name: "v"}, {Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}},
		Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "zone", Namespaces: []string{"A"}, MismatchLabelKeys: []string{"x"},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}, {Key: "a", Operator: "Exists", Values: []string{"x y"}}}},
		}}}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule", MatchLabelKeys: []string{"x"}}},
	}
	const term = "spec.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
	assert.Equal(t, []string{
		"spec.template.metadata.labels.a",
		"spec.template.spec.containers",
		"spec.template.spec.initContainers[0].restartPolicy",
		"spec.template.spec.resources.requests.cpu",
		"spec.template.spec.overhead.cpu",
		"spec.template.spec.topologySpreadConstraints[0].matchLabelKeys[0]",
		term + ".namespaceSelector.matchExpressions[0].values",
		term + ".namespaceSelector.matchExpressions[1].values",
		term + ".namespaceSelector.matchExpressions[1].values[0]",
		term + ".namespaces[0]",
		term + ".mismatchLabelKeys[0]",
		"spec.template.spec.restartPolicy",
		"spec.template.spec.preemptionPolicy",
		"spec.template.spec.schedulingGates[1].name",
		"spec.template.spec.schedulingGates[2].name",
		"spec.template.spec.volumes[1].name",
		"spec.template.spec.volumes[1].persistentVolumeClaim.claimName",
	}, paths(c.Pod("spec.template", &metav1.ObjectMeta{Labels: map[string]string{"a": "-"}}, &spec)))
	sound := corev1.PodSpec{Containers: []corev1.Container{{}}}
	assert.Empty(t, c.Pod("", &metav1.ObjectMeta{}, &sound), "a checker forgets the problems of the pod before")
}

func ptr[T any](v T) *T { return &v }

func TestHugePages(t *testing.T) {
	var c podcheck.Checker
	spec := func(name corev1.ResourceName, request, limit string) *corev1.PodSpec {
		r := corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(request)}, Limits: corev1.ResourceList{name: resource.MustParse(limit), "cpu": resource.MustParse("1")}}
		return &corev1.PodSpec{Containers: []corev1.Container{{Resources: r}}}
	}
	assert.Empty(t, c.Pod("", &metav1.ObjectMeta{}, spec("hugepages-2Mi", "64Mi", "64Mi")))
	assert.Len(t, c.Pod("", &metav1.ObjectMeta{}, spec("hugepages-2Mi", "32Mi", "64Mi")), 1)
	assert.Len(t, c.Pod("", &metav1.ObjectMeta{}, spec("hugepages-big", "64Mi", "64Mi")), 2)
	assert.Len(t, c.Pod("", &metav1.ObjectMeta{}, spec("a b/c", "1", "1")), 2)
}

func ExampleChecker() {
	var c podcheck.Checker
	spec := corev1.PodSpec{
		Containers:  []corev1.Container{{Name: "main"}},
		Tolerations: []corev1.Toleration{{Key: "spot", Operator: "Exist"}},
	}
	for _, p := range c.Pod("", &metav1.ObjectMeta{}, &spec) {
		fmt.Println(p.Path + ": " + p.Detail)
	}
	// Output: spec.tolerations[0].operator: "Exist": want one of Equal, Exists, Lt, Gt (did you mean "Exists"?)
}

// TestEdges has what is just allowed, or just not.
func TestEdges(t *testing.T) {
	var c podcheck.Checker
	preferred := func(op corev1.NodeSelectorOperator, weight int32) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{}}, Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: weight, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: op, Values: []string{"1"}}},
			}}},
		}}}
	}
	podTerm := func(weight int32) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{}}, Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone"}}},
		}}}
	}
	port := func(container, host int32, network bool) corev1.PodSpec {
		return corev1.PodSpec{HostNetwork: network, Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: container, HostPort: host}}}}}
	}
	request := func(name corev1.ResourceName, text string) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(text)}}}}}
	}
	spread := func(skew int32, domains *int32) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{}}, TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
			{MaxSkew: skew, TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule", MinDomains: domains},
			{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: "ScheduleAnyway"},
		}}
	}
	tolerate := func(t corev1.Toleration) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{}}, Tolerations: []corev1.Toleration{t}}
	}
	for i, x := range []struct {
		spec corev1.PodSpec
		want int
	}{
		{preferred("Gt", 1), 0},
		{preferred("Gt", 100), 0},
		{preferred("Gt", 101), 1},
		{preferred("Gte", 1), 1},
		{preferred("Lte", 1), 1},
		{podTerm(1), 0},
		{podTerm(100), 0},
		{podTerm(0), 1},
		{podTerm(101), 1},
		{port(1, 1, true), 0},
		{port(65535, 65535, false), 0},
		{port(65536, 0, false), 1},
		{port(1, 65536, false), 1},
		{port(1, -1, false), 1},
		{port(80, 0, true), 0},
		{request("cpu", "0"), 0},
		{request("memory", "8Pi"), 0},
		{request("memory", "9Pi"), 1},
		{request("example.com/x", "1"), 1},
		{request("example.com/x", "0"), 1},
		{request("kubernetes.io/x", "500m"), 0},
		{spread(1, ptr[int32](1)), 0},
		{spread(0, nil), 1},
		{spread(1, ptr[int32](0)), 1},
		{tolerate(corev1.Toleration{Operator: "Exists"}), 0},
		{tolerate(corev1.Toleration{Key: "a"}), 0},
		{tolerate(corev1.Toleration{}), 1},
		{tolerate(corev1.Toleration{Key: "a", Effect: "NoExecute", TolerationSeconds: ptr[int64](0)}), 0},
		{tolerate(corev1.Toleration{Key: "a", TolerationSeconds: ptr[int64](0)}), 1},
	} {
		assert.Len(t, c.Pod("", &metav1.ObjectMeta{}, &x.spec), x.want, "case %d: %v", i, c.Pod("", &metav1.ObjectMeta{}, &x.spec))
	}
}

func TestParts(t *testing.T) {
	var c podcheck.Checker
	assert.Equal(t, []string{"l.a"}, paths(c.Labels("l", map[string]string{"a": "b c", "d": "e"})))
	assert.Equal(t, []string{"s.matchExpressions[0].key"}, paths(c.Selector("s", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Operator: "Exists"}}})))
	assert.Empty(t, c.Selector("s", nil))
	assert.Equal(t, []string{"t[1].key", "t[1].effect"}, paths(c.Taints("t", []corev1.Taint{{Key: "a", Effect: "NoExecute"}, {Effect: "Never"}})))
	assert.Equal(t, []string{`q["a/b"]`}, paths(c.Quantities("q", corev1.ResourceList{"a/b": resource.MustParse("-1"), "cpu": resource.MustParse("1")})))
}
