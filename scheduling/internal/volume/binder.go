package volume

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/requirements"
)

// Binder counts the free volumes while pods are bound one by one, as kube-scheduler's VolumeBinding
// does. A claim that waits for its first pod gets the smallest free volume that suits it and that
// the node reaches. Of several volumes of one size, kube-scheduler takes any. So a Binder keeps,
// for each group of equal volumes, how many are free at least and at most. One goroutine uses it;
// others need a Clone.
type Binder struct {
	groups []volumeGroup
	least  []int // by group: how many are free, whichever kube-scheduler took
	most   []int
	bound  map[string]lateVolume // by namespace/name of claims
}

// lateVolume is the volume of a bound claim: from one of some groups, or made by a driver.
type lateVolume struct {
	groups []int
	made   bool // a driver may have made it
}

// volumeGroup is a set of free volumes that kube-scheduler cannot tell apart.
type volumeGroup struct {
	volume *corev1.PersistentVolume // one of them
	// reach is what their node affinity asks of a node. where also has their zone labels, which
	// count once they are bound.
	reach, where requirements.Alternatives
}

func (g *volumeGroup) size() *resource.Quantity { return g.volume.Spec.Capacity.Storage() }

// LateClaim is a claim that gets its volume when the first pod that uses it is bound.
type LateClaim struct {
	key    string // empty for a claim that each pod of the class has for itself
	size   *resource.Quantity
	groups []int // that suit it, smallest first
	made   bool  // a driver makes a volume if no free one is reached, on nodes with such labels
	where  requirements.Alternatives
}

// NewBinder groups the free volumes.
func (x *Index) NewBinder() *Binder {
	b := &Binder{bound: map[string]lateVolume{}}
	for _, pv := range x.unclaimed {
		at := slices.IndexFunc(b.groups, func(g volumeGroup) bool { return sameVolume(g.volume, pv) })
		if at < 0 {
			nodes, err := reach(pv)
			if err != nil { // it reaches no node
				continue
			}
			at = len(b.groups)
			b.groups = append(b.groups, volumeGroup{pv, nodes, zoned(pv, nodes)})
			b.least = append(b.least, 0)
		}
		b.least[at]++
	}
	b.most = slices.Clone(b.least)
	return b
}

// FreeKeys returns the label keys that decide whether a node reaches a free volume.
func (x *Index) FreeKeys() requirements.Keys {
	var keys requirements.Keys
	for _, g := range x.NewBinder().groups {
		keys = keys.Union(g.reach.Keys()).Union(g.where.Keys())
	}
	return keys
}

// sameVolume reports whether two free volumes differ only in their names.
func sameVolume(a, b *corev1.PersistentVolume) bool {
	return classOf(a) == classOf(b) && text(a.Spec.VolumeAttributesClassName) == text(b.Spec.VolumeAttributesClassName) && a.Spec.Capacity.Storage().Cmp(*b.Spec.Capacity.Storage()) == 0 && mode(a.Spec.VolumeMode) == mode(b.Spec.VolumeMode) &&
		slices.Equal(a.Spec.AccessModes, b.Spec.AccessModes) && maps.Equal(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Spec.NodeAffinity, b.Spec.NodeAffinity)
}

// Late returns the claims of the pod that are bound when the pod is, smallest first, in the order
// of kube-scheduler.
func (b *Binder) Late(x *Index, pod *corev1.Pod) []LateClaim {
	var out []LateClaim
	for _, u := range x.uses(pod) {
		claim := u.claim
		if claim == nil || claim.Spec.VolumeName != "" || claim.Annotations[selectedNode] != "" { // with the annotation a volume is being made
			continue
		}
		class := x.storageClass(claim)
		if class == nil {
			continue
		}
		late := LateClaim{key: u.key, size: claim.Spec.Resources.Requests.Storage(), made: class.Provisioner != noProvisioner}
		if u.ephemeral {
			late.key = ""
		}
		if late.made {
			late.where = allowed(class).Intersect(x.capacity(claim, class))
		}
		for g := range b.groups {
			if suits(b.groups[g].volume, claim, class) {
				late.groups = append(late.groups, g)
			}
		}
		if len(late.groups) > 0 || !late.made || late.where.Len() != 1 || !late.where.At(0).IsAnything() {
			out = append(out, late)
		}
	}
	slices.SortStableFunc(out, func(a, b LateClaim) int { return a.size.Cmp(*b.size) })
	return out
}

// Clone copies the counts.
func (b *Binder) Clone() *Binder {
	out := *b
	out.least, out.most, out.bound = slices.Clone(b.least), slices.Clone(b.most), maps.Clone(b.bound)
	return &out
}

// Bind gives the claims of a pod their volumes on a node with the labels. It returns false, and
// changes nothing, if kube-scheduler may find no volume for some claim, or may have bound it to one
// that the node does not reach. It costs O(claims x groups that suit them).
func (b *Binder) Bind(claims []LateClaim, labels map[string]string) bool {
	all, ok := b.take(claims, labels)
	if !ok {
		b.undo(all)
	}
	return ok
}

// Allows reports whether Bind would succeed.
func (b *Binder) Allows(claims []LateClaim, labels map[string]string) bool {
	all, ok := b.take(claims, labels)
	b.undo(all)
	return ok
}

// take binds the claims up to the first one that has no volume.
func (b *Binder) take(claims []LateClaim, labels map[string]string) (all []taken, ok bool) {
	for _, c := range claims {
		t, ok := b.bind(c, labels)
		if !ok {
			return all, false
		}
		all = append(all, t)
	}
	return all, true
}

// taken is what the binding of a claim changed.
type taken struct {
	key    string // of the claim, if it was not bound before and other pods may use it
	groups []int  // the groups from which it may have taken a volume
	least  []int  // their counts in least before
	known  bool   // it certainly took one from the only group
}

func (b *Binder) undo(all []taken) {
	for _, t := range slices.Backward(all) {
		if t.key != "" {
			delete(b.bound, t.key)
		}
		for i, g := range t.groups {
			b.least[g] = t.least[i]
		}
		if t.known {
			b.most[t.groups[0]]++
		}
	}
}

func (b *Binder) bind(c LateClaim, labels map[string]string) (t taken, ok bool) {
	if v, ok := b.bound[c.key]; ok && c.key != "" {
		return t, (!v.made || c.where.Matches(labels)) && !slices.ContainsFunc(v.groups, func(g int) bool { return !b.groups[g].where.Matches(labels) })
	}
	certain := -1
	for _, g := range c.groups {
		if certain >= 0 && b.groups[g].size().Cmp(*b.groups[certain].size()) > 0 {
			break // a smaller one is certainly free
		}
		if b.most[g] == 0 || !b.groups[g].reach.Matches(labels) {
			continue
		}
		t.groups, t.least = append(t.groups, g), append(t.least, b.least[g])
		if b.least[g] > 0 && certain < 0 {
			certain = g
		}
	}
	if certain < 0 && (!c.made || !c.where.Matches(labels)) {
		return t, false
	}
	if t.key = c.key; t.key != "" {
		b.bound[t.key] = lateVolume{t.groups, certain < 0}
	}
	for _, g := range t.groups {
		b.least[g] = max(b.least[g]-1, 0)
	}
	if t.known = len(t.groups) == 1 && certain >= 0; t.known {
		b.most[t.groups[0]]--
	}
	return t, true
}
