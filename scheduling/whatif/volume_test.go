package whatif_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

const driver = "block.csi.example.com"

func claims(names ...string) scheduling.Snapshot {
	var out scheduling.Snapshot
	for _, name := range names {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: name}
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"z1"}},
		}}}}}
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		c.Spec.VolumeName, c.Status.Phase = pv.Name, corev1.ClaimBound
		out.PersistentVolumes, out.PersistentVolumeClaims = append(out.PersistentVolumes, pv), append(out.PersistentVolumeClaims, c)
	}
	return out
}

func uses(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	}
}

func TestVolumes(t *testing.T) {
	p, q := pod("p", "a", "1", uses("data-p")), pod("q", "b", "1", uses("data-q"))
	limit := int32(1)
	full := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: driver, NodeID: "b", Allocatable: &storagev1.VolumeNodeResources{Count: &limit}},
	}}}
	ask := func(s scheduling.Snapshot) whatif.Answer {
		s.Nodes, s.Pods = []*corev1.Node{node("a", "z1", "4"), node("b", "z1", "4"), node("c", "z2", "4")}, []*corev1.Pod{p, q}
		s.Pools = []scheduling.Pool{market()}
		c, err := whatif.Compile(s, nil)
		require.NoError(t, err)
		return c.Ask(t.Context(), whatif.Question{Remove: []string{"a"}, Pods: []*corev1.Pod{p}, Explain: true})
	}
	free := claims("data-p", "data-q")
	assert.Equal(t, []string{"p>b"}, places(ask(free)), "the volume is in zone z1")
	taken := claims("data-p", "data-q")
	taken.CSINodes = []*storagev1.CSINode{full}
	a := ask(taken)
	assert.False(t, a.OK(), "b attaches one volume and has it")
	assert.Contains(t, a.Why, "attachable-volumes-csi-"+driver)
	missing := ask(scheduling.Snapshot{})
	assert.False(t, missing.OK())
	assert.Contains(t, missing.Why, "does not exist")
}
