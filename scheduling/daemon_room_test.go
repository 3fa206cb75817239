package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A type lacks a resource only if its nodes have none of it. If daemons take all of it, the refusal
// says that they do, whatever the resource.
func TestDaemonsThatTakeAllAreNamed(t *testing.T) {
	const device = "example.com/device"
	for _, name := range []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, device} {
		for _, has := range []string{"0", "1"} {
			size := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("8"), "pods": resource.MustParse("8"), device: resource.MustParse("8")}
			size[name] = resource.MustParse(has)
			one := corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				"cpu": resource.MustParse("1"), "memory": resource.MustParse("1"), device: resource.MustParse("1"),
			}, Limits: corev1.ResourceList{device: resource.MustParse("1")}}}}}
			agent := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"}}
			agent.Spec.Template.Spec = one
			s := scheduling.Snapshot{
				Pods:       []*corev1.Pod{{Spec: one}},
				Pools:      []scheduling.Pool{{NodePool: nodepool.New("p"), Types: []instancetypes.InstanceType{instancetypes.New("box", nil, size, instancetypes.Offer("a", "on-demand", 1))}}},
				DaemonSets: []*appsv1.DaemonSet{agent},
			}
			s.Pods[0].Name, s.Pods[0].Namespace = "web", "shop"
			p, err := scheduling.Compile(s, nil)
			require.NoError(t, err)
			reason := solve(p, nothing).Unplaced()[0].Reasons()[0]
			if has == "0" {
				assert.Contains(t, reason.Detail, "1 type, which lacks "+string(name))
				continue
			}
			assert.Contains(t, reason.Detail, "short of 1", name)
			assert.Contains(t, reason.Detail, string(name)+" after 1 daemon", name)
			assert.NotContains(t, reason.Detail, "lacks", name)
			assert.NotContains(t, reason.Detail, "no type of this catalogue", name)
			assert.Equal(t, string(name), reason.Resource)
		}
	}
}
