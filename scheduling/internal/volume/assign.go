package volume

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// Consumer is a number of pending pods that use the same claims.
type Consumer struct {
	// Pod is one of them. Claims of its ephemeral volumes are named after it.
	Pod *corev1.Pod
	// Count is the number of pods; 0 counts as 1.
	Count    int
	Priority int32
	// Required is what the pods require of a node. The zero value requires nothing.
	Required requirements.Alternatives
	// Fits reports whether some node with such labels could hold a pod by itself; nil means that
	// one could. Free volumes that only unsuitable nodes reach go to other pods.
	Fits func(where requirements.Alternatives) bool
}

// Need is what the volumes of a consumer ask of its node.
type Need struct {
	// Where is what the labels of the node must satisfy, given the free volumes of the consumer.
	Where requirements.Alternatives
	// Certain is Where without what unbound claims ask of the node, since kube-scheduler may give
	// them other volumes; see [Binder].
	Certain requirements.Alternatives
	// Attached is how many volumes each pod attaches, by the resource of [AttachLimit]; nil for
	// none.
	Attached corev1.ResourceList
	// Shareable are the attached volumes that other pods may also use: all but ephemeral ones.
	Shareable []Attachment
	// Unbound are the claims, as namespace/name, whose volume is made for the node of the first pod
	// that uses them.
	Unbound []string
	// Refusal says why the pods have no volumes. It is empty if they have. It is Scarce if free
	// volumes suit, but other consumers were given them or they are elsewhere. Then the pods can
	// still have a place if others remain unplaced. If it is not Scarce, the other fields are not
	// set.
	Refusal string
	Scarce  bool
}

// Attachment is a volume and the resource of [AttachLimit] that counts it. A node counts it once
// for all pods that use it.
type Attachment struct {
	Volume string
	Limit  corev1.ResourceName
}

// assignment is the free volumes and claims that are given to consumers.
type assignment struct {
	*Index
	taken map[string]string // claim, by volume
	users map[string]int    // running pods and earlier consumers, by claim
	fresh []string          // volumes that the present consumer has taken
	alone []string          // claims that the present consumer has for itself
}

// Assign returns the needs of consumers. Pods of higher priority, then earlier consumers, are the
// first to get a free volume, or a claim that only one pod may use. It costs O(running pods +
// volumes of consumers x free volumes).
func (x *Index) Assign(running []*corev1.Pod, consumers []Consumer) []Need {
	a := &assignment{Index: x, taken: map[string]string{}, users: map[string]int{}}
	for _, pod := range running {
		for _, u := range x.uses(pod) {
			a.users[u.key]++
		}
	}
	out := make([]Need, len(consumers))
	order := make([]int, len(consumers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(consumers[k].Priority, consumers[i].Priority) })
	for _, i := range order {
		a.fresh, a.alone = a.fresh[:0], a.alone[:0]
		if out[i] = a.serve(consumers[i]); out[i].Refusal != "" { // others may have its volumes
			for _, volume := range a.fresh {
				delete(a.taken, volume)
			}
			for _, claim := range a.alone {
				a.users[claim]--
			}
		}
	}
	return out
}

func anywhere() requirements.Alternatives { return requirements.AnyOf(requirements.Set{}) }

func (a *assignment) serve(c Consumer) Need {
	out, within := Need{Where: anywhere(), Certain: anywhere()}, c.Required
	if within.IsZero() {
		within = anywhere()
	}
	for _, u := range a.uses(c.Pod) {
		at, why := a.locate(c, u, within)
		switch {
		case why != "" && !at.scarce:
			return Need{Where: anywhere(), Certain: anywhere(), Refusal: why}
		case why != "":
			out.Refusal, out.Scarce = cmp.Or(out.Refusal, why), true
		default:
			out.Where, within = out.Where.Intersect(at.where), within.Intersect(at.where)
		}
		if !at.late {
			out.Certain = out.Certain.Intersect(at.where)
		}
		if at.driver != "" {
			out.attach(nameOf(u.claim), at.driver, !u.ephemeral)
		}
		if at.unbound {
			out.Unbound = append(out.Unbound, u.key)
		}
	}
	for i := range c.Pod.Spec.Volumes {
		if disk, driver := inline(&c.Pod.Spec.Volumes[i]); driver != "" {
			out.attach(diskName(disk, driver), driver, true)
		}
	}
	return out
}

