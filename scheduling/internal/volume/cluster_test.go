package volume_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
)

func noted(key, value string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value) }
}

// What controllers write into claims, volumes and nodes decides where a pod can go, as in kube-scheduler's volume plugins.
func TestWhatOthersWrite(t *testing.T) {
	gold, yes := "gold", true
	at := func(zone string, edits ...func(*storagev1.CSIStorageCapacity)) *storagev1.CSIStorageCapacity {
		c := &storagev1.CSIStorageCapacity{StorageClassName: "limited", Capacity: new(resource.MustParse("20Gi"))}
		c.NodeTopology = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: zone}}
		for _, e := range edits {
			e(c)
		}
		return c
	}
	x := volume.NewIndex(volume.Objects{
		Classes: []*storagev1.StorageClass{storage("fast", "ebs.csi.aws.com"), storage("limited", "csi.example.com"), storage("local", "kubernetes.io/no-provisioner")},
		Drivers: []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}}},
		Capacities: []*storagev1.CSIStorageCapacity{
			at("a"), at("b", func(c *storagev1.CSIStorageCapacity) { c.MaximumVolumeSize = new(resource.MustParse("5Gi")) }),
			at("c", func(c *storagev1.CSIStorageCapacity) { c.Capacity = nil }), at("d", func(c *storagev1.CSIStorageCapacity) { c.NodeTopology = nil }),
		},
		Persistent: []*corev1.PersistentVolume{
			persistent("plain", "local", "10Gi", in(corev1.LabelHostname, corev1.NodeSelectorOpIn, "plain")),
			persistent("golden", "local", "10Gi", in(corev1.LabelHostname, corev1.NodeSelectorOpIn, "golden"), func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = &gold }),
			persistent("red", "", "10Gi", in(corev1.LabelHostname, corev1.NodeSelectorOpIn, "red"), func(v *corev1.PersistentVolume) {
				v.Labels, v.Annotations = map[string]string{"colour": "red"}, map[string]string{corev1.BetaStorageClassAnnotation: "local"}
			}),
		},
		Claims: []*corev1.PersistentVolumeClaim{
			claim("waits", of("fast"), noted("volume.kubernetes.io/selected-node", "n1")),
			claim("waits-for-none", of("local"), noted("volume.kubernetes.io/selected-node", "n1")),
			claim("sized", of("limited")), claim("beta", noted(corev1.BetaStorageClassAnnotation, "limited")),
			claim("golden", of("local"), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &gold }),
			claim("red", of("local"), func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"colour": "red"}}
			}),
			claim("huge", of("limited"), func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("99Gi")
			}),
		},
	})
	for name, want := range map[string]string{
		"waits": `"node name" in (n1)`, "sized": "topology.kubernetes.io/zone in (a)", "beta": "topology.kubernetes.io/zone in (a)",
		"golden": "kubernetes.io/hostname in (golden)", "red": "kubernetes.io/hostname in (red)",
	} {
		got := x.Assign(nil, []volume.Consumer{{Pod: pod("p", name)}})[0]
		assert.Empty(t, got.Refusal, name)
		assert.Equal(t, want, got.Where.String(), name)
	}
	for name, want := range map[string]string{
		"huge":           `no node can have a volume of storage class "limited" that is large enough for claim "huge"`,
		"waits-for-none": `claim "waits-for-none" waits for a volume on node "n1", but storage class "local" creates none`,
	} {
		assert.Equal(t, want, x.Assign(nil, []volume.Consumer{{Pod: pod("p", name)}})[0].Refusal)
	}
	assert.Empty(t, x.NewBinder().Late(x, pod("p", "waits")), "its volume is being made")
}

// A volume that a node still has takes a slot, once for all that use it, and so does a disk that a pod names itself.
func TestAttachedVolumesTakeSlots(t *testing.T) {
	limit := int32(5)
	disk := func(p *corev1.Pod) *corev1.Pod {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}})
		return p
	}
	has := func(volume string) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "ebs.csi.aws.com", NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		}}
	}
	x := volume.NewIndex(volume.Objects{
		CSINodes: []*storagev1.CSINode{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: "ebs.csi.aws.com", Allocatable: &storagev1.VolumeNodeResources{Count: &limit}}},
		}}},
		Persistent:  []*corev1.PersistentVolume{persistent("used", "fast", "10Gi", csi("ebs.csi.aws.com")), persistent("lingers", "fast", "10Gi", csi("ebs.csi.aws.com"))},
		Claims:      []*corev1.PersistentVolumeClaim{claim("data", of("fast"), boundTo("used"))},
		Attachments: []*storagev1.VolumeAttachment{has("used"), has("lingers"), has("unknown")},
	})
	assert.Equal(t, int64(2), x.AttachRoom("n1", "ebs.csi.aws.com", []*corev1.Pod{disk(pod("a", "data")), disk(pod("b", "data"))}))
	assert.Equal(t, []string{"ebs.csi.aws.com vol-1", "lingers", "used"}, x.Attached("n1", []*corev1.Pod{disk(pod("a", "data"))}))
	need := x.Assign(nil, []volume.Consumer{{Pod: disk(pod("c"))}})[0]
	q := need.Attached[volume.AttachLimit("ebs.csi.aws.com")]
	assert.Equal(t, int64(1), q.Value())
}

