package scenario

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Minimize returns a scenario as small as it can make it for which fails is still true: it takes away halves, quarters and
// single pods, then nodes, pools, daemonsets and types, then one constraint after another from all pods of a deployment,
// until nothing more can go. fails must be true of s, and must depend on nothing but its argument. Pods that are left keep
// their names. s is left alone.
//
// The cost is some hundred calls of fails for a scenario of a hundred pods.
func Minimize(s Scenario, fails func(Scenario) bool) Scenario {
	for again := true; again; {
		again = false
		for _, step := range steps() {
			if smaller, ok := step(s, fails); ok {
				s, again = smaller, true
			}
		}
	}
	return s
}

type step func(Scenario, func(Scenario) bool) (Scenario, bool)

func steps() []step {
	return []step{
		drop(func(s *Scenario) *[]*corev1.Pod { return &s.Pods }),
		drop(func(s *Scenario) *[]*corev1.Pod { return &s.Running }),
		dropNodes,
		drop(func(s *Scenario) *[]*appsv1.DaemonSet { return &s.DaemonSets }),
		drop(func(s *Scenario) *[]*karpv1.NodePool { return &s.NodePools }),
		drop(func(s *Scenario) *[]*storagev1.CSINode { return &s.CSINodes }),
		drop(func(s *Scenario) *[]Type { return &s.Catalogue }),
		dropConstraints,
		dropUnused,
	}
}

// drop takes ever smaller runs out of a list.
func drop[T any](list func(*Scenario) *[]T) step {
	return func(s Scenario, fails func(Scenario) bool) (Scenario, bool) {
		found := false
		for size := (len(*list(&s)) + 1) / 2; size > 0; size /= 2 {
			for at := 0; at < len(*list(&s)); {
				candidate := s
				all := *list(&s)
				*list(&candidate) = slices.Concat(all[:at], all[min(at+size, len(all)):])
				if fails(candidate) {
					s, found = candidate, true
				} else {
					at += size
				}
			}
		}
		return s, found
	}
}

// dropNodes takes nodes out, and the pods that run on them.
func dropNodes(s Scenario, fails func(Scenario) bool) (Scenario, bool) {
	found := false
	for at := 0; at < len(s.Nodes); {
		candidate, name := s, s.Nodes[at].Name
		candidate.Nodes = slices.Concat(s.Nodes[:at], s.Nodes[at+1:])
		candidate.Running = slices.DeleteFunc(slices.Clone(s.Running), func(p *corev1.Pod) bool { return p.Spec.NodeName == name })
		if fails(candidate) {
			s, found = candidate, true
		} else {
			at++
		}
	}
	return s, found
}

