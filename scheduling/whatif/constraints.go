package whatif

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
)

// join finds the groups that each class and DaemonSet is in.
func (e *engine) join() {
	for _, d := range e.daemons {
		e.index.Join(&d.Constraints, d.pod.Namespace, d.pod.Labels)
	}
	for i := range e.classes {
		c := &e.classes[i]
		e.index.Join(&c.Constraints, c.template.Namespace, c.template.Labels)
		if c.soft != nil {
			e.index.Join(&c.soft.Constraints, c.template.Namespace, c.template.Labels)
		}
	}
}

// allowed reports whether the constraints between pods let a pod of the class onto a node with these values of the keys.
// Groups that are left out are skipped; a refusal without them stands.
func (e *engine) allowed(c *class, values []int32, without []bool) bool {
	return e.cluster.Between(&c.Constraints, values, without).OK()
}

// keyOf is the name of the label by whose values a group is counted.
func (e *engine) keyOf(group int32) string { return e.index.Keys()[e.index.Groups()[group].Key] }

// narrow is the set narrowed by the first alternative that suits it.
func narrow(set requirements.Set, asked requirements.Alternatives) (requirements.Set, bool) {
	for a := range asked.All() {
		if !a.Compatible(set, requirements.Keys{}) {
			continue
		}
		if a.IsAnything() {
			return set, true
		}
		if out, err := set.Intersect(a.Restrict(set.Keys())); err == nil {
			return out, true
		}
	}
	return set, false
}

// softly is the preferences of a class. They keep no pod from a node; a pod goes to a node with the highest score, of equal ones to
// the fullest.
type softly struct {
	interpod.Constraints
	nodes []requirements.Preference
	fine  bool // some of them are about a fine key
}

const (
	// evenness is the weight of a preferred spread: that of the heaviest affinity.
	evenness = 100
	// looks bounds how many nodes of a bucket are compared if their scores may differ.
	looks = 8
)

// score is the total weight of the preferences that a node meets.
func (e *engine) score(s *softly, n *node) int32 {
	sum := int32(0)
	for _, p := range s.nodes {
		if p.Nodes.Matches(e.cluster.Labels(n.LabelClass)) {
			sum += p.Weight
		}
	}
	for i := range s.Terms {
		t := &s.Terms[i]
		if v := n.Values[e.index.Groups()[t.Group].Key]; v >= 0 && e.cluster.State.Members(t.Group, v) > 0 {
			if t.Anti {
				sum -= t.Weight
			} else {
				sum += t.Weight
			}
		}
	}
	for i := range s.Spreads {
		if !e.cluster.State.Even(&s.Spreads[i], n.Values, nil) {
			sum -= evenness
		}
	}
	return sum
}

// prefer is the accepting node from lo to hi with the highest score; hi if none accepts a pod of the class.
func (e *engine) prefer(c *class, lo, hi int) int {
	best, most := int32(hi), int32(0)
	for i := range e.buckets {
		s := &e.buckets[i]
		if len(s.nodes) == 0 || s.nodes[len(s.nodes)-1] < int32(lo) || !s.mixed && (!e.cluster.Suits(&c.Class, s.labelClass) || !e.allowed(c, s.values, e.fineGroups)) {
			continue
		}
		from := int32(lo)
		for range looks {
			at := e.search(c, s, from, int32(hi))
			if at == int32(hi) {
				break
			}
			n := &e.nodes[at]
			if got := e.score(c.soft, n); best == int32(hi) || got > most || got == most && at < best {
				best, most = at, got
			}
			if from = at + 1; !s.mixed && !c.soft.fine {
				break // the others of the bucket have the same score
			}
		}
	}
	return int(best)
}

// admitted is the pod as it is planned: as it is stored, or as it is made anew if it has a node already.
func (e *engine) admitted(p *corev1.Pod) *corev1.Pod {
	if p.Spec.NodeName != "" {
		return e.admission.Anew(p)
	}
	return e.admission.Pod(p)
}

// answer is what the caller's constraints leave to a pod, as a text.
func (e *engine) answer(p *corev1.Pod, constraints []scheduling.Constraint) string {
	pod := e.admitted(p)
	asked, _ := kube.FromPod(&pod.Spec)
	left, refusal := (&scheduling.Options{Constraints: constraints}).Narrowed(pod, asked.Required)
	if refusal != nil {
		return "; refused: " + refusal.Detail
	}
	return "; " + string(left.AppendKey(nil))
}

// representative is the pod as if it were pending and had no constraints between pods, so that package scheduling compiles what its
// class asks of nodes.
func representative(p *corev1.Pod) *corev1.Pod {
	r := *p
	if p.Spec.NodeName != "" {
		r.UID = podclass.MadeAnew
	}
	r.DeletionTimestamp = nil
	r.Status = corev1.PodStatus{}
	r.Spec.NodeName = ""
	r.Spec.TopologySpreadConstraints = nil
	if a := r.Spec.Affinity; a != nil {
		r.Spec.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity}
	}
	return &r
}

// unused are the attachments of volumes that no running pod of the node uses; those of pods go with them.
func (e *engine) unused(s scheduling.Snapshot) []*storagev1.VolumeAttachment {
	pods := map[string][]*corev1.Pod{}
	for _, p := range s.Pods {
		if p.Spec.NodeName != "" {
			pods[p.Spec.NodeName] = append(pods[p.Spec.NodeName], p)
		}
	}
	index, used := volume.NewIndex(volume.Objects{Persistent: s.PersistentVolumes, Claims: s.PersistentVolumeClaims}), map[string][]string{}
	var out []*storagev1.VolumeAttachment
	for _, a := range s.VolumeAttachments {
		n := a.Spec.NodeName
		if _, known := used[n]; !known {
			used[n] = index.Attached(n, pods[n])
		}
		if v := a.Spec.Source.PersistentVolumeName; v == nil || !slices.Contains(used[n], *v) {
			out = append(out, a)
		}
	}
	return out
}

// unreadable is a fault in what representative takes off a pod; nil for none.
func unreadable(p *corev1.Pod) *scheduling.InvalidError {
	r := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	r.Spec.TopologySpreadConstraints = p.Spec.TopologySpreadConstraints
	if a := p.Spec.Affinity; a != nil {
		r.Spec.Affinity = &corev1.Affinity{PodAffinity: a.PodAffinity, PodAntiAffinity: a.PodAntiAffinity}
	}
	bad, _ := errors.AsType[*scheduling.InvalidError]((&scheduling.Snapshot{Pods: []*corev1.Pod{&r}}).Validate())
	return bad
}
