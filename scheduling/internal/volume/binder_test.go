package volume_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
)

// kube-scheduler binds a claim to the smallest free volume that the node reaches, and to any of several of one size. A pod is let in only
// where a volume is left for it whichever was taken before.
func TestFreeVolumesAreBoundAsKubeSchedulerMay(t *testing.T) {
	inZones := func(name, size string, zones ...string) *corev1.PersistentVolume {
		return persistent(name, "local", size, in(corev1.LabelTopologyZone, "In", zones...))
	}
	type bound struct{ claim, zone string }
	for name, c := range map[string]struct {
		volumes []*corev1.PersistentVolume
		bind    []bound
		ok      []bool
	}{
		"one in each zone": {
			[]*corev1.PersistentVolume{inZones("1", "10Gi", "a"), inZones("2", "10Gi", "b")},
			[]bound{{"x", "a"}, {"y", "a"}, {"y", "b"}},
			[]bool{true, false, true},
		},
		"two of one reach": {
			[]*corev1.PersistentVolume{inZones("1", "10Gi", "a"), inZones("2", "10Gi", "a")},
			[]bound{{"x", "a"}, {"y", "a"}, {"z", "a"}},
			[]bool{true, true, false},
		},
		"the smaller one is taken, though the other zone reaches no other": {
			[]*corev1.PersistentVolume{inZones("1", "10Gi", "a", "b"), inZones("2", "20Gi", "a")},
			[]bound{{"x", "a"}, {"y", "b"}, {"y", "a"}},
			[]bool{true, false, true},
		},
		"the larger one is left": {
			[]*corev1.PersistentVolume{inZones("1", "10Gi", "a"), inZones("2", "20Gi", "a", "b")},
			[]bound{{"x", "a"}, {"y", "b"}},
			[]bool{true, true},
		},
		"of two of one size the one that both zones reach may be taken": {
			[]*corev1.PersistentVolume{inZones("1", "10Gi", "a"), inZones("2", "10Gi", "a", "b")},
			[]bound{{"x", "a"}, {"y", "b"}},
			[]bool{true, false},
		},
		"and one more is enough": {
			[]*corev1.PersistentVolume{inZones("1", "10Gi", "a"), inZones("2", "10Gi", "a", "b"), inZones("3", "10Gi", "a", "b")},
			[]bound{{"x", "a"}, {"y", "b"}, {"z", "b"}},
			[]bool{true, true, false},
		},
		"other users of a claim go where its volume is": {
			[]*corev1.PersistentVolume{inZones("1", "10Gi", "a", "b")},
			[]bound{{"x", "a"}, {"x", "b"}, {"x", "c"}},
			[]bool{true, true, false},
		},
		"and where each that it may be is": {
			[]*corev1.PersistentVolume{inZones("1", "10Gi", "a"), inZones("2", "10Gi", "a", "b")},
			[]bound{{"x", "a"}, {"x", "b"}, {"x", "a"}},
			[]bool{true, false, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := volume.Objects{Persistent: c.volumes, Classes: []*storagev1.StorageClass{storage("local", "kubernetes.io/no-provisioner")}}
			for _, name := range []string{"x", "y", "z"} {
				o.Claims = append(o.Claims, claim(name, of("local")))
			}
			x := volume.NewIndex(o)
			b := x.NewBinder()
			for i, at := range c.bind {
				assert.Equal(t, c.ok[i], b.Bind(b.Late(x, pod("p", at.claim)), map[string]string{corev1.LabelTopologyZone: at.zone}), "%v", at)
			}
		})
	}
}

