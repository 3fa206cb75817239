package scenario

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Minimize shrinks a scenario as far as it can while fails stays true. It removes pods (halves,
// quarters, single ones), then nodes, pools, daemonsets and types, then constraints of deployments
// and settings of pools, one by one, and objects that nothing refers to. It ends when nothing more
// can be removed. fails must be true of s, and must depend on nothing but its argument. The
// remaining pods keep their names. s is not modified.
//
// The cost is a few hundred calls of fails for a scenario of a hundred pods.
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
		drop(func(s *Scenario) *[]*storagev1.VolumeAttachment { return &s.VolumeAttachments }),
		drop(func(s *Scenario) *[]*storagev1.CSIStorageCapacity { return &s.CSICapacities }),
		drop(func(s *Scenario) *[]Type { return &s.Catalogue }),
		dropConstraints,
		dropPoolFields,
		dropUnused,
		drop(func(s *Scenario) *[]*storagev1.StorageClass { return &s.StorageClasses }),
		drop(func(s *Scenario) *[]*storagev1.CSIDriver { return &s.CSIDrivers }),
		drop(func(s *Scenario) *[]*nodev1.RuntimeClass { return &s.RuntimeClasses }),
		drop(func(s *Scenario) *[]*schedulingv1.PriorityClass { return &s.PriorityClasses }),
		drop(func(s *Scenario) *[]*corev1.Namespace { return &s.Namespaces }),
		drop(func(s *Scenario) *[]*corev1.LimitRange { return &s.LimitRanges }),
		drop(func(s *Scenario) *[]*unstructured.Unstructured { return &s.Quotas }),
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

// dropNodes takes nodes out, each with its claim and the pods that run on it. A claim whose node is
// gone is taken out alone.
func dropNodes(s Scenario, fails func(Scenario) bool) (Scenario, bool) {
	found := false
	var names []string
	for _, n := range slices.Concat(s.Nodes, s.Ready) {
		names = append(names, n.Name)
	}
	for _, c := range s.NodeClaims {
		names = append(names, c.Name)
	}
	for _, name := range names {
		candidate := s
		node := func(n *corev1.Node) bool { return n.Name == name }
		candidate.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), node)
		candidate.Ready = slices.DeleteFunc(slices.Clone(s.Ready), node)
		candidate.NodeClaims = slices.DeleteFunc(slices.Clone(s.NodeClaims), func(c *karpv1.NodeClaim) bool { return c.Name == name || c.Status.NodeName == name })
		candidate.Running = slices.DeleteFunc(slices.Clone(s.Running), func(p *corev1.Pod) bool { return p.Spec.NodeName == name })
		candidate.CSINodes = slices.DeleteFunc(slices.Clone(s.CSINodes), func(c *storagev1.CSINode) bool { return c.Name == name })
		ready := len(candidate.Ready) < len(s.Ready)
		claimed := len(candidate.NodeClaims) < len(s.NodeClaims)
		if whole := len(candidate.Nodes) < len(s.Nodes) || ready || claimed && !promises(s, name); whole && fails(candidate) {
			s, found = candidate, true
		}
	}
	return s, found
}

// promises reports whether the claim is of a node that is on its way, under the node's own name:
// without the claim the cluster would be another one.
func promises(s Scenario, claim string) bool {
	at := slices.IndexFunc(s.NodeClaims, func(c *karpv1.NodeClaim) bool { return c.Name == claim })
	return at >= 0 && s.NodeClaims[at].Status.NodeName != "" && (slices.Contains(s.Leaving, s.NodeClaims[at].Status.NodeName) ||
		slices.ContainsFunc(s.Ready, func(n *corev1.Node) bool { return n.Name == s.NodeClaims[at].Status.NodeName }))
}

