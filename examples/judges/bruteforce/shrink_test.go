package bruteforce_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/judges/bruteforce"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// shrunk takes parts away from a problem, one at a time, as long as it still fails.
func shrunk(s scheduling.Snapshot, fails func(scheduling.Snapshot) bool) scheduling.Snapshot {
	for again := true; again; {
		again = false
		for _, take := range []func(scheduling.Snapshot, int) (scheduling.Snapshot, bool){withoutPod, withoutNode, withoutPool, withoutDaemons, withoutType, withoutOffer, withoutOfPool, withoutOfNode, withoutOfPods} {
			for i := 0; ; {
				next, more := take(s, i)
				if !more {
					break
				}
				if next = withDaemons(next); fails(next) {
					s, again = next, true
				} else {
					i++
				}
			}
		}
	}
	return s
}

func without[T any](list []T, i int) []T { return slices.Delete(slices.Clone(list), i, i+1) }

// withDaemons runs the pods of DaemonSets on all nodes that should have them, and no others.
func withDaemons(s scheduling.Snapshot) scheduling.Snapshot {
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return p.OwnerReferences != nil && p.OwnerReferences[0].Kind == "DaemonSet" })
	for _, n := range s.Nodes {
		for _, set := range s.DaemonSets {
			if p := bruteforce.DaemonPod(set, n); p != nil {
				s.Pods = append(s.Pods, p)
			}
		}
	}
	return s
}

func withoutPod(s scheduling.Snapshot, i int) (scheduling.Snapshot, bool) {
	if i >= len(s.Pods) {
		return s, false
	}
	s.Pods = without(s.Pods, i)
	return s, true
}

// withoutNode takes the node's pods, too.
func withoutNode(s scheduling.Snapshot, i int) (scheduling.Snapshot, bool) {
	if i >= len(s.Nodes) {
		return s, false
	}
	name := s.Nodes[i].Name
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return p.Spec.NodeName == name })
	s.Nodes = without(s.Nodes, i)
	return s, true
}

func withoutPool(s scheduling.Snapshot, i int) (scheduling.Snapshot, bool) {
	if i >= len(s.Pools) {
		return s, false
	}
	s.Pools = without(s.Pools, i)
	return s, true
}

func withoutDaemons(s scheduling.Snapshot, i int) (scheduling.Snapshot, bool) {
	if i >= len(s.DaemonSets) {
		return s, false
	}
	s.DaemonSets = without(s.DaemonSets, i)
	return s, true
}

// withPools changes copies of the pools.
func withPools(s scheduling.Snapshot, change func(*scheduling.Pool)) scheduling.Snapshot {
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		change(&s.Pools[i])
	}
	return s
}

func withoutType(s scheduling.Snapshot, i int) (scheduling.Snapshot, bool) {
	if len(s.Pools) == 0 || i >= len(s.Pools[0].Types) {
		return s, false
	}
	return withPools(s, func(p *scheduling.Pool) { p.Types = without(p.Types, i) }), true
}

func withoutOffer(s scheduling.Snapshot, i int) (scheduling.Snapshot, bool) {
	if len(s.Pools) == 0 {
		return s, false
	}
	for k, t := range s.Pools[0].Types {
		if i < len(t.Offerings) {
			return withPools(s, func(p *scheduling.Pool) {
				p.Types = slices.Clone(p.Types)
				p.Types[k].Offerings = without(p.Types[k].Offerings, i)
			}), true
		}
		i -= len(t.Offerings)
	}
	return s, false
}

// withoutOfPool passes over parts that a pool does not have, so that nothing is taken away again
// and again.
func withoutOfPool(s scheduling.Snapshot, i int) (scheduling.Snapshot, bool) {
	for k := range s.Pools {
		p := s.Pools[k]
		for _, part := range []struct {
			had  bool
			take func()
		}{
			{p.Limits != nil, func() { p.Limits = nil }},
			{p.Taints != nil, func() { p.Taints = nil }},
			{p.Labels != nil, func() { p.Labels = nil }},
			{p.Weight != 0, func() { p.Weight = 0 }},
			{!p.Requirements.IsAnything(), func() { p.Requirements = requirements.Set{} }},
		} {
			if !part.had {
				continue
			}
			if i == 0 {
				part.take()
				s.Pools = slices.Clone(s.Pools)
				s.Pools[k] = p
				return s, true
			}
			i--
		}
	}
	return s, false
}

func withoutOfNode(s scheduling.Snapshot, i int) (scheduling.Snapshot, bool) {
	for k, n := range s.Nodes {
		if i < len(n.Spec.Taints) {
			s.Nodes = slices.Clone(s.Nodes)
			s.Nodes[k] = n.DeepCopy()
			s.Nodes[k].Spec.Taints = without(n.Spec.Taints, i)
			return s, true
		}
		i -= len(n.Spec.Taints)
	}
	return s, false
}

// withoutOfPods takes one constraint from all pods that have it at the same place of the same
// workload.
func withoutOfPods(s scheduling.Snapshot, i int) (scheduling.Snapshot, bool) {
	parts := podParts()
	apps := map[string]bool{}
	var order []string
	for _, p := range s.Pods {
		if id := workload(p); !apps[id] {
			apps[id] = true
			order = append(order, id)
		}
	}
	// Parts that no pod has are passed over, so that a part is not taken away again and again.
	for _, id := range order {
		for _, part := range parts {
			pods, changed := slices.Clone(s.Pods), false
			for k, p := range pods {
				if workload(p) == id {
					pods[k] = p.DeepCopy()
					changed = part(pods[k]) || changed
				}
			}
			if !changed {
				continue
			}
			if i == 0 {
				s.Pods = pods
				return s, true
			}
			i--
		}
	}
	return s, false
}

func workload(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Name
	}
	return p.Labels["app"]
}

// podParts take a part away from a pod, and say whether it had it.
func podParts() []func(*corev1.Pod) bool {
	parts := []func(*corev1.Pod) bool{
		func(p *corev1.Pod) bool {
			had := p.Spec.NodeSelector != nil
			p.Spec.NodeSelector = nil
			return had
		},
		func(p *corev1.Pod) bool {
			had := p.Spec.Tolerations != nil
			p.Spec.Tolerations = nil
			return had
		},
		func(p *corev1.Pod) bool {
			had := p.Spec.Containers[0].Ports != nil
			p.Spec.Containers[0].Ports = nil
			return had
		},
		func(p *corev1.Pod) bool {
			had := p.Spec.Priority != nil
			p.Spec.Priority, p.Spec.PriorityClassName = nil, ""
			return had
		},
		func(p *corev1.Pod) bool {
			a := p.Spec.Affinity
			had := a != nil && a.NodeAffinity != nil
			if had {
				a.NodeAffinity = nil
			}
			return had
		},
		func(p *corev1.Pod) bool {
			a := p.Spec.Affinity
			had := a != nil && a.PodAffinity != nil
			if had {
				a.PodAffinity = nil
			}
			return had
		},
		func(p *corev1.Pod) bool {
			a := p.Spec.Affinity
			had := a != nil && a.PodAntiAffinity != nil
			if had {
				a.PodAntiAffinity = nil
			}
			return had
		},
	}
	for k := range 3 {
		parts = append(parts, func(p *corev1.Pod) bool {
			had := k < len(p.Spec.TopologySpreadConstraints)
			if had {
				p.Spec.TopologySpreadConstraints = without(p.Spec.TopologySpreadConstraints, k)
			}
			return had
		})
	}
	return parts
}
