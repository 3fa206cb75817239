package kubejudge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
)

func TestFreePlacesByScore(t *testing.T) {
	s := kubejudge.Scenario{
		Nodes:   []*corev1.Node{node("a1", "a"), node("a2", "a")},
		Running: []*corev1.Pod{pod("old", "old", on("a1"))},
		Pods:    pods(2, "web"),
	}
	got, err := kubejudge.Free(t.Context(), s, nil)
	require.NoError(t, err)
	// The default scores spread pods over nodes: the emptier node first, then the first by name of two alike.
	assert.Equal(t, plan("web-0", "a2", "web-1", "a1"), got.Accepted)
	assert.True(t, got.Valid())
}

func TestFreeReportsTheShareBound(t *testing.T) {
	s := kubejudge.Scenario{Nodes: []*corev1.Node{node("a1", "a")}, Pods: pods(6, "web")}
	got, err := kubejudge.Free(t.Context(), s, nil)
	require.NoError(t, err)
	assert.Len(t, got.Accepted, 4)
	require.Len(t, got.Refused, 2)
	assert.Equal(t, "NodeResourcesFit", got.Refused[0].Plugin)
	assert.Equal(t, []int{4, 5}, []int{got.Refused[0].Position, got.Refused[1].Position})
	assert.InDelta(t, 4.0/6, got.Share(), 1e-9)
}

func TestFreeTakesTheHighestPriorityFirst(t *testing.T) {
	s := kubejudge.Scenario{
		Nodes: []*corev1.Node{node("a1", "a")},
		PriorityClasses: []*schedulingv1.PriorityClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000},
			{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 10, GlobalDefault: true},
		},
		Pods: []*corev1.Pod{
			pod("low", "web", cpu("3")),
			pod("high", "web", cpu("3"), func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" }),
		},
	}
	got, err := kubejudge.Free(t.Context(), s, nil)
	require.NoError(t, err)
	assert.Equal(t, plan("high", "a1"), got.Accepted)
}

func TestFreeGoesRoundAgain(t *testing.T) {
	// web waits for db, which comes later.
	s := kubejudge.Scenario{
		Nodes: []*corev1.Node{node("a1", "a"), node("b1", "b")},
		Pods:  concat(pods(2, "web", near("db")), pods(1, "db", selector(corev1.LabelTopologyZone, "b"))),
	}
	got, err := kubejudge.Free(t.Context(), s, nil)
	require.NoError(t, err)
	assert.Equal(t, plan("db-0", "b1", "web-0", "b1", "web-1", "b1"), got.Accepted)
}

func TestFreePlacesOnlyWhomItIsTold(t *testing.T) {
	s := kubejudge.Scenario{Nodes: []*corev1.Node{node("a1", "a")}, Pods: pods(2, "web")}
	got, err := kubejudge.Free(t.Context(), s, []types.NamespacedName{{Name: "web-1"}})
	require.NoError(t, err)
	assert.Equal(t, plan("web-1", "a1"), got.Accepted)

	_, err = kubejudge.Free(t.Context(), s, []types.NamespacedName{key("web-1"), key("web-1")})
	require.ErrorContains(t, err, `pods[1]: no pod "default/web-1"`)
}