// dropUnused takes out claims that no pod mounts and volumes that no claim names. Those in use stay: a pod without its
// claim shows another fault.
func dropUnused(s Scenario, fails func(Scenario) bool) (Scenario, bool) {
	mounted, named := map[string]bool{}, map[string]bool{}
	for _, p := range slices.Concat(s.Pods, s.Running) {
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				mounted[p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	candidate := s
	candidate.PVCs, candidate.PVs = nil, nil
	for _, c := range s.PVCs {
		if mounted[c.Namespace+"/"+c.Name] {
			candidate.PVCs = append(candidate.PVCs, c)
			named[c.Spec.VolumeName] = true
		}
	}
	for _, v := range s.PVs {
		if named[v.Name] {
			candidate.PVs = append(candidate.PVs, v)
		}
	}
	if len(candidate.PVCs) == len(s.PVCs) && len(candidate.PVs) == len(s.PVs) || !fails(candidate) {
		return s, false
	}
	return candidate, true
}

// dropConstraints takes one constraint from all pods of one deployment, running ones included.
func dropConstraints(s Scenario, fails func(Scenario) bool) (Scenario, bool) {
	found := false
	for _, name := range appsOf(s) {
		for _, take := range constraints() {
			// A list is emptied from its head, so the same step may go again.
			for {
				candidate, changed := s, false
				candidate.Pods, changed = without(s.Pods, name, take, changed)
				candidate.Running, changed = without(s.Running, name, take, changed)
				if !changed || !fails(candidate) {
					break
				}
				s, found = candidate, true
			}
		}
	}
	return s, found
}

func appsOf(s Scenario) []string {
	var names []string
	for _, p := range slices.Concat(s.Pods, s.Running) {
		names = append(names, p.Labels["app"])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func without(pods []*corev1.Pod, app string, take func(*corev1.PodSpec) bool, changed bool) ([]*corev1.Pod, bool) {
	out := make([]*corev1.Pod, 0, len(pods))
	for _, p := range pods {
		if p.Labels["app"] == app {
			smaller := p.DeepCopy()
			if take(&smaller.Spec) {
				p, changed = smaller, true
			}
		}
		out = append(out, p)
	}
	return out, changed
}

// constraints are functions that take one thing away, and report whether it was there.
func constraints() []func(*corev1.PodSpec) bool {
	affinity := func(change func(*corev1.Affinity) bool) func(*corev1.PodSpec) bool {
		return func(s *corev1.PodSpec) bool { return s.Affinity != nil && change(s.Affinity) }
	}
	return []func(*corev1.PodSpec) bool{
		affinity(func(a *corev1.Affinity) bool { return cut(&a.NodeAffinity) }),
		affinity(func(a *corev1.Affinity) bool { return cut(&a.PodAffinity) }),
		affinity(func(a *corev1.Affinity) bool { return cut(&a.PodAntiAffinity) }),
		affinity(func(a *corev1.Affinity) bool {
			return a.PodAffinity != nil && head(&a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}),
		affinity(func(a *corev1.Affinity) bool {
			return a.PodAntiAffinity != nil && head(&a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}),
		func(s *corev1.PodSpec) bool { return head(&s.TopologySpreadConstraints) },
		func(s *corev1.PodSpec) bool {
			if len(s.TopologySpreadConstraints) < 2 {
				return false
			}
			s.TopologySpreadConstraints = s.TopologySpreadConstraints[:1]
			return true
		},
		spreads(func(c *corev1.TopologySpreadConstraint) bool { return cut(&c.MinDomains) }),
		spreads(func(c *corev1.TopologySpreadConstraint) bool { return cut(&c.NodeAffinityPolicy) }),
		spreads(func(c *corev1.TopologySpreadConstraint) bool { return cut(&c.NodeTaintsPolicy) }),
		spreads(func(c *corev1.TopologySpreadConstraint) bool { return head(&c.MatchLabelKeys) }),
		func(s *corev1.PodSpec) bool { return head(&s.Volumes) },
		func(s *corev1.PodSpec) bool { return head(&s.Tolerations) },
		func(s *corev1.PodSpec) bool { return head(&s.InitContainers) },
		func(s *corev1.PodSpec) bool { return head(&s.Containers[0].Ports) },
		func(s *corev1.PodSpec) bool { return head(&s.SchedulingGates) },
		func(s *corev1.PodSpec) bool { return cut(&s.Resources) },
		func(s *corev1.PodSpec) bool {
			had := len(s.NodeSelector) > 0
			s.NodeSelector = nil
			return had
		},
		func(s *corev1.PodSpec) bool {
			had := s.PriorityClassName != "" || s.HostNetwork
			s.PriorityClassName, s.HostNetwork = "", false
			return had
		},
		func(s *corev1.PodSpec) bool {
			had := len(s.Containers) > 1
			s.Containers = s.Containers[:1]
			return had
		},
	}
}

func spreads(change func(*corev1.TopologySpreadConstraint) bool) func(*corev1.PodSpec) bool {
	return func(s *corev1.PodSpec) bool {
		for i := range s.TopologySpreadConstraints {
			if change(&s.TopologySpreadConstraints[i]) {
				return true
			}
		}
		return false
	}
}

func cut[T any](field **T) bool {
	had := *field != nil
	*field = nil
	return had
}

func head[T any](list *[]T) bool {
	if len(*list) == 0 {
		return false
	}
	*list = (*list)[1:]
	return true
}
