package scheduling_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// What has no meaning is an error that names the object. All are reported at once, and there is
// never a panic or a plan.
func TestSnapshotsWithoutMeaningAreRefused(t *testing.T) {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	pod := func(spread ...corev1.TopologySpreadConstraint) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: named("web"), Spec: corev1.PodSpec{TopologySpreadConstraints: spread}}
	}
	asks := func(edit func(*corev1.PodSpec)) scheduling.Snapshot {
		p := pod()
		edit(&p.Spec)
		return scheduling.Snapshot{Pods: []*corev1.Pod{p}}
	}
	perhaps := corev1.NodeInclusionPolicy("Perhaps")
	zero, below := int32(0), int64(-2)
	minus := corev1.ResourceList{"cpu": resource.MustParse("-1")}
	pools := func(types ...instancetypes.InstanceType) []scheduling.Pool {
		return []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "p"}, Types: types}}
	}
	priced := func(price float64) instancetypes.InstanceType {
		return instancetypes.InstanceType{Name: "a", Offerings: []instancetypes.Offering{{Price: price, Available: true}}}
	}
	for want, s := range map[string]scheduling.Snapshot{
		"Pods[0]: is nil":                                                                    {Pods: []*corev1.Pod{nil}},
		"Nodes[0]: is nil":                                                                   {Nodes: []*corev1.Node{nil}},
		"DaemonSets[0]: is nil":                                                              {DaemonSets: []*appsv1.DaemonSet{nil}},
		"Namespaces[0]: is nil":                                                              {Namespaces: []*corev1.Namespace{nil}},
		"pods[0]: has no name":                                                               {Pods: []*corev1.Pod{{}}},
		"pod shop/web: is listed more than once":                                             {Pods: []*corev1.Pod{pod(), pod()}},
		"pod default/web: is listed more than once":                                          {Pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}}},
		"node n: is listed more than once":                                                   {Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, {ObjectMeta: metav1.ObjectMeta{Name: "n"}}}},
		"nodeClaims[0]: has no name":                                                         {NodeClaims: []scheduling.NodeClaim{{}}},
		"claim c: is listed more than once":                                                  {NodeClaims: []scheduling.NodeClaim{{Name: "c"}, {Name: "c"}}},
		"claim d: has the same node as claim c, n":                                           {NodeClaims: []scheduling.NodeClaim{{Name: "c", NodeName: "n"}, {Name: "d", NodeName: "n"}}},
		"claim d: has the same provider id as claim c":                                       {NodeClaims: []scheduling.NodeClaim{{Name: "c", ProviderID: "i"}, {Name: "d", ProviderID: "i"}}},
		"claim c: cpu is -1":                                                                 {NodeClaims: []scheduling.NodeClaim{{Name: "c", Capacity: minus}}},
		"DaemonSet shop/d: is listed more than once":                                         {DaemonSets: []*appsv1.DaemonSet{{ObjectMeta: named("d")}, {ObjectMeta: named("d")}}},
		"pool p: is listed more than once":                                                   {Pools: append(pools(), pools()...)},
		"pools[0]: has no name":                                                              {Pools: []scheduling.Pool{{}}},
		"instance type a: is listed more than once":                                          {Pools: pools(priced(1), priced(2))},
		"types[0]: has no name":                                                              {Pools: pools(instancetypes.InstanceType{})},
		"instance type a: cpu is -1":                                                         {Pools: pools(instancetypes.InstanceType{Name: "a", Capacity: minus})},
		"node n: cpu is -1, must not be negative":                                            {Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: minus}}}},
		`pool p: spec.limits.ndoes: unknown resource (did you mean "nodes"?)`:                {Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "p", Limits: corev1.ResourceList{"ndoes": minus["cpu"]}}}}},
		`CapacityQuota q: limit of cpus: unknown resource (did you mean "cpu"?)`:             {Quotas: []capacityquota.Quota{{Name: "q", Limits: corev1.ResourceList{"cpus": resource.MustParse("8")}}}},
		"pool p: spec.limits.cpu: -1: must not be negative":                                  {Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "p", Limits: minus}}}},
		"pool p: spec.weight: -1: want 1 to 100":                                             {Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "p", Weight: -1}}}},
		"pool p: spec.replicas: -2: want 0 to 2147483648":                                    {Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "p", Replicas: &below}}}},
		"pool p: spec.template.spec.requirements.size.minValues: -3: want 1 to 50":           {Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "p", MinValues: map[string]int{"size": -3}}}}},
		"instance type a: reservation count of offering 1 is -4, must not be negative":       {Pools: pools(instancetypes.InstanceType{Name: "a", Offerings: []instancetypes.Offering{{}, {ReservationCount: -4}}})},
		"pod shop/web: spec.topologySpreadConstraints[0].maxSkew is 0, must be 1 or more":    {Pods: []*corev1.Pod{pod(corev1.TopologySpreadConstraint{TopologyKey: "z"})}},
		"pod shop/web: spec.topologySpreadConstraints[0].minDomains is 0, must be 1 or more": {Pods: []*corev1.Pod{pod(corev1.TopologySpreadConstraint{TopologyKey: "z", MaxSkew: 1, MinDomains: &zero})}},
		"pod shop/web: spec.topologySpreadConstraints[0].topologyKey is empty":               {Pods: []*corev1.Pod{pod(corev1.TopologySpreadConstraint{MaxSkew: 1})}},
		"PersistentVolumes[0]: is nil":                                                       {PersistentVolumes: []*corev1.PersistentVolume{nil}},
		"PersistentVolumeClaims[0]: is nil":                                                  {PersistentVolumeClaims: []*corev1.PersistentVolumeClaim{nil}},
		"StorageClasses[0]: is nil":                                                          {StorageClasses: []*storagev1.StorageClass{nil}},
		"CSINodes[0]: is nil":                                                                {CSINodes: []*storagev1.CSINode{nil}},
		"PriorityClasses[0]: is nil":                                                         {PriorityClasses: []*schedulingv1.PriorityClass{nil}},
		"RuntimeClasses[0]: is nil":                                                          {RuntimeClasses: []*nodev1.RuntimeClass{nil}},
		"LimitRanges[0]: is nil":                                                             {LimitRanges: []*corev1.LimitRange{nil}},
		"PersistentVolumeClaim shop/c: is listed more than once":                             {PersistentVolumeClaims: []*corev1.PersistentVolumeClaim{{ObjectMeta: named("c")}, {ObjectMeta: named("c")}}},
		`node n: taint a has the effect ""`:                                                  {Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a"}}}}}},
		`pool p: spec.template.spec.taints[0].effect: "No": want one of NoSchedule`:          {Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "p", Taints: []corev1.Taint{{Key: "a", Effect: "No"}}}}}},
		`pod shop/web: spec.topologySpreadConstraints[0].whenUnsatisfiable is "Sometimes"`:   {Pods: []*corev1.Pod{pod(corev1.TopologySpreadConstraint{TopologyKey: "z", MaxSkew: 1, WhenUnsatisfiable: "Sometimes"})}},
		`pod shop/web: spec.topologySpreadConstraints[0].nodeAffinityPolicy is "Perhaps"`:    {Pods: []*corev1.Pod{pod(corev1.TopologySpreadConstraint{TopologyKey: "z", MaxSkew: 1, NodeAffinityPolicy: &perhaps})}},
		`pod shop/web: spec.topologySpreadConstraints[0].nodeTaintsPolicy is "Perhaps"`:      {Pods: []*corev1.Pod{pod(corev1.TopologySpreadConstraint{TopologyKey: "z", MaxSkew: 1, NodeTaintsPolicy: &perhaps})}},
		`pod shop/web: spec.tolerations[0].operator is "Roughly", want Exists or Equal`:      asks(func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Key: "a", Operator: "Roughly"}} }),
		"pod shop/web: spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey is empty": asks(func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: make([]corev1.PodAffinityTerm, 1)}}
		}),
		"pod shop/web: spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey is empty": asks(func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: make([]corev1.WeightedPodAffinityTerm, 1)}}
		}),
		"pod shop/web: spec.containers[1].resources.requests: cpu is -1, must not be negative": asks(func(s *corev1.PodSpec) {
			s.Containers = make([]corev1.Container, 2) // together they would be 2
			s.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("3")}
			s.Containers[1].Resources.Requests = minus
		}),
		"pod shop/web: spec.initContainers[0].resources.limits: cpu is -1": asks(func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: minus}}}
		}),
		"pod shop/web: spec.overhead: cpu is -1":                                             asks(func(s *corev1.PodSpec) { s.Overhead = minus }),
		"pod shop/web: spec.resources.requests: cpu is -1":                                   asks(func(s *corev1.PodSpec) { s.Resources = &corev1.ResourceRequirements{Requests: minus} }),
		"pod shop/web: spec.containers: a pod needs at least one container":                  asks(func(*corev1.PodSpec) {}),
		`pod shop/web: spec.topologySpreadConstraints[0].whenUnsatisfiable: "": want one of`: {Pods: []*corev1.Pod{pod(corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "zone"})}},
		`pod shop/web: spec.containers[0].resources.limits.Memory: containers have no resource "Memory" (did you mean "memory"?)`: asks(func(s *corev1.PodSpec) {
			s.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"Memory": resource.MustParse("1Gi")}}}}
		}),
		"DaemonSet shop/d: spec.template.spec.containers[0].resources.requests: cpu is -1": {DaemonSets: []*appsv1.DaemonSet{{ObjectMeta: named("d"), Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: minus}}},
		}}}}}},
	} {
		require.ErrorContains(t, s.Validate(), want)
	}
	// An offering with an invalid price is not bought, and a note says so.
	p := compile(t, scheduling.Snapshot{Pools: pools(priced(math.NaN()))})
	assert.Equal(t, []string{"instance type a: offering 0 costs NaN an hour, which is not a valid price, so it is not for sale"}, p.Notes)
	assert.Empty(t, p.Shapes)
	// A pool without types to buy says so.
	ready := asks(func(s *corev1.PodSpec) { s.Containers = make([]corev1.Container, 1) })
	ready.Pools = pools()
	p = compile(t, ready)
	assert.Equal(t, []string{"pool p has no instance types and can buy nothing; give it those that its cloud offers"}, p.Notes)
	assert.Equal(t, `pool "p": it has no instance types`, solve(p, nothing).Unplaced()[0].Reasons()[0].String())
	_, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{nil, pod(), pod()}, Nodes: []*corev1.Node{nil}}, nil)
	assert.ErrorContains(t, err, "Pods[0]")
	assert.ErrorContains(t, err, "Nodes[0]")
	assert.ErrorContains(t, err, "shop/web")
	var bad *scheduling.InvalidError
	require.ErrorAs(t, err, &bad)
}

