package podclass_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/joinery-sdk/joinery/instancetypes/resources"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
)

func pod(name, cpu string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	return p
}

func ExampleGroup() {
	pods := []*corev1.Pod{pod("web-10", "1"), pod("db-0", "2"), pod("web-9", "1000m")}
	for _, class := range podclass.Group(pods, nil, nil) {
		for _, p := range class {
			fmt.Print(podclass.Name(p), " ")
		}
		total := resources.OfPod(class[0], false)
		fmt.Println("take", total.Cpu(), "each")
	}
	// Output:
	// shop/db-0 take 2 each
	// shop/web-9 shop/web-10 take 1 each
}

func ExampleGroup_others() {
	web := func(name, version string) *corev1.Pod {
		p := pod(name, "1")
		p.Labels = map[string]string{"app": "web", "version": version}
		return p
	}
	pods := []*corev1.Pod{web("web-0", "1"), web("web-1", "2")}
	fmt.Println(len(podclass.Group(pods, nil, nil)), "class where nobody looks at versions")

	// A pod that runs already keeps the replicas of one version away from its zone.
	running := web("old", "1")
	running.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			MatchLabelKeys: []string{"version"}, TopologyKey: corev1.LabelTopologyZone,
		}},
	}}
	fmt.Println(len(podclass.Group(pods, []*corev1.Pod{running}, nil)), "classes where it keeps one version away")
	// Output:
	// 1 class where nobody looks at versions
	// 2 classes where it keeps one version away
}

// Replicas that share the memory of an ephemeral volume have claims of their own nevertheless.
func TestPodsWithEphemeralVolumesAreNeverTheSame(t *testing.T) {
	a, b := pod("a", "1"), pod("b", "1")
	b.Spec = a.Spec
	assert.True(t, podclass.SameTemplate(a, b))
	a.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	b.Spec = a.Spec
	assert.False(t, podclass.SameTemplate(a, b))
	assert.Len(t, podclass.Group([]*corev1.Pod{a, b}, nil, nil), 2)
}

func TestPrioritiesKeepPodsApart(t *testing.T) {
	a, b, c := pod("a", "1"), pod("b", "1"), pod("c", "1")
	zero := int32(0)
	b.Spec.Priority = &zero
	c.Spec.PriorityClassName = "high"
	assert.Len(t, podclass.Group([]*corev1.Pod{a, b, c}, nil, nil), 3)
}

func TestNaturalOrder(t *testing.T) {
	for _, names := range [][2]string{{"web-2", "web-10"}, {"web-09", "web-10"}, {"a", "b"}, {"web", "web-0"}, {"web-01", "web-1"}} {
		assert.Negative(t, podclass.Compare(pod(names[0], "1"), pod(names[1], "1")), names)
		assert.Positive(t, podclass.Compare(pod(names[1], "1"), pod(names[0], "1")), names)
	}
}

// Many pods are shared out among the cores; the classes are those that one core finds.
func TestGroupsDoNotDependOnCores(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var pods []*corev1.Pod
	for i := range 5000 {
		p := pod(fmt.Sprintf("p-%d", i), fmt.Sprintf("%dm", 1+rng.IntN(400)))
		if i > 0 && rng.IntN(3) == 0 {
			p.Spec = pods[i-1].Spec // a replica
		}
		pods = append(pods, p)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want := podclass.Group(pods, nil, nil)
	require.Greater(t, len(want), 300)
	runtime.GOMAXPROCS(4)
	got := podclass.Group(pods, nil, nil)
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, len(want[i]), len(got[i]))
		for k := range want[i] {
			require.Same(t, want[i][k], got[i][k])
		}
	}
}

func ExampleTotals() {
	var totals podclass.Totals[corev1.ResourceList]
	for _, p := range []*corev1.Pod{pod("a", "500m"), pod("b", "0.5")} {
		list := totals.Of(p, func() corev1.ResourceList { return resources.OfPod(p, false) })
		fmt.Println(list.Cpu(), list.Pods())
	}
	// Output:
	// 500m 1
	// 500m 1
}

// What is remembered of one pod is right for the next, however alike they look once rounded.
func TestTotalsAreRequests(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	with := func(change func(*corev1.Pod)) *corev1.Pod {
		p := pod("a", "100m")
		change(p)
		return p
	}
	extra := func(cpu string) []corev1.Container { return pod("x", cpu).Spec.Containers }
	pods := []*corev1.Pod{
		pod("a", "1m"), pod("a", "100u"), pod("a", "1"), pod("a", "1000m"), pod("a", "1k"), pod("a", "-1"), pod("a", "1n"), pod("a", "9e18"),
		with(func(*corev1.Pod) {}),
		with(func(p *corev1.Pod) { p.Spec.InitContainers = extra("2") }),
		with(func(p *corev1.Pod) {
			p.Spec.InitContainers = extra("2")
			p.Spec.InitContainers[0].RestartPolicy = &always
		}),
		with(func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, extra("2")...) }),
		with(func(p *corev1.Pod) { p.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("2")} }),
		with(func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}
		}),
		with(func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2")}}
		}),
		with(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse("1Gi") }),
		with(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse("1073741824")
		}),
	}
	var totals podclass.Totals[corev1.ResourceList]
	for range 2 {
		for i, p := range pods {
			want, got := resources.OfPod(p, false), totals.Of(p, func() corev1.ResourceList { return resources.OfPod(p, false) })
			require.Equal(t, len(want), len(got))
			for name, q := range want {
				have := got[name]
				assert.Equal(t, q.String(), have.String(), "pod %d, %s", i, name)
			}
		}
	}
}
