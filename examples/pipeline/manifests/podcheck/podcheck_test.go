package podcheck_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests/podcheck"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/strictjson"
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
		"spec.template.spec.restartPolicy",
		"spec.template.spec.preemptionPolicy",
		"spec.template.spec.topologySpreadConstraints[0].matchLabelKeys[0]",
		term + ".namespaceSelector.matchExpressions[0].values",
		term + ".namespaceSelector.matchExpressions[1].values",
		term + ".namespaceSelector.matchExpressions[1].values[0]",
		term + ".namespaces[0]",
		term + ".mismatchLabelKeys[0]",
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
		r := corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(request)}, Limits: corev1.ResourceList{name: resource.MustParse(limit)}}
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
