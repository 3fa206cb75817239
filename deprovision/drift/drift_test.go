package drift_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision/drift"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func subject(change ...func(*drift.Subject)) drift.Subject {
	offering := instancetypes.Offering{Requirements: requirements.MustOf(requirements.In(corev1.LabelTopologyZone, "z1"), requirements.In(instancetypes.LabelCapacityType, "on-demand"))}
	s := drift.Subject{
		Labels: map[string]string{
			corev1.LabelInstanceTypeStable: "m.large", corev1.LabelTopologyZone: "z1", instancetypes.LabelCapacityType: "on-demand", "team": "shop",
		},
		Annotations: map[string]string{},
		Age:         2 * time.Hour,
		Pool: &nodepool.NodePool{Name: "default", Metadata: metav1.ObjectMeta{Annotations: map[string]string{
			"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v3",
		}}},
		Types: []instancetypes.InstanceType{{Name: "m.large", Offerings: []instancetypes.Offering{offering}}},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestReasons(t *testing.T) {
	hash := func(value, version string) func(*drift.Subject) {
		return func(s *drift.Subject) {
			s.Annotations["karpenter.sh/nodepool-hash"], s.Annotations["karpenter.sh/nodepool-hash-version"] = value, version
		}
	}
	asks := func(r ...requirements.Requirement) func(*drift.Subject) {
		return func(s *drift.Subject) { s.Pool.Requirements = requirements.MustOf(r...) }
	}
	label := func(key, value string) func(*drift.Subject) { return func(s *drift.Subject) { s.Labels[key] = value } }
	for name, c := range map[string]struct {
		subject drift.Subject
		want    []string
	}{
		"as bought":                   {subject(), nil},
		"no pool":                     {drift.Subject{}, nil},
		"by hand":                     {drift.Subject{Annotations: map[string]string{drift.VoluntaryDisruption: "drifted"}}, []string{"annotation karpenter.sh/voluntary-disruption=drifted"}},
		"same hash":                   {subject(hash("1", "v3")), nil},
		"another hash":                {subject(hash("2", "v3")), []string{"the settings of pool default have changed (hash 2, now 1)"}},
		"another version":             {subject(hash("2", "v2")), nil},
		"requirement":                 {subject(asks(requirements.In("team", "batch"))), []string{`pool default requires team in (batch), but the node has "shop"`}},
		"requirement met":             {subject(asks(requirements.NotIn("team", "batch"))), nil},
		"label missing":               {subject(asks(requirements.Exists("lane"))), []string{"pool default requires lane, but the node has no such label"}},
		"type gone":                   {subject(label(corev1.LabelInstanceTypeStable, "m.small")), []string{"type m.small does not exist any more"}},
		"zone gone":                   {subject(label(corev1.LabelTopologyZone, "z9")), []string{"type m.large is no longer offered in zone z9 as on-demand"}},
		"too young to say":            {subject(label(corev1.LabelInstanceTypeStable, "m.small"), func(s *drift.Subject) { s.Age = time.Hour }), nil},
		"reserved, on-demand offered": {subject(label(instancetypes.LabelCapacityType, "reserved")), nil},
		"spot, not offered":           {subject(label(instancetypes.LabelCapacityType, "spot")), []string{"type m.large is no longer offered in zone z1 as spot"}},
		"image":                       {subject(func(s *drift.Subject) { s.Image, s.Images = "ami-1", []string{"ami-2"} }), []string{"image ami-1 is not one that new nodes get now"}},
		"image unknown":               {subject(func(s *drift.Subject) { s.Image = "ami-1" }), nil},
	} {
		assert.Equal(t, c.want, drift.Reasons(c.subject), name)
	}
}

func TestHashIsComputedWhereThePoolHasNone(t *testing.T) {
	month := 720 * time.Hour
	pool := nodepool.NodePool{
		Name: "default", APIVersion: nodepool.V1, Labels: map[string]string{"team": "shop", "tier": "web"}, NodeClass: nodepool.NodeClassRef{Group: "g", Kind: "K", Name: "n"},
		Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: "b", Value: "1", Effect: corev1.TaintEffectNoExecute}}, Disruption: nodepool.Disruption{ExpireAfter: &month},
	}
	bought, ok := drift.Hash(&pool)
	assert.True(t, ok)
	s := drift.Subject{Labels: map[string]string{}, Pool: &pool, Annotations: map[string]string{"karpenter.sh/nodepool-hash": bought, "karpenter.sh/nodepool-hash-version": drift.HashVersion}}
	assert.Empty(t, drift.Reasons(s))

	same := pool
	same.Taints = []corev1.Taint{pool.Taints[1], pool.Taints[0]}
	same.Requirements = requirements.MustParse("other in (x)")
	again, _ := drift.Hash(&same)
	assert.Equal(t, bought, again, "neither the order of lists nor requirements matter")

	changed := pool
	changed.Labels = map[string]string{"team": "shop", "tier": "db"}
	s.Pool = &changed
	now, _ := drift.Hash(&changed)
	assert.Equal(t, []string{"the settings of pool default have changed (hash " + bought + ", now " + now + ")"}, drift.Reasons(s))
	assert.Empty(t, drift.Unknown(s))

	s.Annotations["karpenter.sh/nodepool-hash-version"] = "v2"
	assert.Empty(t, drift.Reasons(s))
	assert.Equal(t, []string{`it is not known whether the settings of pool default have changed: the node's hash has version "v2", the pool's has "v3"`}, drift.Unknown(s))

	changed.APIVersion = nodepool.V1Beta1
	assert.Equal(t, []string{"it is not known whether the settings of pool default have changed: it has no annotation karpenter.sh/nodepool-hash"}, drift.Unknown(s))
	since := metav1.NewTime(time.Unix(1, 0))
	changed.APIVersion, changed.Taints = nodepool.V1, []corev1.Taint{{Key: "a", TimeAdded: &since}}
	_, ok = drift.Hash(&changed)
	assert.False(t, ok)
	assert.Empty(t, drift.Unknown(drift.Subject{}))
}

func ExampleHash() {
	fmt.Println(drift.Hash(&nodepool.NodePool{APIVersion: nodepool.V1, NodeClass: nodepool.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}}))
	// Output: 17369979337536258260 true
}

func ExampleUnknown() {
	pool := nodepool.NodePool{Name: "default", APIVersion: nodepool.V1Beta1}
	fmt.Println(drift.Unknown(drift.Subject{Annotations: map[string]string{"karpenter.sh/nodepool-hash": "7"}, Pool: &pool}))
	// Output: [it is not known whether the settings of pool default have changed: it has no annotation karpenter.sh/nodepool-hash]
}

func ExampleReasons() {
	pool := nodepool.NodePool{Name: "default", Requirements: requirements.MustParse("team in (batch)")}
	fmt.Println(drift.Reasons(drift.Subject{Labels: map[string]string{"team": "shop"}, Pool: &pool}))
	// Output: [pool default requires team in (batch), but the node has "shop"]
}
