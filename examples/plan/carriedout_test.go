package plan_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/pricing"
	"github.com/joinery-sdk/joinery/scheduling"
)

// What a plan places runs afterwards with what an API server adds to it, so that the next plan does not give its place away.
func TestCarriedOutPodsTakeWhatAdmissionGivesThem(t *testing.T) {
	bare := func(names ...string) []*corev1.Pod {
		var out []*corev1.Pod
		for _, name := range names {
			p := job(name, 1, "1")[0]
			p.Spec.Containers[0].Resources.Requests = nil
			out = append(out, p)
		}
		return out
	}
	limits := &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("2")}}}}}
	limits.Name, limits.Namespace = "limits", "lab"
	s := scheduling.Snapshot{Pods: bare("a", "b"), Pools: []scheduling.Pool{limited(0, "z")}, LimitRanges: []*corev1.LimitRange{limits}}
	first, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	require.Len(t, first.NewNodes(), 1)

	after := first.CarriedOut()
	require.Len(t, after.Nodes, 1)
	after.Pods = append(slices.Clone(after.Pods), bare("c")...)
	second, err := plan.Make(t.Context(), after, nil)
	require.NoError(t, err)
	assert.Len(t, second.NewNodes(), 1, "the first node is full")
	assert.Nil(t, s.Pods[0].Spec.Containers[0].Resources.Requests, "the pods that were given are as they were")
}

// The prices of a plan's own snapshot are those of its objective, so its options do not take a discount off once more.
func TestOptionsPlanTheSameAgain(t *testing.T) {
	s := scheduling.Snapshot{Pods: job("train", 3, "2"), Pools: []scheduling.Pool{limited(0, "z")}}
	first, err := plan.Make(t.Context(), s, &plan.Options{Objective: &plan.Objective{PerNode: 0.01, Prices: []instancetypes.PriceSource{pricing.Discount{Percent: 50}}}})
	require.NoError(t, err)
	require.Positive(t, first.Cost())
	by := first.Options()
	again, err := plan.Make(t.Context(), first.Problem.Snapshot(), &by)
	require.NoError(t, err)
	assert.Equal(t, first.Cost(), again.Cost())
}

// A volume that was made for a pod is in its zone, and keeps the next pod of its claim there.
func TestCarriedOutVolumesAreInTheirZones(t *testing.T) {
	with := func(name, zone string) *corev1.Pod {
		p := job(name, 1, "3")[0]
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		if zone != "" {
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
		}
		return p
	}
	mode, class := storagev1.VolumeBindingWaitForFirstConsumer, "block"
	claim := &corev1.PersistentVolumeClaim{}
	claim.Name, claim.Namespace = "data", "lab"
	claim.Spec = corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}}
	storage := &storagev1.StorageClass{Provisioner: "block.csi.example.com", VolumeBindingMode: &mode}
	storage.Name = class
	s := scheduling.Snapshot{
		Pods: []*corev1.Pod{with("a", "z2")}, Pools: []scheduling.Pool{limited(0, "z1", "z2")}, StorageClasses: []*storagev1.StorageClass{storage},
		PersistentVolumeClaims: []*corev1.PersistentVolumeClaim{claim},
	}
	first, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	after := first.CarriedOut()
	after.Pods = append(slices.Clone(after.Pods), with("b", ""))
	second, err := plan.Make(t.Context(), after, nil)
	require.NoError(t, err)
	require.Len(t, second.NewNodes(), 1)
	assert.Equal(t, "z2", second.NewNodes()[0].Zone, "though z1 is cheaper")
	assert.Empty(t, claim.Spec.VolumeName, "the claim that was given is as it was")
}

// A claim that a StatefulSet makes with its pod outlives the pod, and its volume is in the zone of
// the first one. A pod's own ephemeral volume goes with the pod, and shared file systems are
// everywhere.
func TestCarriedOutClaimsOfStatefulSets(t *testing.T) {
	storage := func(name, driver string) *storagev1.StorageClass {
		mode := storagev1.VolumeBindingWaitForFirstConsumer
		c := &storagev1.StorageClass{Provisioner: driver, VolumeBindingMode: &mode}
		c.Name = name
		return c
	}
	for name, c := range map[string]struct{ template, class, zone string }{
		"of a set":       {"data", "block", "z2"},
		"of the pod":     {"", "block", ""},
		"a shared class": {"data", "files", ""},
	} {
		p := job("a", 1, "3")[0]
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "z2"}
		made := &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &c.class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		}}
		made.Name = c.template
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: made}}}}
		s := scheduling.Snapshot{Pods: []*corev1.Pod{p}, Pools: []scheduling.Pool{limited(0, "z1", "z2")}, StorageClasses: []*storagev1.StorageClass{storage("block", "block.csi.example.com"), storage("files", "efs.csi.aws.com")}}
		first, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		after := first.CarriedOut()
		require.Len(t, after.Pods, 1)
		var zones []string
		for _, v := range after.PersistentVolumes {
			if v.Spec.NodeAffinity != nil {
				zones = append(zones, v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values...)
			}
		}
		if c.zone == "" {
			assert.Empty(t, zones, name)
		} else {
			assert.Equal(t, []string{c.zone}, zones, name)
		}
		claim := after.Pods[0].Spec.Volumes[0].PersistentVolumeClaim
		assert.Equal(t, c.template != "", claim != nil, name)
		if claim != nil {
			assert.Equal(t, "data-"+p.Name, claim.ClaimName)
			require.Len(t, after.PersistentVolumeClaims, 1)
			assert.Equal(t, claim.ClaimName, after.PersistentVolumeClaims[0].Name)
		}
		assert.NotNil(t, p.Spec.Volumes[0].Ephemeral, "the pod that was given is as it was")
		again, err := plan.Make(t.Context(), after, nil)
		require.NoError(t, err)
		assert.Empty(t, again.NewNodes(), name)
		assert.Empty(t, again.Unplaced(), name)
	}
}