func (n *Need) attach(volume, driver string, shareable bool) {
	limit := AttachLimit(driver)
	n.Attached = resources.Add(n.Attached, corev1.ResourceList{limit: resources.Quantity(limit, 1)})
	if shareable {
		n.Shareable = append(n.Shareable, Attachment{volume, limit})
	}
}

// Alone splits groups whose pods use a claim that only one pod may use, so that one pod of each may
// have a place.
func (x *Index) Alone(groups [][]*corev1.Pod) [][]*corev1.Pod {
	var out [][]*corev1.Pod
	for _, g := range groups {
		if len(g) > 1 && slices.ContainsFunc(x.uses(g[0]), func(u use) bool { return u.claim != nil && !u.ephemeral && exclusive(u.claim) }) {
			out = append(out, g[:1:1])
			g = g[1:]
		}
		out = append(out, g)
	}
	return out
}

// Exclusive returns the claims of a pod that no other pod may use meanwhile, as namespace/name.
func (x *Index) Exclusive(pod *corev1.Pod) []string {
	var out []string
	for _, u := range x.uses(pod) {
		if u.claim != nil && exclusive(u.claim) {
			out = append(out, u.key)
		}
	}
	return out
}

func exclusive(claim *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod)
}

// location is the nodes that reach a claim's volume, and the driver that attaches it.
type location struct {
	where   requirements.Alternatives
	driver  string
	unbound bool // it is not made yet
	late    bool // kube-scheduler decides which volume it is when it binds the first pod
	scarce  bool // there is none, although free volumes suit
}

// locate returns the location of a claim, or why no pod can use it. Free volumes that no node
// within reaches are ignored.
func (a *assignment) locate(c Consumer, u use, within requirements.Alternatives) (at location, why string) {
	claim := u.claim
	switch {
	case claim == nil:
		return at, fmt.Sprintf("persistent volume claim %q does not exist", u.name)
	case claim.DeletionTimestamp != nil:
		return at, fmt.Sprintf("persistent volume claim %q is being deleted", u.name)
	case claim.Status.Phase == corev1.ClaimLost:
		return at, fmt.Sprintf("persistent volume claim %q has lost its volume", u.name)
	}
	if exclusive(claim) {
		if a.users[u.key] > 0 || c.Count > 1 && !u.ephemeral {
			return at, fmt.Sprintf("persistent volume claim %q is ReadWriteOncePod and another pod uses it", u.name)
		}
		a.users[u.key]++
		a.alone = append(a.alone, u.key)
	}
	if claim.Spec.VolumeName == "" {
		return a.locateUnbound(c, u, within)
	}
	pv := a.persistent[claim.Spec.VolumeName]
	if pv == nil {
		return at, fmt.Sprintf("persistent volume %q of claim %q does not exist", claim.Spec.VolumeName, claim.Name)
	}
	if ref := pv.Spec.ClaimRef; ref != nil && keyOf(ref.Namespace, ref.Name) != keyOf(claim.Namespace, claim.Name) {
		return at, fmt.Sprintf("claim %q requests persistent volume %q, which belongs to claim %q of namespace %q", claim.Name, pv.Name, ref.Name, ref.Namespace)
	}
	return a.locateVolume(pv, claim)
}

// locateVolume returns the location of an existing volume, or why no pod can use it.
func (a *assignment) locateVolume(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (at location, why string) {
	where, err := a.reachOf(pv)
	if err != nil {
		return at, fmt.Sprintf("persistent volume %q: %v", pv.Name, err)
	}
	return location{where: zoned(pv, where), driver: a.driver(pv, claim)}, ""
}

// reach returns what the node affinity of a volume asks of a node.
func reach(pv *corev1.PersistentVolume) (requirements.Alternatives, error) {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return anywhere(), nil
	}
	return kube.FromNodeSelector(pv.Spec.NodeAffinity.Required)
}

