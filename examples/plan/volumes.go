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
// of its pod, unless its driver shares files over the network. Classes without a driver create
// none, because it is unknown which free volume a claim would get. A claim that a StatefulSet makes
// with its pod is created first, because it outlives the pod.
func bindVolumes(s *scheduling.Snapshot) {
	claimVolumes(s)
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
	if networked(driver) {
		return pv
	}
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

// networked reports whether the driver's volumes are file systems of the network, which nodes of
// every zone mount, whatever access mode a claim asks for.
func networked(driver string) bool {
	return slices.Contains([]string{"efs.csi.aws.com", "file.csi.azure.com", "nfs.csi.k8s.io", "smb.csi.k8s.io"}, driver)
}

// claimVolumes creates the claims of StatefulSets whose pods have nodes now. Until then such a
// claim is an ephemeral volume whose template has a name, which no ephemeral volume of a pod may
// have: the API server refuses it. The claim is named "<template>-<pod>".
func claimVolumes(s *scheduling.Snapshot) {
	var claims []*corev1.PersistentVolumeClaim
	pods := s.Pods
	for i, p := range s.Pods {
		if p.Spec.NodeName == "" || !slices.ContainsFunc(p.Spec.Volumes, ofSet) {
			continue
		}
		if len(claims) == 0 {
			pods = slices.Clone(pods)
		}
		with := *p
		with.Spec.Volumes = slices.Clone(p.Spec.Volumes)
		for k, v := range p.Spec.Volumes {
			if !ofSet(v) {
				continue
			}
			t := v.Ephemeral.VolumeClaimTemplate
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
			claim.Name, claim.Namespace = v.Name+"-"+p.Name, p.Namespace
			claims = append(claims, claim)
			with.Spec.Volumes[k].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}
		}
		pods[i] = &with
	}
	if len(claims) > 0 {
		s.Pods, s.PersistentVolumeClaims = pods, slices.Concat(s.PersistentVolumeClaims, claims)
	}
}

// ofSet reports whether a StatefulSet makes the claim of the volume.
func ofSet(v corev1.Volume) bool {
	return v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil && v.Ephemeral.VolumeClaimTemplate.Name != ""
}
