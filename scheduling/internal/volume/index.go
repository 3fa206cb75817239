package volume

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
)

// Objects are volumes and what refers to them, in any order. The zero value has none.
type Objects struct {
	// Persistent are the persistent volumes, bound or not.
	Persistent []*corev1.PersistentVolume
	// Claims are the persistent volume claims of all namespaces.
	Claims []*corev1.PersistentVolumeClaim
	// Classes are the storage classes. The annotation storageclass.kubernetes.io/is-default-class
	// makes one the default.
	Classes []*storagev1.StorageClass
	// CSINodes say how many volumes of each driver a node takes. Attachments say which volumes a
	// node has, in use or not.
	CSINodes    []*storagev1.CSINode
	Attachments []*storagev1.VolumeAttachment
	// Drivers say whether they publish Capacities, and whether pods may go to nodes on which the
	// driver does not run yet. Capacities say where a driver can make volumes of a class, and how
	// large.
	Drivers    []*storagev1.CSIDriver
	Capacities []*storagev1.CSIStorageCapacity
}

// Index finds the objects that volumes refer to. It is immutable and safe for concurrent use; the
// zero value holds nothing.
type Index struct {
	claims       map[string]*corev1.PersistentVolumeClaim // by namespace/name
	reserved     map[string]bool                          // claims that have their volume because it names them
	persistent   map[string]*corev1.PersistentVolume
	classes      map[string]*storagev1.StorageClass
	defaultClass string
	unclaimed    []*corev1.PersistentVolume // free volumes, the smallest first
	nodes        map[string]*storagev1.CSINode
	attachments  map[string]map[string]string               // drivers of the volumes that a node has, by node and volume
	limited      map[string]bool                            // drivers that publish capacities
	migrated     map[string]migrated                        // nodes that leave in-tree volumes to a driver, by driver
	mandatory    map[string]bool                            // drivers without which a node takes none of their pods
	capacities   map[string][]*storagev1.CSIStorageCapacity // by storage class
}

// NewIndex indexes the objects by name, and keeps pointers to them. Of several default storage
// classes the newest is used, of equal ages the first by name. A claim without a volume is bound to
// the volume that names it, as the volume controller does before a pod is scheduled. It costs
// O(objects), and sorts the free volumes.
func NewIndex(o Objects) *Index {
	x := &Index{
		claims:     make(map[string]*corev1.PersistentVolumeClaim, len(o.Claims)),
		reserved:   map[string]bool{},
		persistent: make(map[string]*corev1.PersistentVolume, len(o.Persistent)),
		classes:    make(map[string]*storagev1.StorageClass, len(o.Classes)),
		nodes:      make(map[string]*storagev1.CSINode, len(o.CSINodes)),
		limited:    map[string]bool{},
		migrated:   migratedBy(o.CSINodes),
		mandatory:  map[string]bool{},
		capacities: map[string][]*storagev1.CSIStorageCapacity{},
	}
	wanted := map[string]bool{} // by name of the volume: some claim asks for it
	for _, c := range o.Claims {
		x.claims[keyOf(c.Namespace, c.Name)] = c
		wanted[c.Spec.VolumeName] = true
	}
	for _, pv := range o.Persistent {
		x.persistent[pv.Name] = pv
		x.bindReserved(pv)
		if pv.Spec.ClaimRef == nil && !wanted[pv.Name] && (pv.Status.Phase == "" || pv.Status.Phase == corev1.VolumeAvailable) && pv.DeletionTimestamp == nil {
			x.unclaimed = append(x.unclaimed, pv)
		}
	}
	slices.SortFunc(x.unclaimed, func(a, b *corev1.PersistentVolume) int {
		x, y := a.Spec.Capacity[corev1.ResourceStorage], b.Spec.Capacity[corev1.ResourceStorage]
		return cmp.Or(x.Cmp(y), strings.Compare(a.Name, b.Name))
	})
	for _, c := range o.Classes {
		x.classes[c.Name] = c
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" && beforeAsDefault(c, x.classes[x.defaultClass]) {
			x.defaultClass = c.Name
		}
	}
	for _, n := range o.CSINodes {
		x.nodes[n.Name] = n
	}
	for _, d := range o.Drivers {
		if preventsIfMissing(d) {
			x.mandatory[d.Name] = true
		}
		x.limited[d.Name] = d.Spec.StorageCapacity != nil && *d.Spec.StorageCapacity
	}
	for _, c := range o.Capacities {
		x.capacities[c.StorageClassName] = append(x.capacities[c.StorageClassName], c)
	}
	x.attachments = x.attached(o.Attachments)
	return x
}

// keyOf returns the namespace/name of a claim. An API server puts a claim without a namespace into
// "default".
func keyOf(namespace, name string) string {
	return cmp.Or(namespace, corev1.NamespaceDefault) + "/" + name
}

// bindReserved binds a claim without a volume to the first volume by name that names the claim.
func (x *Index) bindReserved(pv *corev1.PersistentVolume) {
	ref := pv.Spec.ClaimRef
	if ref == nil || pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed {
		return
	}
	key := keyOf(ref.Namespace, ref.Name)
	claim := x.claims[key]
	if claim == nil || ref.UID != "" && claim.UID != "" && ref.UID != claim.UID { // an earlier claim of the name
		return
	}
	if has := claim.Spec.VolumeName; has == "" || x.reserved[key] && pv.Name < has {
		bound := *claim
		bound.Spec.VolumeName = pv.Name
		x.claims[key], x.reserved[key] = &bound, true
	}
}