// A driver may keep its pods from nodes on which it does not run yet, whatever these could attach.
func TestDriversThatMustBeThere(t *testing.T) {
	driver := func(name, spec string) *storagev1.CSIDriver {
		out := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.NoError(t, json.Unmarshal([]byte(spec), &out.Spec))
		return out
	}
	strict := driver("strict.example.com", `{"preventPodSchedulingIfMissing": true}`)
	if text, err := json.Marshal(strict); err != nil || !strings.Contains(string(text), "prevent") {
		t.Skip("the API types of this version do not have the field")
	}
	runs := func(node string, drivers ...string) *storagev1.CSINode {
		n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}}
		for _, d := range drivers {
			n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: d})
		}
		return n
	}
	x := volume.NewIndex(volume.Objects{
		Drivers:    []*storagev1.CSIDriver{strict, driver("lax.example.com", `{"preventPodSchedulingIfMissing": false}`)},
		CSINodes:   []*storagev1.CSINode{runs("n1", "strict.example.com"), runs("n2", "lax.example.com"), runs("n3")},
		Persistent: []*corev1.PersistentVolume{persistent("old", "fast", "10Gi", csi("strict.example.com"))},
		Claims:     []*corev1.PersistentVolumeClaim{claim("data", of("fast"), boundTo("old"))},
	})
	assert.Equal(t, []string{"old"}, x.Attached("n1", []*corev1.Pod{pod("a", "data")}))
	assert.Empty(t, x.Attached("n2", []*corev1.Pod{pod("a", "data")}), "a pod that is there already does not let others in")
	for node, lacks := range map[string]bool{"n1": false, "n2": true, "n3": true, "n4": true} {
		assert.Equal(t, lacks, x.Lacks(node, "strict.example.com"), node)
		assert.False(t, x.Lacks(node, "lax.example.com"), node)
		assert.False(t, x.Lacks(node, "unknown.example.com"), node)
	}
}

// One pod has a ReadWriteOncePod claim, whoever else waits for it; and a claim that a refused pod would have had is another's.
func TestOnePodHasAClaimForOne(t *testing.T) {
	alone := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
	x := volume.NewIndex(volume.Objects{Classes: []*storagev1.StorageClass{storage("fast", "ebs.csi.aws.com")}, Claims: []*corev1.PersistentVolumeClaim{claim("data", of("fast"), alone)}})
	groups := x.Alone([][]*corev1.Pod{{pod("a", "data"), pod("b", "data"), pod("c", "data")}, {pod("d"), pod("e")}})
	assert.Equal(t, []int{1, 2, 2}, []int{len(groups[0]), len(groups[1]), len(groups[2])})
	got := x.Assign(nil, []volume.Consumer{{Pod: pod("a", "data", "missing")}, {Pod: pod("b", "data")}, {Pod: pod("c", "data"), Count: 2}})
	assert.NotEmpty(t, got[0].Refusal)
	assert.Empty(t, got[1].Refusal)
	assert.NotEmpty(t, got[2].Refusal)
}

// The generic ephemeral volume of a pod goes with it: the pod that is made anew has another one, in any zone.
func TestEphemeralVolumesOfPodsThatAreMadeAnew(t *testing.T) {
	x := volume.NewIndex(volume.Objects{
		Classes:    []*storagev1.StorageClass{storage("fast", "ebs.csi.aws.com")},
		Persistent: []*corev1.PersistentVolume{persistent("pv", "fast", "10Gi", in(corev1.LabelTopologyZone, "In", "a"))},
		Claims:     []*corev1.PersistentVolumeClaim{claim("p-scratch", of("fast"), boundTo("pv"))},
	})
	p := pod("p")
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim("", of("fast")).Spec},
	}}}}
	assert.False(t, x.Assign(nil, []volume.Consumer{{Pod: p}})[0].Where.At(0).IsAnything())
	p.UID = podclass.MadeAnew
	assert.True(t, x.Assign(nil, []volume.Consumer{{Pod: p}})[0].Where.At(0).IsAnything())
}
