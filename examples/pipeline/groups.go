package pipeline

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// Groups returns the groups of pods that run only together, as the pods and the PodGroups of the
// manifests define them.
func Groups(m *manifests.Snapshot, pods []*corev1.Pod) []gang.Group {
	return GroupsOf(m.PodGroups, pods)
}

// GroupsOf is [Groups] with PodGroups from another source.
func GroupsOf(objects []gang.PodGroup, pods []*corev1.Pod) []gang.Group {
	return gang.Read(pods, objects, func(pod *corev1.Pod) string {
		if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
			return *g.PodGroupName
		}
		return ""
	})
}