// beforeAsDefault reports whether a, rather than b, is used as the default class. b may be nil.
func beforeAsDefault(a, b *storagev1.StorageClass) bool {
	return b == nil || cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}

// use is the claim to which a volume of a pod refers.
type use struct {
	key       string // of the claim, as namespace/name
	name      string
	ephemeral bool
	claim     *corev1.PersistentVolumeClaim // nil if it does not exist
	text      string                        // what reasons call it: the same for all pods of a template
}

// uses returns the claims of a pod's volumes, without duplicates. The claim of an ephemeral volume
// is named after the pod. If it does not exist yet, it is that of the template.
func (x *Index) uses(pod *corev1.Pod) []use {
	var out []use
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		u := use{ephemeral: v.Ephemeral != nil}
		switch {
		case v.PersistentVolumeClaim != nil:
			u.name = v.PersistentVolumeClaim.ClaimName
		case u.ephemeral:
			u.name = pod.Name + "-" + v.Name
		}
		if u.name == "" || slices.ContainsFunc(out, func(o use) bool { return o.name == u.name }) {
			continue
		}
		u.key, u.text = keyOf(pod.Namespace, u.name), fmt.Sprintf("claim %q", u.name)
		if u.claim = x.claims[u.key]; u.ephemeral && pod.UID == podclass.MadeAnew {
			u.claim = nil // its volume goes with the existing pod
		}
		if u.claim == nil && u.ephemeral && v.Ephemeral.VolumeClaimTemplate != nil {
			u.claim = &corev1.PersistentVolumeClaim{Spec: v.Ephemeral.VolumeClaimTemplate.Spec}
			u.claim.Namespace, u.claim.Name = pod.Namespace, u.name
			u.text = fmt.Sprintf("volume %q", v.Name)
		}
		out = append(out, u)
	}
	return out
}

// storageClass returns the class that a claim names, or the default class; nil if there is neither.
func (x *Index) storageClass(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	name := x.defaultClass
	if named, ok := className(claim); ok {
		name = named
	}
	return x.classes[name]
}

// className returns the class that a claim names; false for none. The annotation is older than the
// field, and is read first.
func className(claim *corev1.PersistentVolumeClaim) (string, bool) {
	if name, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name, true
	}
	if name := claim.Spec.StorageClassName; name != nil {
		return *name, true
	}
	return "", false
}

// classOf returns the class of a volume; empty for none.
func classOf(pv *corev1.PersistentVolume) string {
	if name, ok := pv.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	return pv.Spec.StorageClassName
}

const noProvisioner = "kubernetes.io/no-provisioner"

// The CSI drivers of in-tree volumes; see csi-translation-lib.
const (
	ebsDriver      = "ebs.csi.aws.com"
	gceDriver      = "pd.csi.storage.gke.io"
	azureDriver    = "disk.csi.azure.com"
	cinderDriver   = "cinder.csi.openstack.org"
	portworxDriver = "pxd.portworx.com"
)

// driverOf returns the CSI driver of the volumes that a class makes; empty if it makes none.
// In-tree provisioners have one too.
func driverOf(class *storagev1.StorageClass) string {
	switch class.Provisioner {
	case "kubernetes.io/aws-ebs":
		return ebsDriver
	case "kubernetes.io/gce-pd":
		return gceDriver
	case "kubernetes.io/azure-disk":
		return azureDriver
	case "kubernetes.io/cinder":
		return cinderDriver
	case "kubernetes.io/portworx-volume":
		return portworxDriver
	case noProvisioner:
		return ""
	}
	return class.Provisioner
}

// driver returns the CSI driver that attaches a claim's volume; pv is nil if the volume is not made
// yet. It is empty if kube-scheduler counts no attachment.
func (x *Index) driver(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	if pv == nil {
		if class := x.storageClass(claim); class != nil {
			return driverOf(class)
		}
		return ""
	}
	switch s := &pv.Spec; {
	case s.CSI != nil:
		return s.CSI.Driver
	case s.AWSElasticBlockStore != nil:
		return ebsDriver
	case s.GCEPersistentDisk != nil:
		return gceDriver
	case s.AzureDisk != nil:
		return azureDriver
	case s.Cinder != nil:
		return cinderDriver
	case s.PortworxVolume != nil:
		return portworxDriver
	}
	return ""
}

// inline returns a disk that a pod names itself, and the CSI driver that attaches it; empty for
// other volumes.
func inline(v *corev1.Volume) (disk, driver string) {
	switch {
	case v.AWSElasticBlockStore != nil:
		return v.AWSElasticBlockStore.VolumeID, ebsDriver
	case v.GCEPersistentDisk != nil:
		return v.GCEPersistentDisk.PDName, gceDriver
	case v.AzureDisk != nil:
		return v.AzureDisk.DataDiskURI, azureDriver
	case v.Cinder != nil:
		return v.Cinder.VolumeID, cinderDriver
	case v.PortworxVolume != nil:
		return v.PortworxVolume.VolumeID, portworxDriver
	}
	return "", ""
}
