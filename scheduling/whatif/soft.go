package whatif

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// soft is what a class would rather have. It keeps no pod from any node; of nodes that take the pod one with the highest score
// is chosen, and of those the fullest.
type soft struct {
	nodes  []wish  // of node affinity
	pods   []drawn // of affinity between pods, and of anti-affinity with a weight below zero
	spread []spread
	met    []int8 // by static group and wish: 0 unknown, 1 yes, 2 no
	fine   bool   // some of it is about a key of many values
}

type wish struct {
	weight int32
	term   requirements.Set
}

type drawn struct {
	weight, group int32
}

const (
	// evenness is the weight of keeping to the skew that a spread would rather have: that of the heaviest affinity.
	evenness = 100
	// looks is how many nodes of a shelf are compared where they differ in what a class would rather have.
	looks = 8
)

// soft reads what the pod would rather have; nil if nothing. What cannot be read asks nothing.
func (r *topologyReader) soft(pod *corev1.Pod) *soft {
	out := &soft{}
	if a := pod.Spec.Affinity; a != nil {
		if a.NodeAffinity != nil {
			for _, p := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				spec := corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{p.Preference},
				}}}}
				if asked, err := requirements.FromPod(&spec); err == nil {
					for set := range r.e.aliases.Alternatives(asked.Required).All() {
						out.nodes = append(out.nodes, wish{p.Weight, set})
					}
				}
			}
		}
		if a.PodAffinity != nil {
			r.drawn(out, pod, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, 1)
		}
		if a.PodAntiAffinity != nil {
			r.drawn(out, pod, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, -1)
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		t := &pod.Spec.TopologySpreadConstraints[i]
		if t.WhenUnsatisfiable != corev1.ScheduleAnyway {
			continue
		}
		if s, err := r.spread(pod, t); err == nil {
			out.spread = append(out.spread, s)
		}
	}
	if len(out.nodes)+len(out.pods)+len(out.spread) == 0 {
		return nil
	}
	return out
}

func (r *topologyReader) drawn(out *soft, pod *corev1.Pod, list []corev1.WeightedPodAffinityTerm, sign int32) {
	for i := range list {
		t := &list[i].PodAffinityTerm
		if who, err := r.selection(pod.Namespace, t.LabelSelector, t); err == nil {
			out.pods = append(out.pods, drawn{sign * list[i].Weight, r.group(t.TopologyKey, []selected{who}, -1)})
		}
	}
}

// score is how much of what a class would rather have nodes of the static group and with these values of the keys give.
// Keys that are left out count for nothing.
func (e *engine) score(s *soft, static int32, values []int32, without []bool) int32 {
	sum := int32(0)
	for i := range s.nodes {
		at := int(static)*len(s.nodes) + i
		for at >= len(s.met) {
			s.met = append(s.met, 0)
		}
		if s.met[at] == 0 {
			s.met[at] = 2
			if s.nodes[i].term.Compatible(e.statics[static].labels, requirements.Keys{}) {
				s.met[at] = 1
			}
		}
		if s.met[at] == 1 {
			sum += s.nodes[i].weight
		}
	}
	for _, d := range s.pods {
		g := &e.groups[d.group]
		if v := values[g.key]; v >= 0 && (without == nil || !without[g.key]) && g.counts.get(v) > 0 {
			sum += d.weight
		}
	}
	for i := range s.spread {
		if g := &e.groups[s.spread[i].group]; without != nil && without[g.key] {
			continue
		}
		if !e.even(&s.spread[i], values) {
			sum -= evenness
		}
	}
	return sum
}

// prefer is the node from lo to hi that a pod of the class likes best; hi if none takes it.
func (e *engine) prefer(c *class, lo, hi int) int {
	best, most := int32(hi), int32(0)
	for i := range e.shelves {
		s := &e.shelves[i]
		if len(s.nodes) == 0 || s.nodes[len(s.nodes)-1] < int32(lo) || !s.mixed && (!e.suits(c, s.static) || !e.allowed(c, s.values, e.fine)) {
			continue
		}
		from := int32(lo)
		for range looks {
			at := e.search(c, s, from, int32(hi))
			if at == int32(hi) {
				break
			}
			n := &e.nodes[at]
			if got := e.score(c.soft, n.static, n.values, nil); best == int32(hi) || got > most || got == most && at < best {
				best, most = at, got
			}
			if from = at + 1; !s.mixed && !c.soft.fine {
				break // the others of the shelf are liked as much
			}
		}
	}
	return int(best)
}
