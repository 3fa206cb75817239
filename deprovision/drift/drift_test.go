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
		"nobody's":                    {drift.Subject{}, nil},
		"by hand":                     {drift.Subject{Annotations: map[string]string{drift.VoluntaryDisruption: "drifted"}}, []string{"annotation karpenter.sh/voluntary-disruption=drifted"}},
		"same hash":                   {subject(hash("1", "v3")), nil},
		"another hash":                {subject(hash("2", "v3")), []string{"the settings of pool default have changed (hash 2, now 1)"}},
		"another version":             {subject(hash("2", "v2")), nil},
		"requirement":                 {subject(asks(requirements.In("team", "batch"))), []string{`pool default asks team in (batch), the node has "shop"`}},
		"requirement kept":            {subject(asks(requirements.NotIn("team", "batch"))), nil},
		"label missing":               {subject(asks(requirements.Exists("lane"))), []string{"pool default asks lane, the node has no such label"}},
		"type gone":                   {subject(label(corev1.LabelInstanceTypeStable, "m.small")), []string{"type m.small does not exist any more"}},
		"zone gone":                   {subject(label(corev1.LabelTopologyZone, "z9")), []string{"type m.large is no longer offered in zone z9 as on-demand"}},
		"too young to say":            {subject(label(corev1.LabelInstanceTypeStable, "m.small"), func(s *drift.Subject) { s.Age = time.Hour }), nil},
		"reserved, on-demand offered": {subject(label(instancetypes.LabelCapacityType, "reserved")), nil},
		"spot, not offered":           {subject(label(instancetypes.LabelCapacityType, "spot")), []string{"type m.large is no longer offered in zone z1 as spot"}},
		"image":                       {subject(func(s *drift.Subject) { s.Image, s.Images = "ami-1", []string{"ami-2"} }), []string{"image ami-1 is none of those that would be started now"}},
		"image unknown":               {subject(func(s *drift.Subject) { s.Image = "ami-1" }), nil},
	} {
		assert.Equal(t, c.want, drift.Reasons(c.subject), name)
	}
}

func ExampleReasons() {
	pool := nodepool.NodePool{Name: "default", Requirements: requirements.MustParse("team in (batch)")}
	fmt.Println(drift.Reasons(drift.Subject{Labels: map[string]string{"team": "shop"}, Pool: &pool}))
	// Output: [pool default asks team in (batch), the node has "shop"]
}
