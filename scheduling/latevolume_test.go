package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
)

// Of two free volumes of equal size, kube-scheduler may take the one that another pod needs, unless
// that pod is bound first.
func TestAVolumeThatMayBeTakenIsNotCountedOn(t *testing.T) {
	late, class := storagev1.VolumeBindingWaitForFirstConsumer, "local"
	nodes := func(names ...string) *corev1.VolumeNodeAffinity {
		return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: names}},
		}}}}
	}
	storage := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
	for name, c := range map[string]struct {
		wide     string // size of the volume that both nodes reach
		anyOrder bool
	}{"of one size": {"1Gi", false}, "larger than the other": {"2Gi", true}} {
		t.Run(name, func(t *testing.T) {
			s := scheduling.Snapshot{
				Nodes:          []*corev1.Node{node("n1"), node("n2")},
				StorageClasses: []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &late}},
				PersistentVolumes: []*corev1.PersistentVolume{
					{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: class, Capacity: storage("1Gi"), NodeAffinity: nodes("n1")}},
					{ObjectMeta: metav1.ObjectMeta{Name: "wide"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: class, Capacity: storage(c.wide), NodeAffinity: nodes("n1", "n2")}},
				},
			}
			for _, name := range []string{"n1", "n2"} {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
				claim.Spec.StorageClassName, claim.Spec.Resources.Requests = &class, storage("1Gi")
				s.PersistentVolumeClaims = append(s.PersistentVolumeClaims, claim)
				s.Pods = append(s.Pods, pod(name, func(p *corev1.Pod) {
					p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: name}
					p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
				}))
			}
			bindings := solve(compile(t, s), nothing).Bindings()
			assert.NotEmpty(t, bindings)
			if c.anyOrder {
				assert.Len(t, bindings, 2)
			} else if len(bindings) == 2 {
				assert.Equal(t, "n2", bindings[0].Pod.Name)
			}
		})
	}
}

// A free volume may ask about a label key that no pod asks about. Nodes to buy show that key, so a
// volume that one pod takes there is not promised to another pod.
func TestNodesToComeShowWhatFreeVolumesAskAbout(t *testing.T) {
	const key = "topology.ebs.csi.aws.com/zone"
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "free"}}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-a"}}},
	}}}}
	p := compile(t, scheduling.Snapshot{
		Pods: []*corev1.Pod{pod("web-0")}, Pools: []scheduling.Pool{pool("default")}, PersistentVolumes: []*corev1.PersistentVolume{volume},
	})
	assert.True(t, p.Shapes[0].Labels.Has(key) || p.Shapes[0].Offerings[0].Labels.Has(key))
}