// zoned returns where, narrowed by the zone and region labels of older volumes, which list several
// values joined by "__". A node without such labels is in a cluster of one zone. A node without the
// deprecated label of a volume is asked for the one in use.
func zoned(pv *corev1.PersistentVolume, where requirements.Alternatives) requirements.Alternatives {
	labelled, nowhere := anywhere(), []requirements.Requirement{}
	for _, l := range []struct{ key, inUse string }{
		{corev1.LabelTopologyZone, ""},
		{corev1.LabelTopologyRegion, ""},
		{corev1.LabelFailureDomainBetaZone, corev1.LabelTopologyZone},
		{corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyRegion},
	} {
		nowhere = append(nowhere, requirements.DoesNotExist(l.key))
		v, ok := pv.Labels[l.key]
		if !ok {
			continue
		}
		values := strings.Split(v, "__")
		sets := []requirements.Set{requirements.MustOf(requirements.In(l.key, values...))}
		if l.inUse != "" {
			sets = append(sets, requirements.MustOf(requirements.DoesNotExist(l.key), requirements.In(l.inUse, values...)))
		}
		labelled = labelled.Intersect(requirements.AnyOf(sets...))
	}
	if labelled.Equal(anywhere()) {
		return where
	}
	none := requirements.AnyOf(requirements.MustOf(nowhere...))
	return where.Intersect(requirements.AnyOf(slices.Concat(slices.Collect(labelled.All()), slices.Collect(none.All()))...))
}

func (a *assignment) locateUnbound(c Consumer, u use, within requirements.Alternatives) (at location, why string) {
	claim := u.claim
	class := a.storageClass(claim)
	name, stated := className(claim)
	switch {
	case class == nil && stated && name == "":
		return at, fmt.Sprintf("%s is not bound to a volume, and none is made for it: its storage class is \"\", which opts out of the default class", u.text)
	case class == nil && name != "":
		return at, fmt.Sprintf("storage class %q of %s does not exist", name, u.text)
	case class == nil:
		return at, fmt.Sprintf("%s is not bound to a volume, and there is no default storage class", u.text)
	case class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
		return at, fmt.Sprintf("%s waits for its volume to be created (storage class %q binds immediately)", u.text, class.Name)
	}
	selected, chosen := claim.Annotations[selectedNode]
	switch {
	case class.Provisioner != noProvisioner: // a volume is made for nodes that reach no free one
		where := allowed(class).Intersect(a.capacity(claim, class))
		if where.IsImpossible() {
			return location{driver: driverOf(class), unbound: true, late: !chosen, scarce: !chosen && a.suited(claim, class)}, fmt.Sprintf("no node can have a volume of storage class %q that is large enough for claim %q", class.Name, claim.Name)
		}
		if chosen {
			where = where.Intersect(requirements.AnyOf(requirements.MustOf(requirements.In(requirements.NodeNameKey, selected))))
		}
		return location{where: where, driver: driverOf(class), unbound: true, late: !chosen}, ""
	case chosen:
		return at, fmt.Sprintf("claim %q waits for a volume on node %q, but storage class %q creates none", claim.Name, selected, class.Name)
	}
	if pv := a.take(c, u, class, within); pv != nil {
		at, why = a.locateVolume(pv, claim)
		at.late = true
		return at, why
	}
	return location{late: true, scarce: a.suited(claim, class)}, fmt.Sprintf("no volume of storage class %q is left for claim %q on nodes that could hold its pods", class.Name, claim.Name)
}

// selectedNode is the annotation of a claim whose volume is being made for a pod on this node.
// kube-scheduler refuses every other node until the volume is made or the annotation is removed.
const selectedNode = "volume.kubernetes.io/selected-node"

