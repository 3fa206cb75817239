package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
)

// bindVolumes creates the volumes of claims that pods in the snapshot use and that have no volume
// yet, as a driver would. A volume that only one node at a time may use is from then on in the zone
// of its pod. Classes without a driver create none, because it is unknown which free volume a claim
// would get.
func bindVolumes(s *scheduling.Snapshot) {
	drivers := map[string]string{}
	for _, c := range s.StorageClasses {
		if c.Provisioner != "" && c.Provisioner != "kubernetes.io/no-provisioner" {
			drivers[c.Name] = c.Provisioner
		}
	}
	standard := ""
	for _, c := range s.StorageClasses {
		if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" && (standard == "" || c.Name < standard) {
			standard = c.Name
		}
	}
	zones, home := map[string]string{}, map[string]string{}
	for _, n := range s.Nodes {
		zones[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	for _, p := range s.Pods {
		for _, v := range p.Spec.Volumes {
			if zone := zones[p.Spec.NodeName]; v.PersistentVolumeClaim != nil && zone != "" {
				home[cmp.Or(p.Namespace, corev1.NamespaceDefault)+"/"+v.PersistentVolumeClaim.ClaimName] = zone
			}
		}
	}
	if len(home) == 0 {
		return
	}
	s.PersistentVolumeClaims, s.PersistentVolumes = slices.Clone(s.PersistentVolumeClaims), slices.Clone(s.PersistentVolumes)
	for i, claim := range s.PersistentVolumeClaims {
		class := standard
		if claim.Spec.StorageClassName != nil {
			class = *claim.Spec.StorageClassName
		}
		zone := home[cmp.Or(claim.Namespace, corev1.NamespaceDefault)+"/"+claim.Name]
		if zone == "" || claim.Spec.VolumeName != "" || drivers[class] == "" {
			continue
		}
		pv := volumeOf(claim, class, drivers[class], zone)
		bound := claim.DeepCopy()
		bound.Spec.VolumeName, bound.Spec.StorageClassName, bound.Status.Phase = pv.Name, &class, corev1.ClaimBound
		s.PersistentVolumeClaims[i] = bound
		s.PersistentVolumes = append(s.PersistentVolumes, pv)
	}
}

func volumeOf(claim *corev1.PersistentVolumeClaim, class, driver, zone string) *corev1.PersistentVolume {
	name := "pvc-" + cmp.Or(claim.Namespace, corev1.NamespaceDefault) + "-" + claim.Name
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: class, VolumeMode: claim.Spec.VolumeMode,
		ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
	}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	shared := func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
	}
	if !slices.ContainsFunc(claim.Spec.AccessModes, shared) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	return pv
}