// A misspelt label excludes nothing, so the cheapest type anywhere would do. So it is refused below
// the domain of a cloud, or in the group of the node class and near a type's label. Elsewhere it is
// noted if it is close to a known one. A label of the pool's template is never a mistake.
func TestMisspeltLabelsOfPools(t *testing.T) {
	types := []instancetypes.InstanceType{{
		Name: "a", Requirements: requirements.MustParse("example.com/instance-family in (c), !example.com/instance-gpu-name, acme.example.org/hall in (1)"),
		Offerings: []instancetypes.Offering{{Price: 1, Available: true, Requirements: requirements.MustParse("topology.kubernetes.io/zone in (z)")}},
	}}
	for ask, want := range map[string]struct{ err, note string }{
		"example.com/instance-famly in (c)":  {err: `pool p: no instance type has the label "example.com/instance-famly"; did you mean "example.com/instance-family"?`},
		"label example.com/colour=red":       {},
		"label example.com/instance-famly=c": {note: `pool p: no instance type has the label "example.com/instance-famly", so it rules none out; did you mean "example.com/instance-family"?`},
		"label acme.example.org/wall=1":      {note: `pool p: no instance type has the label "acme.example.org/wall", so it rules none out; did you mean "acme.example.org/hall"?`},
		"label acme.example.org/dc=berlin":   {}, // the domain makes the keys long, but not similar
		"acme.example.org/dc in (berlin)":    {},
		"example.com/colour=red":             {note: `pool p: no instance type has the label "example.com/colour", so it rules none out`},
		"!example.com/colour":                {},
		"!example.com/instance-gpu-nam":      {note: `pool p: no instance type has the label "example.com/instance-gpu-nam", so it rules none out; did you mean "example.com/instance-gpu-name"?`},
		"example.com/instance-family in (c)": {},
		"!example.com/instance-gpu-name":     {},
		"example.com/nodeclass=c":            {},
		"team=red":                           {},
		"other.com/colour=red":               {},
		"topology.kubernetes.io/zoen=z":      {note: `pool p: no instance type has the label "topology.kubernetes.io/zoen", so it rules none out; did you mean "topology.kubernetes.io/zone"?`},
		"topology.kubernetes.io/rack=1":      {},
		"acme.example.org/tenant=a":          {},
		"acme.example.org/hal=old":           {note: `pool p: no instance type has the label "acme.example.org/hal", so it rules none out; did you mean "acme.example.org/hall"?`},
		"other.com/instance-family in (c)":   {note: `pool p: no instance type has the label "other.com/instance-family", so it rules none out; did you mean "example.com/instance-family"?`},
		"topology.kubernetes.io/zone=z":      {},
	} {
		t.Run(ask, func(t *testing.T) {
			pool := nodepool.NodePool{Name: "p", NodeClass: nodepool.NodeClassRef{Group: "example.com", Kind: "NodeClass", Name: "c"}}
			if label, own := strings.CutPrefix(ask, "label "); own { // of the template: the pool itself sets it
				pool.Labels = requirements.MustParse(label).Labels()
			} else {
				pool.Requirements = requirements.MustParse(ask)
			}
			p, err := scheduling.Compile(scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: pool, Types: types}}}, nil)
			if want.err != "" {
				require.ErrorContains(t, err, want.err)
				return
			}
			require.NoError(t, err)
			if want.note == "" {
				assert.Empty(t, p.Notes)
			} else {
				assert.Equal(t, []string{want.note}, p.Notes)
			}
		})
	}
}

// A pod that names a class that is not in the snapshot is planned without it, with a note, because
// a file of manifests need not hold everything of its cluster. A pod with a priority was stored by
// an API server.
func TestMissingClassesAreNoted(t *testing.T) {
	kata, priority := "kata", int32(5)
	names := func(name string, priority *int32) *corev1.Pod {
		return pod(name, func(p *corev1.Pod) {
			p.Spec.PriorityClassName, p.Spec.RuntimeClassName, p.Spec.Priority = "high", &kata, priority
		})
	}
	s := scheduling.Snapshot{Pods: []*corev1.Pod{names("a", nil), names("b", nil), names("c", &priority)}, Pools: []scheduling.Pool{pool("default")}}
	assert.Equal(t, []string{
		`PriorityClass "high", named by 2 pods, is not in the snapshot: pods are planned as if they named none; a cluster without it refuses them`,
		`RuntimeClass "kata", named by 2 pods, is not in the snapshot: pods are planned as if they named none; a cluster without it refuses them`,
	}, compile(t, s).Notes)
	s.PriorityClasses = []*schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 5}}
	s.RuntimeClasses = []*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "kata"}}}
	assert.Empty(t, compile(t, s).Notes)
}
