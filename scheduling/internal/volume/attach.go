package volume

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

const attachPrefix = "attachable-volumes-csi-"

// Unlimited is the attach limit of nodes without one.
const Unlimited int64 = 1 << 40

// AttachLimit returns the resource that counts the attached volumes of a CSI driver. An instance
// type without it in its capacity has no limit.
func AttachLimit(driver string) corev1.ResourceName {
	return corev1.ResourceName(attachPrefix + driver)
}

// Driver returns the CSI driver of an [AttachLimit]; false for other resources.
func Driver(name corev1.ResourceName) (string, bool) {
	return strings.CutPrefix(string(name), attachPrefix)
}

// AttachRoom returns how many more volumes of a driver a node can attach: its limit less the
// volumes of its running pods and those of others that it still has. It is [Unlimited] if the node
// has no limit for the driver, and negative if more are attached.
func (x *Index) AttachRoom(node, driver string, running []*corev1.Pod) int64 {
	csi := x.nodes[node]
	if csi == nil {
		return Unlimited
	}
	for _, d := range csi.Spec.Drivers {
		if d.Name == driver && d.Allocatable != nil && d.Allocatable.Count != nil {
			free := int64(*d.Allocatable.Count)
			for _, other := range x.drivers(node, running) {
				if other == driver {
					free--
				}
			}
			return free
		}
	}
	return Unlimited
}

// Lacks reports whether kube-scheduler keeps the driver's pods from the node because the driver
// does not run there yet (spec.preventPodSchedulingIfMissing of a CSIDriver, since 1.37).
func (x *Index) Lacks(node, driver string) bool {
	if !x.mandatory[driver] {
		return false
	}
	csi := x.nodes[node]
	return csi == nil || !runs(csi, driver)
}

// runs reports whether a driver has registered with the node.
func runs(n *storagev1.CSINode, driver string) bool {
	return slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
}

// preventsIfMissing reads the field by its name in JSON, because the oldest API types that this
// module compiles with do not have it.
func preventsIfMissing(d *storagev1.CSIDriver) bool {
	var spec struct {
		PreventPodSchedulingIfMissing bool `json:"preventPodSchedulingIfMissing"`
	}
	text, err := json.Marshal(&d.Spec)
	return err == nil && json.Unmarshal(text, &spec) == nil && spec.PreventPodSchedulingIfMissing
}

// Attached returns the volumes that a node has or that its pods use, sorted; see [Need].Shareable.
// Those of drivers that the node lacks are left out, because kube-scheduler asks for the driver
// whatever is attached.
func (x *Index) Attached(node string, running []*corev1.Pod) []string {
	all := x.drivers(node, running)
	maps.DeleteFunc(all, func(_, driver string) bool { return x.Lacks(node, driver) })
	return slices.Sorted(maps.Keys(all))
}

// drivers returns the drivers of the volumes that a node has or that its pods use, by volume.
func (x *Index) drivers(node string, running []*corev1.Pod) map[string]string {
	out := map[string]string{}
	maps.Copy(out, x.attachments[node])
	for _, pod := range running {
		for _, u := range x.uses(pod) {
			if u.claim != nil {
				out[nameOf(u.claim)] = x.driver(x.persistent[u.claim.Spec.VolumeName], u.claim)
			}
		}
		for i := range pod.Spec.Volumes {
			if disk, driver := inline(&pod.Spec.Volumes[i]); driver != "" {
				out[diskName(disk, driver)] = driver
			}
		}
	}
	return out
}

// attached returns the drivers of the volumes that a node has according to attachments, by node and
// volume.
func (x *Index) attached(list []*storagev1.VolumeAttachment) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, a := range list {
		name := a.Spec.Source.PersistentVolumeName
		if name == nil || x.persistent[*name] == nil || x.persistent[*name].Spec.CSI == nil { // kube-scheduler ignores it
			continue
		}
		if out[a.Spec.NodeName] == nil {
			out[a.Spec.NodeName] = map[string]string{}
		}
		out[a.Spec.NodeName][*name] = a.Spec.Attacher
	}
	return out
}

// diskName names a disk that pods name themselves.
func diskName(disk, driver string) string { return driver + " " + disk }

// nameOf names the volume of a claim, or the claim if there is no volume yet.
func nameOf(claim *corev1.PersistentVolumeClaim) string {
	return cmp.Or(claim.Spec.VolumeName, keyOf(claim.Namespace, claim.Name))
}