// dropUnused takes out claims that no pod mounts, and volumes that neither name such a claim nor
// are named by one. Those in use stay: a pod without its claim shows another fault.
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
		if ref := v.Spec.ClaimRef; named[v.Name] || ref != nil && mounted[ref.Namespace+"/"+ref.Name] {
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
			// What a list holds at an index is another element once one is gone, so the same step
			// may go again.
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

// dropPoolFields takes one thing from one pool.
func dropPoolFields(s Scenario, fails func(Scenario) bool) (Scenario, bool) {
	found := false
	for at := range s.NodePools {
		for _, take := range poolFields() {
			for {
				p := s.NodePools[at].DeepCopy()
				if !take(p) {
					break
				}
				candidate := s
				candidate.NodePools = slices.Clone(s.NodePools)
				candidate.NodePools[at] = p
				if !fails(candidate) {
					break
				}
				s, found = candidate, true
			}
		}
	}
	return s, found
}

// poolFields are functions that take one thing away, and report whether it was there.
func poolFields() []func(*karpv1.NodePool) bool {
	out := []func(*karpv1.NodePool) bool{
		func(p *karpv1.NodePool) bool { return cut(&p.Spec.Weight) },
		func(p *karpv1.NodePool) bool { return cut(&p.Spec.Replicas) },
		func(p *karpv1.NodePool) bool { return emptied(&p.Spec.Template.Spec.Taints) },
		func(p *karpv1.NodePool) bool { return emptied(&p.Spec.Template.Spec.StartupTaints) },
		func(p *karpv1.NodePool) bool {
			had := len(p.Spec.Limits) > 0
			p.Spec.Limits = nil
			return had
		},
		func(p *karpv1.NodePool) bool {
			had := len(p.Spec.Template.Labels) > 0
			p.Spec.Template.Labels = nil
			return had
		},
		func(p *karpv1.NodePool) bool {
			for i := range p.Spec.Template.Spec.Requirements {
				if cut(&p.Spec.Template.Spec.Requirements[i].MinValues) {
					return true
				}
			}
			return false
		},
	}
	for i := range mostRequirements {
		out = append(out, func(p *karpv1.NodePool) bool { return remove(&p.Spec.Template.Spec.Requirements, i) })
	}
	return out
}

// mostRequirements is how many requirements Generate gives a pool at most.
const mostRequirements = 3

func appsOf(s Scenario) []string {
	var names []string
	for _, p := range slices.Concat(s.Pods, s.Running) {
		names = append(names, p.Labels["app"])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func without(pods []*corev1.Pod, app string, take func(*corev1.Pod) bool, changed bool) ([]*corev1.Pod, bool) {
	out := make([]*corev1.Pod, 0, len(pods))
	for _, p := range pods {
		if p.Labels["app"] == app {
			smaller := p.DeepCopy()
			if take(smaller) {
				p, changed = smaller, true
			}
		}
		out = append(out, p)
	}
	return out, changed
}

// constraints are functions that take one thing away, and report whether it was there.
func constraints() []func(*corev1.Pod) bool {
	out := []func(*corev1.Pod) bool{
		affinity(func(a *corev1.Affinity) bool { return cut(&a.NodeAffinity) }),
		affinity(func(a *corev1.Affinity) bool { return cut(&a.PodAffinity) }),
		affinity(func(a *corev1.Affinity) bool { return cut(&a.PodAntiAffinity) }),
		affinity(func(a *corev1.Affinity) bool {
			return a.NodeAffinity != nil && cut(&a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}),
	}
	// Any term of a list may be the one that can go, so each is tried by its index.
	for i := range mostTerms {
		out = append(out,
			affinity(func(a *corev1.Affinity) bool {
				if a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
					return false
				}
				terms := &a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
				return len(*terms) > 1 && remove(terms, i) // none at all would be another demand
			}),
			affinity(func(a *corev1.Affinity) bool {
				return a.NodeAffinity != nil && remove(&a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution, i)
			}),
			affinity(func(a *corev1.Affinity) bool {
				return a.PodAffinity != nil && remove(&a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, i)
			}),
			affinity(func(a *corev1.Affinity) bool {
				return a.PodAffinity != nil && remove(&a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, i)
			}),
			affinity(func(a *corev1.Affinity) bool {
				return a.PodAntiAffinity != nil && remove(&a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, i)
			}),
			affinity(func(a *corev1.Affinity) bool {
				return a.PodAntiAffinity != nil && remove(&a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, i)
			}),
			func(p *corev1.Pod) bool { return remove(&p.Spec.TopologySpreadConstraints, i) },
		)
	}
	out = append(out,
		terms(func(t *corev1.PodAffinityTerm) bool { return emptied(&t.Namespaces) }),
		terms(func(t *corev1.PodAffinityTerm) bool { return cut(&t.NamespaceSelector) }),
		terms(func(t *corev1.PodAffinityTerm) bool { return emptied(&t.MatchLabelKeys) }),
		terms(func(t *corev1.PodAffinityTerm) bool { return emptied(&t.MismatchLabelKeys) }),
		spreads(func(c *corev1.TopologySpreadConstraint) bool { return cut(&c.MinDomains) }),
		spreads(func(c *corev1.TopologySpreadConstraint) bool { return cut(&c.NodeAffinityPolicy) }),
		spreads(func(c *corev1.TopologySpreadConstraint) bool { return cut(&c.NodeTaintsPolicy) }),
		spreads(func(c *corev1.TopologySpreadConstraint) bool { return emptied(&c.MatchLabelKeys) }),
	)
	return append(out,
		func(p *corev1.Pod) bool { return cut(&p.DeletionTimestamp) },
		func(p *corev1.Pod) bool {
			had := p.Status.NominatedNodeName != ""
			p.Status.NominatedNodeName = ""
			return had
		},
		func(p *corev1.Pod) bool { return remove(&p.Spec.Volumes, 0) },
		func(p *corev1.Pod) bool { return remove(&p.Spec.Tolerations, 0) },
		func(p *corev1.Pod) bool { return remove(&p.Spec.InitContainers, 0) },
		func(p *corev1.Pod) bool { return remove(&p.Spec.Containers[0].Ports, 0) },
		func(p *corev1.Pod) bool { return emptied(&p.Spec.SchedulingGates) },
		func(p *corev1.Pod) bool { return emptied(&p.Spec.ResourceClaims) },
		func(p *corev1.Pod) bool { return cut(&p.Spec.Resources) },
		func(p *corev1.Pod) bool {
			had := p.Spec.RuntimeClassName != nil
			p.Spec.RuntimeClassName, p.Spec.Overhead = nil, nil // a server takes no overhead without its class
			return had
		},
		func(p *corev1.Pod) bool {
			had := len(p.Spec.NodeSelector) > 0
			p.Spec.NodeSelector = nil
			return had
		},
		func(p *corev1.Pod) bool {
			had := p.Spec.PriorityClassName != "" || p.Spec.HostNetwork || p.Spec.SchedulerName != ""
			p.Spec.PriorityClassName, p.Spec.Priority, p.Spec.HostNetwork, p.Spec.SchedulerName = "", nil, false, ""
			return had
		},
		func(p *corev1.Pod) bool {
			had := p.Spec.HostUsers != nil || len(p.Spec.Containers[0].RestartPolicyRules) > 0
			p.Spec.HostUsers, p.Spec.Containers[0].RestartPolicyRules = nil, nil
			return had
		},
		func(p *corev1.Pod) bool {
			had := len(p.Spec.Containers) > 1
			p.Spec.Containers = p.Spec.Containers[:1]
			return had
		},
	)
}

// mostTerms is how many terms of one kind Generate gives a pod at most.
const mostTerms = 12

func affinity(change func(*corev1.Affinity) bool) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Spec.Affinity != nil && change(p.Spec.Affinity) }
}

// spreads changes the first constraint that change finds something to change in.
func spreads(change func(*corev1.TopologySpreadConstraint) bool) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		for i := range p.Spec.TopologySpreadConstraints {
			if change(&p.Spec.TopologySpreadConstraints[i]) {
				return true
			}
		}
		return false
	}
}

