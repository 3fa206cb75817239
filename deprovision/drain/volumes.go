package drain

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Attached returns the names of the persistent volumes that are still attached to the node although
// no remaining pod uses them, sorted. If the node is given back before these volumes are detached,
// pods that use them cannot start elsewhere for minutes. pods are the pods that remain on the node.
// claims must include the volume claims of the namespaces of these pods.
func Attached(node string, attachments []*storagev1.VolumeAttachment, pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim) []string {
	type key struct{ namespace, claim string }
	stay := map[key]bool{}
	for _, p := range pods {
		for _, v := range p.Spec.Volumes {
			switch {
			case v.PersistentVolumeClaim != nil:
				stay[key{p.Namespace, v.PersistentVolumeClaim.ClaimName}] = true
			case v.Ephemeral != nil:
				stay[key{p.Namespace, p.Name + "-" + v.Name}] = true
			}
		}
	}
	used := map[string]bool{}
	for _, c := range claims {
		used[c.Spec.VolumeName] = used[c.Spec.VolumeName] || stay[key{c.Namespace, c.Name}]
	}
	var out []string
	for _, a := range attachments {
		if name := a.Spec.Source.PersistentVolumeName; a.Spec.NodeName == node && name != nil && !used[*name] {
			out = append(out, *name)
		}
	}
	slices.Sort(out)
	return out
}
