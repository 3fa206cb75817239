package scheduling_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// What has no meaning is an error that names the object, all at once, and never a panic or a plan.
func TestSnapshotsWithoutMeaningAreRefused(t *testing.T) {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	pod := func(spread ...corev1.TopologySpreadConstraint) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: named("web"), Spec: corev1.PodSpec{TopologySpreadConstraints: spread}}
	}
	zero := int32(0)
	minus := corev1.ResourceList{"cpu": resource.MustParse("-1")}
	pools := func(types ...instancetypes.InstanceType) []scheduling.Pool {
		return []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "p"}, Types: types}}
	}
	priced := func(price float64) instancetypes.InstanceType {
		return instancetypes.InstanceType{Name: "a", Offerings: []instancetypes.Offering{{Price: price, Available: true}}}
	}
	for want, s := range map[string]scheduling.Snapshot{
		"Pods[0]: is nil":                              {Pods: []*corev1.Pod{nil}},
		"Nodes[0]: is nil":                             {Nodes: []*corev1.Node{nil}},
		"DaemonSets[0]: is nil":                        {DaemonSets: []*appsv1.DaemonSet{nil}},
		"Namespaces[0]: is nil":                        {Namespaces: []*corev1.Namespace{nil}},
		"pods[0]: has no name":                         {Pods: []*corev1.Pod{{}}},
		"pod shop/web: is there more than once":        {Pods: []*corev1.Pod{pod(), pod()}},
		"node n: is there more than once":              {Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, {ObjectMeta: metav1.ObjectMeta{Name: "n"}}}},
		"nodeClaims[0]: has no name":                   {NodeClaims: []scheduling.NodeClaim{{}}},
		"claim c: is there more than once":             {NodeClaims: []scheduling.NodeClaim{{Name: "c"}, {Name: "c"}}},
		"claim d: has the same node as claim c, n":     {NodeClaims: []scheduling.NodeClaim{{Name: "c", NodeName: "n"}, {Name: "d", NodeName: "n"}}},
		"claim d: has the same provider id as claim c": {NodeClaims: []scheduling.NodeClaim{{Name: "c", ProviderID: "i"}, {Name: "d", ProviderID: "i"}}},
		"claim c: cpu is -1":                           {NodeClaims: []scheduling.NodeClaim{{Name: "c", Capacity: minus}}},
		"DaemonSet shop/d: is there more than once":    {DaemonSets: []*appsv1.DaemonSet{{ObjectMeta: named("d")}, {ObjectMeta: named("d")}}},
		"pool p: is there more than once":              {Pools: append(pools(), pools()...)},
		"pools[0]: has no name":                        {Pools: []scheduling.Pool{{}}},
		"instance type a: is there more than once":     {Pools: pools(priced(1), priced(2))},
		"types[0]: has no name":                        {Pools: pools(instancetypes.InstanceType{})},
		"instance type a: cpu is -1":                   {Pools: pools(instancetypes.InstanceType{Name: "a", Capacity: minus})},
		"node n: cpu is -1, must not be negative":      {Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: minus}}}},
		"limit of pool p: cpu is -1":                   {Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "p", Limits: minus}}}},
		"pod shop/web: spec.topologySpreadConstraints[0].maxSkew is 0, must be 1 or more":    {Pods: []*corev1.Pod{pod(corev1.TopologySpreadConstraint{TopologyKey: "z"})}},
		"pod shop/web: spec.topologySpreadConstraints[0].minDomains is 0, must be 1 or more": {Pods: []*corev1.Pod{pod(corev1.TopologySpreadConstraint{TopologyKey: "z", MaxSkew: 1, MinDomains: &zero})}},
		"pod shop/web: spec.topologySpreadConstraints[0].topologyKey is empty":               {Pods: []*corev1.Pod{pod(corev1.TopologySpreadConstraint{MaxSkew: 1})}},
	} {
		_, err := scheduling.Compile(s, nil)
		require.ErrorContains(t, err, want)
	}
	// A price that is none keeps its offering from being bought, and is noted.
	p := compile(t, scheduling.Snapshot{Pools: pools(priced(math.NaN()))})
	assert.Equal(t, []string{"instance type a: offering 0 costs NaN an hour, which is no price, and is not for sale"}, p.Notes)
	assert.Empty(t, p.Shapes)
	_, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{nil, pod(), pod()}, Nodes: []*corev1.Node{nil}}, nil)
	assert.ErrorContains(t, err, "Pods[0]")
	assert.ErrorContains(t, err, "Nodes[0]")
	assert.ErrorContains(t, err, "shop/web")
	var bad *scheduling.SnapshotError
	require.ErrorAs(t, err, &bad)
}