// terms changes the first pod affinity term, required or preferred, that change finds something to
// change in.
func terms(change func(*corev1.PodAffinityTerm) bool) func(*corev1.Pod) bool {
	return affinity(func(a *corev1.Affinity) bool {
		var required []corev1.PodAffinityTerm
		var preferred []corev1.WeightedPodAffinityTerm
		if a.PodAffinity != nil {
			required, preferred = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		}
		var requiredNot []corev1.PodAffinityTerm
		var preferredNot []corev1.WeightedPodAffinityTerm
		if a.PodAntiAffinity != nil {
			requiredNot, preferredNot = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		}
		for _, list := range [][]corev1.PodAffinityTerm{required, requiredNot} {
			for i := range list {
				if change(&list[i]) {
					return true
				}
			}
		}
		for _, list := range [][]corev1.WeightedPodAffinityTerm{preferred, preferredNot} {
			for i := range list {
				if change(&list[i].PodAffinityTerm) {
					return true
				}
			}
		}
		return false
	})
}

func cut[T any](field **T) bool {
	had := *field != nil
	*field = nil
	return had
}

func emptied[T any](list *[]T) bool {
	had := len(*list) > 0
	*list = nil
	return had
}

// remove takes one element out of a list; the list that is left is nil rather than empty.
func remove[T any](list *[]T, at int) bool {
	if at >= len(*list) {
		return false
	}
	*list = slices.Delete(*list, at, at+1)
	if len(*list) == 0 {
		*list = nil
	}
	return true
}
