package volume_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
)

// Two deployments share a claim whose volume is not made yet. Where can their pods go?
func ExampleNewIndex() {
	mode, class := storagev1.VolumeBindingWaitForFirstConsumer, "fast"
	objects := volume.Objects{
		Classes: []*storagev1.StorageClass{{
			ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "ebs.csi.aws.com", VolumeBindingMode: &mode,
			AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: corev1.LabelTopologyZone, Values: []string{"zone-a", "zone-b"}},
			}}},
		}},
		Claims: []*corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "photos"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
		}},
	}
	consumers := []volume.Consumer{{Pod: pod("web-0", "photos"), Count: 2}, {Pod: pod("thumbnails-0", "photos"), Count: 1}, {Pod: pod("db-0", "data"), Count: 1}}
	needs := volume.NewIndex(objects).Assign(nil, consumers)
	for i, n := range needs {
		if n.Refusal != "" {
			fmt.Println(consumers[i].Pod.Name, "can't run:", n.Refusal)
			continue
		}
		fmt.Println(consumers[i].Pod.Name, n.Where, n.Unbound)
	}
	for _, s := range volume.Shared(consumers, needs) {
		fmt.Println(s.Claim, "is shared by", s.Consumers)
	}
	// Output:
	// web-0 topology.kubernetes.io/zone in (zone-a,zone-b) [shop/photos]
	// thumbnails-0 topology.kubernetes.io/zone in (zone-a,zone-b) [shop/photos]
	// db-0 can't run: persistent volume claim "data" does not exist
	// shop/photos is shared by [0 1]
}

func ExampleAttachLimit() {
	fmt.Println(volume.AttachLimit("ebs.csi.aws.com"))
	// Output: attachable-volumes-csi-ebs.csi.aws.com
}
