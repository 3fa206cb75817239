//go:build !kubernetes1.37

package replay_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/judges/scenario"
)

// counted is the scenario with what this kube-scheduler counts. Plans count all that one of the versions does, and 1.36 passes over the status
// of init containers that end.
func counted(s scenario.Scenario) scenario.Scenario {
	s.Running = slices.Clone(s.Running)
	for i, p := range s.Running {
		p = p.DeepCopy()
		p.Status.InitContainerStatuses = slices.DeleteFunc(p.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
			return slices.ContainsFunc(p.Spec.InitContainers, func(own corev1.Container) bool { return own.Name == c.Name && own.RestartPolicy == nil })
		})
		s.Running[i] = p
	}
	return s
}
