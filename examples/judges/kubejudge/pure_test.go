package kubejudge_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
)

// everything is a scenario that touches each kind of object.
func everything() (kubejudge.Scenario, []kubejudge.Binding) {
	waits := class("waits", storagev1.VolumeBindingWaitForFirstConsumer)
	manual := class("manual", storagev1.VolumeBindingWaitForFirstConsumer)
	s := kubejudge.Scenario{
		Nodes:          []*corev1.Node{node("a1", "a", label("kind", "kata")), node("b1", "b")},
		CSINodes:       []*storagev1.CSINode{csiNode("a1", 5)},
		CSIDrivers:     []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: driver}}},
		StorageClasses: []*storagev1.StorageClass{waits, manual},
		PVs:            []*corev1.PersistentVolume{volume("made")},
		PVCs:           []*corev1.PersistentVolumeClaim{claim("made", "manual"), claim("new", "waits")},
		Namespaces:     []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}},
		RuntimeClasses: []*nodev1.RuntimeClass{{
			ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata",
			Overhead:   &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}},
			Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kind": "kata"}},
		}},
		Running: []*corev1.Pod{pod("old", "web", on("b1"), spread(corev1.LabelTopologyZone))},
		Pods: []*corev1.Pod{
			pod("web", "web", mounts("made", "new"), ephemeralVolume("waits"), spread(corev1.LabelTopologyZone, func(c *corev1.TopologySpreadConstraint) {
				c.MatchLabelKeys = []string{"app"}
			})),
			pod("kata-0", "kata", func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To("kata") }),
			pod("kata-1", "kata", func(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To("kata") }),
		},
	}
	return s, plan("web", "a1", "kata-0", "a1", "kata-1", "b1")
}

func TestArgumentsAreLeftAlone(t *testing.T) {
	s, binds := everything()
	before, beforeBinds := everything()
	got, err := kubejudge.Judge(t.Context(), s, binds)
	require.NoError(t, err)
	require.Len(t, got.Refused, 1, got.String())
	assert.Equal(t, "NodeAffinity", got.Refused[0].Plugin, "the runtime class selects nodes")
	_, err = kubejudge.JudgeAnyOrder(t.Context(), s, binds)
	require.NoError(t, err)
	_, err = kubejudge.Free(t.Context(), s, nil)
	require.NoError(t, err)
	assert.Equal(t, before, s)
	assert.Equal(t, beforeBinds, binds)
}

func TestRuntimeClassOverheadCounts(t *testing.T) {
	s, _ := everything()
	// 1 CPU and 1.5 of overhead each: the second does not fit beside web on 4 CPUs.
	got, err := kubejudge.Judge(t.Context(), s, plan("web", "a1", "kata-0", "a1", "kata-1", "a1"))
	require.NoError(t, err)
	require.Len(t, got.Refused, 1, got.String())
	assert.Equal(t, "NodeResourcesFit", got.Refused[0].Plugin)
}

func TestLimitRangesGiveRequests(t *testing.T) {
	bare := func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }
	three := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	s := kubejudge.Scenario{
		Nodes: []*corev1.Node{node("a1", "a")},
		Pods:  append(pods(2, "web", bare), pod("elsewhere", "web", bare, func(p *corev1.Pod) { p.Namespace = "shop" })),
		LimitRanges: []*corev1.LimitRange{{
			ObjectMeta: metav1.ObjectMeta{Name: "usual"},
			Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: three}}},
		}},
	}
	binds := append(plan("web-0", "a1"), kubejudge.Binding{Pod: types.NamespacedName{Namespace: "shop", Name: "elsewhere"}, Node: "a1"})
	got, err := kubejudge.Judge(t.Context(), s, append(binds, plan("web-1", "a1")...))
	require.NoError(t, err)
	require.Len(t, got.Refused, 1, got.String())
	assert.Equal(t, key("web-1"), got.Refused[0].Pod)
	assert.Equal(t, "NodeResourcesFit", got.Refused[0].Plugin)
}

func TestConcurrentCallsAgree(t *testing.T) {
	s, binds := everything()
	want, err := kubejudge.Judge(t.Context(), s, binds)
	require.NoError(t, err)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got, err := kubejudge.Judge(t.Context(), s, binds)
			assert.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
	group.Wait()
}

func TestAdmitCompletesWhatUsersLeaveOut(t *testing.T) {
	s, binds := everything()
	before, _ := everything()
	got, err := kubejudge.Admit(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, before, s)

	web := got.Pods[0]
	assert.Equal(t, "default", web.Namespace)
	assert.NotEmpty(t, web.UID)
	assert.Equal(t, []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}},
		web.Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions, "matchLabelKeys are in the selector")
	assert.Equal(t, resource.MustParse("1500m"), got.Pods[1].Spec.Overhead[corev1.ResourceCPU])
	var claims []string
	for _, c := range got.PVCs {
		claims = append(claims, c.Namespace+"/"+c.Name)
	}
	assert.Equal(t, []string{"default/made", "default/new", "default/web-scratch"}, claims)

	want, err := kubejudge.Judge(t.Context(), s, binds)
	require.NoError(t, err)
	again, err := kubejudge.Judge(t.Context(), got, binds)
	require.NoError(t, err)
	assert.Equal(t, want, again, "to admit twice changes nothing")
}

func ExampleAdmit() {
	s := kubejudge.Scenario{Pods: pods(1, "web", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
	})}
	admitted, err := kubejudge.Admit(context.Background(), s)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(admitted.Pods[0].Namespace, admitted.Pods[0].Spec.Containers[0].Resources.Requests.Cpu())
	// Output: default 2
}
