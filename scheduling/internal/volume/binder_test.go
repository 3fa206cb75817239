package volume_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

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
