package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// AttachLimit is the resource under which volumes of a CSI driver are counted: one for each volume of a pod. An instance
// type that has it in its capacity holds no more; without it there is no limit.
func AttachLimit(driver string) corev1.ResourceName {
	return corev1.ResourceName("attachable-volumes-csi-" + driver)
}

// volumeIndex finds the objects that volumes refer to.
type volumeIndex struct {
	claims       map[string]*corev1.PersistentVolumeClaim // by namespace/name
	persistent   map[string]*corev1.PersistentVolume
	classes      map[string]*storagev1.StorageClass
	defaultClass string
	free         []*corev1.PersistentVolume // bound to nothing, smallest first
	taken        map[string]string          // static volumes given to a claim of a pending pod
	users        map[string]int             // pods that use a claim and are on a node or have been given one
}

func (p *Problem) compileVolumes(running map[string][]*corev1.Pod) {
	v := &volumeIndex{
		claims: map[string]*corev1.PersistentVolumeClaim{}, persistent: map[string]*corev1.PersistentVolume{},
		classes: map[string]*storagev1.StorageClass{}, taken: map[string]string{}, users: map[string]int{},
	}
	in := &p.snapshot.Volumes
	for _, c := range in.Claims {
		v.claims[c.Namespace+"/"+c.Name] = c
	}
	for _, pv := range in.Persistent {
		v.persistent[pv.Name] = pv
		if pv.Spec.ClaimRef == nil && (pv.Status.Phase == "" || pv.Status.Phase == corev1.VolumeAvailable) && pv.DeletionTimestamp == nil {
			v.free = append(v.free, pv)
		}
	}
	slices.SortFunc(v.free, func(a, b *corev1.PersistentVolume) int {
		x, y := a.Spec.Capacity[corev1.ResourceStorage], b.Spec.Capacity[corev1.ResourceStorage]
		return cmp.Or(x.Cmp(y), strings.Compare(a.Name, b.Name))
	})
	for _, c := range in.Classes {
		v.classes[c.Name] = c
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" && (v.defaultClass == "" || c.Name < v.defaultClass) {
			v.defaultClass = c.Name
		}
	}
	for _, pods := range running {
		for _, pod := range pods {
			for _, vol := range pod.Spec.Volumes {
				if name := claimName(pod, &vol); name != "" {
					v.users[pod.Namespace+"/"+name]++
				}
			}
		}
	}
	p.volumes = v
}

// claimName is the claim behind a volume, empty if there is none; that of an ephemeral volume is named after the pod.
func claimName(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod.Name + "-" + v.Name
	}
	return ""
}

// readVolumes narrows the class to where its volumes are or can be made, counts what it attaches, and refuses it where a
// claim cannot be used.
func (p *Problem) readVolumes(c *Class) {
	attached := map[string]int64{}
	for i := range c.Template.Spec.Volumes {
		vol := &c.Template.Spec.Volumes[i]
		name := claimName(c.Pods[0], vol)
		if name == "" {
			continue
		}
		claim := p.volumes.claims[c.Template.Namespace+"/"+name]
		if claim == nil && vol.Ephemeral != nil && vol.Ephemeral.VolumeClaimTemplate != nil {
			claim = &corev1.PersistentVolumeClaim{Spec: vol.Ephemeral.VolumeClaimTemplate.Spec}
			claim.Namespace, claim.Name = c.Template.Namespace, name
		}
		where, driver, why := p.locate(c, claim, name)
		if why != "" {
			c.Refusal = &Reason{Stage: StagePod, Detail: why}
			return
		}
		c.Required = c.Required.Intersect(p.aliases.Alternatives(where))
		if driver != "" {
			attached[driver]++
		}
	}
	for driver, n := range attached {
		name := AttachLimit(driver)
		c.Requests = resources.Add(c.Requests, corev1.ResourceList{name: resources.Quantity(name, n)})
	}
	if c.Required.IsImpossible() {
		c.Refusal = &Reason{Stage: StagePod, Detail: "its volumes and what it asks of nodes contradict each other"}
	}
}

