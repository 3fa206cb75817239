package whatif

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/podfault"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
)

// join finds the groups that each class and DaemonSet is in.
func (e *engine) join() {
	for _, d := range e.daemons {
		e.index.Join(&d.Constraints, d.pod)
	}
	for i := range e.classes {
		c := &e.classes[i]
		e.index.Join(&c.Constraints, c.template)
		if c.soft != nil {
			e.index.Join(&c.soft.Constraints, c.template)
		}
	}
}

// allowed reports whether the constraints between pods let a pod of the class onto a node with
// these values of the keys. Groups in without are skipped, so a refusal holds even without them.
func (e *engine) allowed(c *class, values []int32, without []bool) bool {
	return e.cluster.Between(&c.Constraints, values, without).OK()
}

// keyOf returns the label by whose values a group is counted.
func (e *engine) keyOf(group int32) string { return e.index.Keys()[e.index.Groups()[group].Key] }

// narrow returns the set narrowed by the first alternative that suits it.
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

// admitted returns the pod as it is planned: as it is stored, or, if it already has a node, as its
// controller creates it again.
func (e *engine) admitted(p *corev1.Pod) *corev1.Pod {
	if p.Spec.NodeName != "" {
		return e.admission.Anew(p)
	}
	return e.admission.Pod(p)
}

// answer returns, as a text, what the caller's constraints leave to a pod.
func (e *engine) answer(p *corev1.Pod, constraints []scheduling.Constraint) string {
	pod := e.admitted(p)
	asked, _ := kube.FromPod(&pod.Spec)
	left, refusal := (&scheduling.Options{Constraints: constraints}).Narrowed(pod, asked.Required)
	if refusal != nil {
		return "; refused: " + refusal.Detail
	}
	return "; " + string(left.AppendKey(nil))
}

// representative returns the pod as if it were pending and had no constraints between pods. Package
// scheduling compiles from it what its class asks of nodes.
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

// unused returns the attachments of volumes that no running pod of the node uses. Attachments of
// used volumes go with the pods.
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

// unreadable returns a fault in what representative removes from a pod; nil for none.
func unreadable(p *corev1.Pod) error {
	r := corev1.Pod{Spec: corev1.PodSpec{TopologySpreadConstraints: p.Spec.TopologySpreadConstraints}}
	if a := p.Spec.Affinity; a != nil {
		r.Spec.Affinity = &corev1.Affinity{PodAffinity: a.PodAffinity, PodAntiAffinity: a.PodAntiAffinity}
	}
	for _, err := range podfault.Of(&r, "", nil) {
		return err
	}
	return nil
}

// divide counts the pods of each ratio: running ones and ones that wait for a place, without
// terminating ones.
func (e *engine) divide() {
	total := map[int32]int{}
	for i := range e.pods {
		p := &e.pods[i]
		if g, ok := e.index.RatioOf(p.object); ok && !p.terminating && (p.node >= 0 || e.classes[p.class].movable) {
			total[g]++
		}
	}
	e.index.Divide(total)
}

// together makes pods follow each other: those that use one claim without a volume by zone, and the
// sets of the caller by their labels. pods has the pods of each class.
func (e *engine) together(pods [][]*corev1.Pod, sets func(*corev1.Pod) (set, label string)) {
	for k, set := range e.problem.Sharing() {
		g := e.index.Custom(corev1.LabelTopologyZone, "pods with one claim", fmt.Sprint("claim ", k))
		for i := range e.classes {
			if c := &e.classes[i]; c.movable && slices.Contains(set, c.problem) {
				c.follow(g)
			}
		}
	}
	if sets == nil {
		return
	}
	for i := range e.classes {
		if set, label := sets(pods[i][0]); set != "" && label != "" {
			e.classes[i].follow(e.index.Custom(label, set, "set "+set))
		}
	}
}

// follow makes the pods of the class members of a group. Those that move go where a member is.
func (c *class) follow(group int32) {
	c.MemberOf = append(slices.Clip(c.MemberOf), group)
	slices.Sort(c.MemberOf)
	if c.movable {
		c.Terms = append(slices.Clip(c.Terms), interpod.Term{Group: group, Self: true, Weight: 1}) // not Hard: terms of a manifest are met as a whole
	}
}

// daemonSet is the pod that a DaemonSet runs on each bought node.
type daemonSet struct {
	bind.Class
	pod *corev1.Pod
}

// compileDaemons reads the DaemonSets. It must run before any class is joined with the groups that
// count it.
func (e *engine) compileDaemons(s *scheduling.Snapshot) {
	for _, d := range s.DaemonSets {
		p, yes := e.admission.DaemonPod(d), true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name, UID: d.UID, Controller: &yes}}
		x := &daemonSet{bind.Class{Need: e.vector(resources.OfPod(p, false)), Ports: hostport.Of(p)}, p}
		asked, _ := kube.FromPod(&p.Spec)
		all, err := e.index.Read(p, asked.Required)
		if err != nil { // package scheduling counts it nowhere
			continue
		}
		x.Constraints, _ = all.Split()
		e.daemons[podclass.Name(p)] = x
	}
}

// daemonsOf returns the DaemonSets that run on nodes of the shape, in the order in which their pods
// are bound.
func (e *engine) daemonsOf(shape int) []*daemonSet {
	names, _ := e.problem.Daemons(shape)
	var out []*daemonSet
	for _, name := range names {
		out = append(out, e.daemons[name])
	}
	return out
}

// expect adds the daemons that are still to start on the node. What they need is no longer free.
func (e *engine) expect(n *node, names []string) {
	for _, name := range names {
		d := e.daemons[name]
		n.Ports = append(n.Ports, d.Ports...)
		if len(d.MemberOf)+len(d.Terms) > 0 {
			n.daemons = append(n.daemons, &d.Class)
		}
	}
}

// countDaemons adds the node's daemons to the counts; sign -1 subtracts them.
func (e *engine) countDaemons(n *node, sign int32) {
	for _, d := range n.daemons {
		if n.bought != nil {
			e.cluster.Count(d, &n.Node, false, sign)
		} else {
			e.cluster.CountMoving(d, &n.Node, n.Values, false, sign)
		}
	}
}

// counted reports whether some constraint between pods counts a daemon on a bought node.
func (b *buying) counted() bool {
	return slices.ContainsFunc(b.bought, func(n int32) bool { return len(b.e.nodes[n].daemons) > 0 })
}
