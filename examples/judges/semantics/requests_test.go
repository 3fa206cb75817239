package semantics_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// rounds is how many objects are drawn: full where the environment asks for long tests.
func rounds(usual, full int) int {
	if os.Getenv("JOINERY_LONG") == "1" {
		return full
	}
	return usual
}

// The scheduler's own sum is the judge of what a pod takes, to the letter of each quantity: what is printed and what is
// rounded later are the same too. The slot of the pod is ours.
func TestRequestsAgreeWithKubernetes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	slot := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	steps, resized, whole, wholly, equal := 0, 0, 0, 0, 0
	n := rounds(20_000, 1_000_000)
	for range n {
		p := randomWorkload(rng)
		pending := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
		running := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true})
		without := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true})
		requireSame(t, p, resources.Add(pending, slot), resources.OfPod(p, false))
		// Versions differ in how they count a pod that is being resized, and the larger count is ours.
		got := resources.OfPod(p, true)
		theirs := resources.Add(running, slot)
		same := true
		for _, name := range append(resources.Names(theirs), resources.Names(got)...) {
			less, more := theirs[name], got[name]
			order := less.Cmp(more)
			if same = same && order == 0; order > 0 {
				requireSame(t, p, theirs, got)
			}
		}
		if same {
			equal++
		}

		bare := p.DeepCopy()
		bare.Spec.InitContainers = nil
		steps += differs(pending, resourcehelper.PodRequests(bare, resourcehelper.PodResourcesOptions{}))
		resized += differs(pending, running)
		wholly += differs(without, running)
		whole += differs(pending, resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{SkipPodLevelResources: true}))
	}
	for name, count := range map[string]int{"init containers": steps, "resizes": resized, "pod-level resources": whole, "resizes of whole pods": wholly, "counts of this version": equal} {
		require.Greater(t, count, n/10, "%s bear on one sum in ten, or the test is hollow: %d", name, count)
	}
}

func requireSame(t *testing.T, p *corev1.Pod, want, got corev1.ResourceList) {
	t.Helper()
	if differs(want, got) == 1 {
		text, err := json.Marshal(map[string]any{"want": want, "got": got, "pod": p})
		require.NoError(t, err)
		require.Failf(t, "not what Kubernetes says", "%s", text)
	}
}

func differs(a, b corev1.ResourceList) int {
	for _, name := range append(resources.Names(a), resources.Names(b)...) {
		x, inA := a[name]
		y, inB := b[name]
		if inA != inB || x.String() != y.String() {
			return 1
		}
	}
	return 0
}

func randomWorkload(rng *rand.Rand) *corev1.Pod {
	p := &corev1.Pod{}
	names := []string{"a", "b", "c", "d", "e", "f"}
	for range 1 + rng.IntN(3) {
		p.Spec.Containers = append(p.Spec.Containers, randomContainer(rng, names[len(p.Spec.Containers)]))
	}
	for range rng.IntN(4) {
		c := randomContainer(rng, names[3+len(p.Spec.InitContainers)])
		if policies := []corev1.ContainerRestartPolicy{"", "Always", "Always", "Never"}; rng.IntN(5) > 0 {
			c.RestartPolicy = &policies[rng.IntN(len(policies))]
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if rng.IntN(3) == 0 {
		p.Spec.Overhead = randomList(rng)
	}
	if rng.IntN(4) > 0 {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: randomList(rng, "cpu", "memory"), Limits: randomList(rng)}
	}
	if rng.IntN(8) > 0 {
		p.Status.AllocatedResources = randomList(rng, "cpu", "memory")
		p.Status.Resources = &corev1.ResourceRequirements{Requests: randomList(rng, "cpu", "memory"), Limits: randomList(rng)}
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, randomStatus(rng, c.Name)...)
	}
	for _, c := range p.Spec.InitContainers {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, randomStatus(rng, c.Name)...)
	}
	for range rng.IntN(3) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type:   []corev1.PodConditionType{corev1.PodReady, corev1.PodResizePending, corev1.PodResizeInProgress}[rng.IntN(3)],
			Reason: []string{"", corev1.PodReasonInfeasible, corev1.PodReasonDeferred}[rng.IntN(3)],
		})
	}
	return p
}

func randomContainer(rng *rand.Rand, name string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: randomList(rng), Limits: randomList(rng)}}
}

func randomStatus(rng *rand.Rand, name string) []corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: name, AllocatedResources: randomList(rng)}
	switch rng.IntN(4) {
	case 0:
		return nil
	case 1:
	default:
		s.Resources = &corev1.ResourceRequirements{Requests: randomList(rng), Limits: randomList(rng)}
	}
	return []corev1.ContainerStatus{s}
}

// randomList draws amounts of a few resources; usual ones are drawn more often.
func randomList(rng *rand.Rand, usual ...corev1.ResourceName) corev1.ResourceList {
	if rng.IntN(8) == 0 {
		return nil
	}
	list := corev1.ResourceList{}
	names := append([]corev1.ResourceName{"cpu", "memory", "hugepages-2Mi", "ephemeral-storage", "example.com/gpu", "pods"}, usual...)
	amounts := []string{"0", "1", "1", "250m", "2", "1500u", "64Mi", "1Gi", "1e3", "3k", "1073741824"}
	for range rng.IntN(4) {
		list[names[rng.IntN(len(names))]] = resource.MustParse(amounts[rng.IntN(len(amounts))])
	}
	return list
}