// locate says on which nodes a claim can be used and by which driver it is attached, or why it cannot be used at all.
func (p *Problem) locate(c *Class, claim *corev1.PersistentVolumeClaim, name string) (where requirements.Alternatives, driver, why string) {
	anywhere := requirements.AnyOf(requirements.Set{})
	switch {
	case claim == nil:
		return anywhere, "", fmt.Sprintf("persistent volume claim %q does not exist", name)
	case claim.DeletionTimestamp != nil:
		return anywhere, "", fmt.Sprintf("persistent volume claim %q is being deleted", name)
	case claim.Status.Phase == corev1.ClaimLost:
		return anywhere, "", fmt.Sprintf("persistent volume claim %q has lost its volume", name)
	}
	key := claim.Namespace + "/" + claim.Name
	if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
		if p.volumes.users[key] > 0 || len(c.Pods) > 1 {
			return anywhere, "", fmt.Sprintf("persistent volume claim %q is ReadWriteOncePod and another pod uses it", name)
		}
		p.volumes.users[key]++
	}
	if claim.Spec.VolumeName != "" {
		return p.locateBound(claim)
	}
	return p.locateUnbound(c, claim, key)
}

func (p *Problem) locateBound(claim *corev1.PersistentVolumeClaim) (where requirements.Alternatives, driver, why string) {
	anywhere := requirements.AnyOf(requirements.Set{})
	pv := p.volumes.persistent[claim.Spec.VolumeName]
	if pv == nil {
		return anywhere, "", fmt.Sprintf("persistent volume %q of claim %q does not exist", claim.Spec.VolumeName, claim.Name)
	}
	where, err := nodesOf(pv)
	if err != nil {
		return anywhere, "", fmt.Sprintf("persistent volume %q: %v", pv.Name, err)
	}
	return where, p.driverOf(pv, claim), ""
}

// nodesOf is where a volume can be used: by its node affinity, and by the zone labels of older volumes, which list
// several zones joined by "__".
func nodesOf(pv *corev1.PersistentVolume) (requirements.Alternatives, error) {
	out := requirements.AnyOf(requirements.Set{})
	if pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil {
		terms, err := requirements.FromNodeSelector(pv.Spec.NodeAffinity.Required)
		if err != nil {
			return out, err
		}
		out = terms
	}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion} {
		if v, ok := pv.Labels[key]; ok {
			out = out.Intersect(requirements.AnyOf(requirements.MustOf(requirements.In(key, strings.Split(v, "__")...))))
		}
	}
	return out, nil
}

func (p *Problem) driverOf(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	if pv != nil && pv.Spec.CSI != nil {
		return pv.Spec.CSI.Driver
	}
	if pv != nil && pv.Spec.AWSElasticBlockStore != nil {
		return "ebs.csi.aws.com"
	}
	if pv != nil {
		return ""
	}
	if class := p.classOf(claim); class != nil {
		return migrated(class.Provisioner)
	}
	return ""
}

// migrated is the CSI driver that serves a provisioner of the days before CSI.
func migrated(provisioner string) string {
	switch provisioner {
	case "kubernetes.io/aws-ebs":
		return "ebs.csi.aws.com"
	case "kubernetes.io/gce-pd":
		return "pd.csi.storage.gke.io"
	case "kubernetes.io/azure-disk":
		return "disk.csi.azure.com"
	case noProvisioner:
		return ""
	}
	return provisioner
}

const noProvisioner = "kubernetes.io/no-provisioner"

func (p *Problem) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	name := p.volumes.defaultClass
	if claim.Spec.StorageClassName != nil {
		name = *claim.Spec.StorageClassName
	}
	return p.volumes.classes[name]
}

func (p *Problem) locateUnbound(c *Class, claim *corev1.PersistentVolumeClaim, key string) (where requirements.Alternatives, driver, why string) {
	anywhere := requirements.AnyOf(requirements.Set{})
	class := p.classOf(claim)
	switch {
	case class == nil && claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName != "":
		return anywhere, "", fmt.Sprintf("storage class %q of claim %q does not exist", *claim.Spec.StorageClassName, claim.Name)
	case class == nil:
		return anywhere, "", fmt.Sprintf("claim %q is bound to no volume and there is no default storage class", claim.Name)
	case class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
		return anywhere, "", fmt.Sprintf("claim %q waits for its volume to be made (storage class %q binds at once)", claim.Name, class.Name)
	}
	if pv := p.staticFor(claim, class, key); pv != nil {
		where, err := nodesOf(pv)
		if err != nil {
			return anywhere, "", fmt.Sprintf("persistent volume %q: %v", pv.Name, err)
		}
		return where, p.driverOf(pv, claim), ""
	}
	if class.Provisioner == noProvisioner {
		return anywhere, "", fmt.Sprintf("no volume of storage class %q is left for claim %q", class.Name, claim.Name)
	}
	if len(class.AllowedTopologies) > 0 {
		var sets []requirements.Set
		for _, t := range class.AllowedTopologies {
			var b requirements.Builder
			for _, e := range t.MatchLabelExpressions {
				b.Add(requirements.In(e.Key, e.Values...))
			}
			if set, err := b.Set(); err == nil {
				sets = append(sets, set)
			}
		}
		anywhere = requirements.AnyOf(sets...)
	}
	c.unbound = append(c.unbound, key)
	return anywhere, migrated(class.Provisioner), ""
}

