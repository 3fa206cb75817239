package nodepool

import (
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// Default sets fields that the manifest of a pool leaves open. It returns a changed copy, and does
// not modify maps, slices and pointers of its argument.
type Default func(NodePool) NodePool

// Apply runs the hooks in order, each on the result of the one before.
func Apply(p NodePool, hooks ...Default) NodePool {
	for _, hook := range hooks {
		p = hook(p)
	}
	return p
}

// LinuxByDefault requires Linux if neither the requirements nor the labels of a pool name the
// operating system. It is a [Default] for clouds that also sell other systems.
func LinuxByDefault(p NodePool) NodePool {
	return RequireByDefault(requirements.In("kubernetes.io/os", "linux"))(p)
}

// RequireByDefault returns a [Default] that adds each requirement whose key neither the
// requirements nor the labels of a pool have. A pool that requires such a key in any way, even only
// with Exists, keeps its requirement.
func RequireByDefault(rs ...requirements.Requirement) Default {
	rs = slices.Clone(rs)
	return func(p NodePool) NodePool {
		labelled := requirements.KubernetesAliases().Labels(p.Labels)
		var b requirements.Builder
		b.AddSet(p.Requirements)
		for _, r := range rs {
			if _, ok := labelled[r.Key()]; !ok && !p.Requirements.Has(r.Key()) {
				b.Add(r)
			}
		}
		p.Requirements, _ = b.Set() // impossible if two requirements of the hook itself contradict each other
		return p
	}
}