// A driver makes a volume where no free one is reached; one that is reached is taken first, and ties the claim.
func TestFreeVolumesOfADriverAreTakenFirst(t *testing.T) {
	x := volume.NewIndex(volume.Objects{
		Persistent: []*corev1.PersistentVolume{persistent("1", "fast", "10Gi", in(corev1.LabelHostname, "In", "n1"))},
		Classes:    []*storagev1.StorageClass{storage("fast", "ebs.csi.aws.com")},
		Claims:     []*corev1.PersistentVolumeClaim{claim("x", of("fast")), claim("y", of("fast"))},
	})
	b := x.NewBinder()
	bind := func(claim, node string) bool {
		return b.Bind(b.Late(x, pod("p", claim)), map[string]string{corev1.LabelHostname: node})
	}
	assert.True(t, bind("x", "n1"))
	assert.False(t, bind("x", "n2"), "its volume is of n1")
	assert.True(t, bind("y", "n1"))
	assert.True(t, bind("y", "n2"), "its volume was made")
}

// A volume that a driver makes is where its class and what it publishes say, for all pods of the claim.
func TestVolumesAreMadeWhereTheyCanBe(t *testing.T) {
	yes := true
	x := volume.NewIndex(volume.Objects{
		Classes:    []*storagev1.StorageClass{storage("fast", "csi.example.com")},
		Drivers:    []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}}},
		Capacities: []*storagev1.CSIStorageCapacity{{StorageClassName: "fast", Capacity: new(resource.MustParse("20Gi")), NodeTopology: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"b"}}}}}},
		Claims:     []*corev1.PersistentVolumeClaim{claim("x", of("fast"))},
	})
	b := x.NewBinder()
	bind := func(zone string) bool {
		return b.Bind(b.Late(x, pod("p", "x")), map[string]string{corev1.LabelTopologyZone: zone})
	}
	assert.False(t, bind("b"))
	assert.True(t, bind("a"))
	assert.False(t, bind("b"), "it was made elsewhere")
}

// Each pod of a template has a volume of its own.
func TestEphemeralVolumesAreNotShared(t *testing.T) {
	p := pod("p")
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim("", of("local")).Spec},
	}}}}
	x := volume.NewIndex(volume.Objects{
		Persistent: []*corev1.PersistentVolume{persistent("1", "local", "10Gi"), persistent("2", "local", "10Gi")},
		Classes:    []*storagev1.StorageClass{storage("local", "kubernetes.io/no-provisioner")},
	})
	b := x.NewBinder()
	for i := range 3 {
		assert.Equal(t, i < 2, b.Bind(b.Late(x, p), nil))
	}
}

// A claim without a volume is scarce if one that suits is free, whoever was given it and wherever it is.
func TestScarceVolumes(t *testing.T) {
	here := requirements.AnyOf(requirements.MustOf(requirements.In(corev1.LabelTopologyZone, "a")))
	x := volume.NewIndex(volume.Objects{
		Persistent: []*corev1.PersistentVolume{persistent("1", "local", "10Gi", in(corev1.LabelTopologyZone, "In", "a")), persistent("2", "far", "10Gi", in(corev1.LabelTopologyZone, "In", "b"))},
		Classes:    []*storagev1.StorageClass{storage("local", "kubernetes.io/no-provisioner"), storage("far", "kubernetes.io/no-provisioner"), storage("none", "kubernetes.io/no-provisioner")},
		Claims:     []*corev1.PersistentVolumeClaim{claim("x", of("local")), claim("y", of("local")), claim("z", of("far")), claim("w", of("none"))},
	})
	got := x.Assign(nil, []volume.Consumer{
		{Pod: pod("first", "x"), Required: here}, {Pod: pod("second", "y"), Required: here}, {Pod: pod("third", "z"), Required: here}, {Pod: pod("fourth", "w"), Required: here},
	})
	for i, scarce := range []bool{false, true, true, false} {
		assert.Equal(t, scarce, got[i].Scarce, i)
		assert.Equal(t, i > 0, got[i].Refusal != "", i)
		assert.True(t, got[i].Certain.At(0).IsAnything(), "kube-scheduler may bind it to another")
	}
	assert.Equal(t, "topology.kubernetes.io/zone in (a)", got[0].Where.String())
}
