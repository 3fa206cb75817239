package volume_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
)

// A need says where a pod's volumes let it go and how many it attaches. A bound claim ties the pod
// to the place of its volume.
func ExampleNeed() {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-7"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-7"}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-b"}}},
		}}}},
	}}
	bound := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pv.Name}}
	index := volume.NewIndex(volume.Objects{Persistent: []*corev1.PersistentVolume{pv}, Claims: []*corev1.PersistentVolumeClaim{bound}})

	need := index.Assign(nil, []volume.Consumer{{Pod: pod("db-0", "data")}})[0]
	fmt.Println("where:", need.Where)
	attached := need.Attached[volume.AttachLimit("ebs.csi.aws.com")]
	fmt.Println("attaches:", attached.String())
	// Output:
	// where: topology.kubernetes.io/zone in (zone-b)
	// attaches: 1
}

// Three pods wait for one volume. It is made where the first pod goes, and binds the others to that
// zone. So a scheduler must keep them together.
func ExampleSharedClaim() {
	mode, class := storagev1.VolumeBindingWaitForFirstConsumer, "fast"
	index := volume.NewIndex(volume.Objects{
		Classes: []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "ebs.csi.aws.com", VolumeBindingMode: &mode}},
		Claims:  []*corev1.PersistentVolumeClaim{claim("photos", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class })},
	})
	consumers := []volume.Consumer{{Pod: pod("web-0", "photos"), Count: 2}, {Pod: pod("cron-0")}, {Pod: pod("thumbnails-0", "photos")}}
	for _, s := range volume.Shared(consumers, index.Assign(nil, consumers)) {
		for _, i := range s.Consumers {
			fmt.Println(s.Claim, "keeps", consumers[i].Pod.Name, "in the zone of the others")
		}
	}
	// Output:
	// shop/photos keeps web-0 in the zone of the others
	// shop/photos keeps thumbnails-0 in the zone of the others
}

// Volumes that other pods may also use are named, so that a node attaches each only once. Those of
// running pods have the same names.
func ExampleAttachment() {
	mode, class := storagev1.VolumeBindingWaitForFirstConsumer, "fast"
	index := volume.NewIndex(volume.Objects{
		Classes: []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "ebs.csi.aws.com", VolumeBindingMode: &mode}},
		Claims:  []*corev1.PersistentVolumeClaim{claim("photos", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class })},
	})
	for _, a := range index.Assign(nil, []volume.Consumer{{Pod: pod("web-0", "photos")}})[0].Shareable {
		fmt.Println(a.Volume, "under", a.Limit)
	}
	fmt.Println(index.Attached("", []*corev1.Pod{pod("cron-0", "photos"), pod("cron-1", "photos")}))
	// Output:
	// shop/photos under attachable-volumes-csi-ebs.csi.aws.com
	// [shop/photos]
}