// capacity returns where the driver of a class says that it can make a volume of the claim's size.
// It is anywhere if the driver publishes nothing. As in kube-scheduler, what other claims take of
// it is not counted.
func (x *Index) capacity(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) requirements.Alternatives {
	size, sized := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if !x.limited[class.Provisioner] || !sized {
		return anywhere()
	}
	var sets []requirements.Set
	for _, c := range x.capacities[class.Name] {
		most := c.MaximumVolumeSize
		if most == nil {
			most = c.Capacity
		}
		if most == nil || most.Cmp(size) < 0 || c.NodeTopology == nil {
			continue
		}
		var b requirements.Builder
		b.AddSet(requirements.FromLabels(c.NodeTopology.MatchLabels))
		for _, e := range c.NodeTopology.MatchExpressions {
			if r, err := requirements.New(e.Key, requirements.Operator(e.Operator), e.Values...); err == nil {
				b.Add(r)
			}
		}
		set, _ := b.Set() // with an error it is impossible
		sets = append(sets, set)
	}
	return requirements.AnyOf(sets...)
}

// allowed returns where a storage class makes volumes. Contradictory and empty terms allow nothing.
func allowed(class *storagev1.StorageClass) requirements.Alternatives {
	if len(class.AllowedTopologies) == 0 {
		return anywhere()
	}
	var sets []requirements.Set
	for _, t := range class.AllowedTopologies {
		if len(t.MatchLabelExpressions) == 0 {
			continue
		}
		var b requirements.Builder
		for _, e := range t.MatchLabelExpressions {
			b.Add(requirements.In(e.Key, e.Values...))
		}
		if set, err := b.Set(); err == nil {
			sets = append(sets, set)
		}
	}
	return requirements.AnyOf(sets...)
}

// take returns the smallest volume that suits the claim, that no other claim was given, and that is
// reached by a node within that could hold the pod; nil if there is none.
func (a *assignment) take(c Consumer, u use, class *storagev1.StorageClass, within requirements.Alternatives) *corev1.PersistentVolume {
	for _, pv := range a.unclaimed {
		owner, taken := a.taken[pv.Name]
		if taken && owner == u.key {
			return pv
		}
		if taken || !suits(pv, u.claim, class) {
			continue
		}
		where, err := reach(pv)
		if err != nil {
			continue
		}
		if where = within.Intersect(zoned(pv, where)); !where.IsImpossible() && (c.Fits == nil || c.Fits(where)) {
			a.taken[pv.Name] = u.key
			a.fresh = append(a.fresh, pv.Name)
			return pv
		}
	}
	return nil
}

// suited reports whether some free volume suits the claim, regardless of its reach.
func (x *Index) suited(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	return slices.ContainsFunc(x.unclaimed, func(pv *corev1.PersistentVolume) bool { return suits(pv, claim, class) })
}

// suits reports whether kube-scheduler may bind the claim to a free volume, regardless of its
// reach.
func suits(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	want, have := claim.Spec.Resources.Requests[corev1.ResourceStorage], pv.Spec.Capacity[corev1.ResourceStorage]
	return classOf(pv) == class.Name && have.Cmp(want) >= 0 && allOf(claim.Spec.AccessModes, pv.Spec.AccessModes) &&
		mode(claim.Spec.VolumeMode) == mode(pv.Spec.VolumeMode) && selects(claim.Spec.Selector, pv.Labels) &&
		text(claim.Spec.VolumeAttributesClassName) == text(pv.Spec.VolumeAttributesClassName)
}

// selects reports whether a claim's selector selects a volume. A selector that cannot be read
// selects none, and no selector selects all.
func selects(s *metav1.LabelSelector, set map[string]string) bool {
	if s == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func mode(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if m == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *m
}

// allOf reports whether all asked modes are offered.
func allOf(asked, offered []corev1.PersistentVolumeAccessMode) bool {
	return !slices.ContainsFunc(asked, func(m corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(offered, m) })
}