// staticFor gives the claim the smallest volume that suits it and is given to no other.
func (p *Problem) staticFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, key string) *corev1.PersistentVolume {
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	for _, pv := range p.volumes.free {
		owner, taken := p.volumes.taken[pv.Name]
		size := pv.Spec.Capacity[corev1.ResourceStorage]
		if taken && owner != key || pv.Spec.StorageClassName != class.Name || size.Cmp(want) < 0 || !subsetOf(claim.Spec.AccessModes, pv.Spec.AccessModes) {
			continue
		}
		if claim.Spec.Selector != nil || volumeMode(claim.Spec.VolumeMode) != volumeMode(pv.Spec.VolumeMode) {
			continue
		}
		p.volumes.taken[pv.Name] = key
		return pv
	}
	return nil
}

func volumeMode(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if m == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *m
}

func subsetOf(a, b []corev1.PersistentVolumeAccessMode) bool {
	return !slices.ContainsFunc(a, func(m corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(b, m) })
}

// joinUnbound keeps pods that share a claim whose volume is yet to be made in one zone: that of the first of them.
func (p *Problem) joinUnbound() {
	byClaim := map[string][]int{}
	var order []string
	for i, c := range p.Classes {
		for _, key := range c.unbound {
			if byClaim[key] == nil {
				order = append(order, key)
			}
			byClaim[key] = append(byClaim[key], i)
		}
	}
	for _, key := range order {
		members := byClaim[key]
		if len(members) == 1 && (len(p.Classes[members[0]].Pods) == 1 || p.Classes[members[0]].ephemeral(key)) {
			continue
		}
		id := p.groups.claim(key, members)
		for _, i := range members {
			c := p.Classes[i]
			c.memberOf = append(c.memberOf, id)
			c.topology.terms = append(c.topology.terms, term{group: id, hard: true, self: true})
		}
	}
}

// ephemeral reports whether the claim is one that each pod has for itself.
func (c *Class) ephemeral(key string) bool {
	for i := range c.Template.Spec.Volumes {
		if v := &c.Template.Spec.Volumes[i]; v.Ephemeral != nil && c.Template.Namespace+"/"+claimName(c.Pods[0], v) == key {
			return true
		}
	}
	return false
}

// attachRoom takes what running pods attach from a node's limits; nodes without a limit for a driver have room for any
// number.
func (p *Problem) attachRoom(r *Room) {
	var csi *storagev1.CSINode
	for _, n := range p.snapshot.Volumes.CSINodes {
		if n.Name == r.Node.Name {
			csi = n
		}
	}
	for i, name := range p.Resources {
		driver, ok := strings.CutPrefix(string(name), string(AttachLimit("")))
		if !ok {
			continue
		}
		r.Free[i] = noAttachLimit
		if csi == nil {
			continue
		}
		for _, d := range csi.Spec.Drivers {
			if d.Name == driver && d.Allocatable != nil && d.Allocatable.Count != nil {
				r.Free[i] = int64(*d.Allocatable.Count) - int64(p.attachedTo(r, driver))
			}
		}
	}
}

// noAttachLimit is more volumes than any node will ever hold.
const noAttachLimit int64 = 1 << 40

// attachedTo counts the volumes of a driver that running pods of the node use, each once.
func (p *Problem) attachedTo(r *Room, driver string) int {
	seen := map[string]bool{}
	for _, pod := range r.running {
		for i := range pod.Spec.Volumes {
			name := claimName(pod, &pod.Spec.Volumes[i])
			claim := p.volumes.claims[pod.Namespace+"/"+name]
			if name == "" || claim == nil {
				continue
			}
			if p.driverOf(p.volumes.persistent[claim.Spec.VolumeName], claim) == driver {
				seen[cmp.Or(claim.Spec.VolumeName, pod.Namespace+"/"+name)] = true
			}
		}
	}
	return len(seen)
}
