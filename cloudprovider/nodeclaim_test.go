package cloudprovider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func spot(zone string) requirements.Set {
	return requirements.MustOf(requirements.In(corev1.LabelTopologyZone, zone), requirements.In(instancetypes.LabelCapacityType, "spot"))
}

func validClaim() cloudprovider.NodeClaim {
	return cloudprovider.NodeClaim{
		Name: "node-1", Token: "node-1-token", Pool: "general",
		Requirements: requirements.MustParse("team in (a,b)"),
		Requests:     corev1.ResourceList{"cpu": resource.MustParse("1")},
		Candidates:   []cloudprovider.Candidate{{Type: "m.large", Offering: spot("a")}, {Type: "m.large", Offering: spot("b")}},
		Labels:       map[string]string{"team": "a"},
		Taints:       []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}},
	}
}

func TestValidate(t *testing.T) {
	require.NoError(t, validClaim().Validate())

	err := cloudprovider.NodeClaim{}.Validate()
	for _, path := range []string{"name", "token", "candidates"} {
		require.ErrorContains(t, err, "cloudprovider: "+path+": ")
	}

	c := validClaim()
	c.Candidates = append(c.Candidates, c.Candidates[0], cloudprovider.Candidate{Offering: requirements.Impossible()})
	c.Labels = map[string]string{"team": "c"}
	err = c.Validate()
	for _, text := range []string{
		"candidates[2]: the same as candidates[0]", "candidates[3].type: required", "candidates[3].offering: no node satisfies it",
		`labels["team"]: "c" contradicts the requirement team in (a,b)`,
	} {
		require.ErrorContains(t, err, text)
	}
	var invalid *cloudprovider.InvalidError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "candidates[2]", invalid.Path)

	c = validClaim()
	c.Requirements = requirements.Impossible()
	require.ErrorContains(t, c.Validate(), "requirements: no node satisfies them")
}

// Tokens go into labels, tags and file names of clouds.
func TestTokens(t *testing.T) {
	for token, ok := range map[string]bool{
		"a": true, "0e5f6d0c-9b6e-4f5e-8a51-6b2f3f6b1c11": true, "ns/name:7_x.y": true, strings.Repeat("a", 128): true,
		strings.Repeat("a", 129): false, "": false, "a b": false, "a\n": false, "ä": false, "a=b": false, "\x00": false,
	} {
		c := validClaim()
		c.Token = token
		assert.Equal(t, ok, c.Validate() == nil, "%q", token)
	}
}

// variants are claims that differ in one respect, each by its name.
func variants() map[string]cloudprovider.NodeClaim {
	out := map[string]cloudprovider.NodeClaim{}
	for name, change := range map[string]func(*cloudprovider.NodeClaim){
		"nothing": func(*cloudprovider.NodeClaim) {}, "name": func(c *cloudprovider.NodeClaim) { c.Name = "x" }, "token": func(c *cloudprovider.NodeClaim) { c.Token = "x" },
		"pool": func(c *cloudprovider.NodeClaim) { c.Pool = "" }, "class": func(c *cloudprovider.NodeClaim) { c.NodeClass.Name = "x" },
		"requirements": func(c *cloudprovider.NodeClaim) { c.Requirements = requirements.Set{} },
		"requests":     func(c *cloudprovider.NodeClaim) { c.Requests = corev1.ResourceList{"cpu": resource.MustParse("1001m")} },
		"no requests":  func(c *cloudprovider.NodeClaim) { c.Requests = nil },
		"order":        func(c *cloudprovider.NodeClaim) { c.Candidates[0], c.Candidates[1] = c.Candidates[1], c.Candidates[0] },
		"fewer":        func(c *cloudprovider.NodeClaim) { c.Candidates = c.Candidates[:1] },
		"type":         func(c *cloudprovider.NodeClaim) { c.Candidates[1].Type = "m.xlarge" },
		"offering":     func(c *cloudprovider.NodeClaim) { c.Candidates[1].Offering = spot("c") },
		"labels":       func(c *cloudprovider.NodeClaim) { c.Labels = nil }, "taints": func(c *cloudprovider.NodeClaim) { c.Taints[0].Value = "x" },
		"startup taints": func(c *cloudprovider.NodeClaim) { c.StartupTaints, c.Taints = c.Taints, nil },
	} {
		c := validClaim()
		change(&c)
		out[name] = c
	}
	return out
}

// The identity of two claims is the same if and only if they are equal, also after they were written and read.
func TestIdentity(t *testing.T) {
	for a, one := range variants() {
		data, err := json.Marshal(one)
		require.NoError(t, err)
		var read cloudprovider.NodeClaim
		require.NoError(t, json.Unmarshal(data, &read))
		require.True(t, read.Equal(one), "%s: %s", a, data)
		require.Equal(t, one.Identity(), read.Identity(), a)
		for b, other := range variants() {
			assert.Equal(t, one.Equal(other), one.Identity() == other.Identity(), "%s, %s", a, b)
		}
	}
	same := validClaim()
	same.Requests = corev1.ResourceList{"cpu": resource.MustParse("1000m")}
	same.StartupTaints = []corev1.Taint{}
	assert.Equal(t, validClaim().Identity(), same.Identity())
	assert.Equal(t, "fd3036d855b779871ef79ac7e6a0a96687ef6235a516921c7ba1ef93bdd30701", validClaim().Identity(), "journals keep it: it must stay")
}

// A claim of thousands of candidates is small as JSON.
func TestLargeClaims(t *testing.T) {
	c := validClaim()
	c.Candidates = nil
	for i := range 800 {
		for _, zone := range []string{"a", "b", "c"} {
			c.Candidates = append(c.Candidates, cloudprovider.Candidate{Type: fmt.Sprintf("family%d.large", i), Offering: spot(zone)})
		}
	}
	data, err := json.Marshal(c)
	require.NoError(t, err)
	assert.Less(t, len(data), 25*len(c.Candidates))
	var read cloudprovider.NodeClaim
	require.NoError(t, json.Unmarshal(data, &read))
	assert.True(t, read.Equal(c))
	for _, text := range []string{`["1 a"]`, `["a"]`, `["-1 a"]`, `["x a"]`, `[1]`} {
		require.Error(t, json.Unmarshal([]byte(`{"Offerings":["zone in (a)"],"Candidates":`+text+`}`), &read), text)
	}
}

func TestEqualAndClone(t *testing.T) {
	want := validClaim()
	clone := want.Clone()
	require.True(t, want.Equal(clone))
	clone.Labels["team"] = "b"
	clone.Candidates[0].Type = "other"
	clone.Taints[0].Key = "other"
	clone.Requests["cpu"] = resource.MustParse("2")
	assert.True(t, want.Equal(validClaim()), "a clone shares nothing")

	// 1000m and 1 are the same request.
	same := validClaim()
	same.Requests = corev1.ResourceList{"cpu": resource.MustParse("1000m")}
	assert.True(t, want.Equal(same))

	for name, change := range map[string]func(*cloudprovider.NodeClaim){
		"name":         func(c *cloudprovider.NodeClaim) { c.Name = "x" },
		"token":        func(c *cloudprovider.NodeClaim) { c.Token = "x" },
		"pool":         func(c *cloudprovider.NodeClaim) { c.Pool = "x" },
		"node class":   func(c *cloudprovider.NodeClaim) { c.NodeClass.Name = "x" },
		"requirements": func(c *cloudprovider.NodeClaim) { c.Requirements = requirements.Set{} },
		"requests":     func(c *cloudprovider.NodeClaim) { c.Requests = nil },
		"candidates":   func(c *cloudprovider.NodeClaim) { c.Candidates = c.Candidates[:1] },
		"labels":       func(c *cloudprovider.NodeClaim) { c.Labels = nil },
		"taints":       func(c *cloudprovider.NodeClaim) { c.Taints = nil },
		"startup":      func(c *cloudprovider.NodeClaim) { c.StartupTaints = want.Taints },
	} {
		c := validClaim()
		change(&c)
		assert.False(t, want.Equal(c), name)
	}
}

func types() []instancetypes.InstanceType {
	machine := func(name string, cpu string, offerings ...instancetypes.Offering) instancetypes.InstanceType {
		return instancetypes.InstanceType{
			Name: name, Requirements: requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, name)),
			Capacity: corev1.ResourceList{"cpu": resource.MustParse(cpu)}, Offerings: offerings,
		}
	}
	return []instancetypes.InstanceType{
		machine("b", "4", instancetypes.Offering{Requirements: spot("y"), Price: 2, Available: true}, instancetypes.Offering{Requirements: spot("x"), Price: 1, Available: true}),
		machine("a", "4", instancetypes.Offering{Requirements: spot("x"), Price: 1, Available: true}, instancetypes.Offering{Requirements: spot("y"), Price: 0.1}),
		machine("tiny", "1", instancetypes.Offering{Requirements: spot("x"), Price: 0.01, Available: true}),
	}
}

func TestValues(t *testing.T) {
	offering := func(zone, kind string) requirements.Set {
		return requirements.FromLabels(map[string]string{corev1.LabelTopologyZone: zone, instancetypes.LabelCapacityType: kind, "reservation": zone + kind})
	}
	claim := cloudprovider.NodeClaim{
		Requirements: requirements.FromLabels(map[string]string{"team": "red"}),
		Candidates:   []cloudprovider.Candidate{{Type: "b", Offering: offering("z2", "spot")}, {Type: "a", Offering: offering("z1", "spot")}, {Type: "b", Offering: offering("z1", "spot")}},
	}
	want := map[string][]string{
		"team": {"red"}, corev1.LabelInstanceTypeStable: {"b", "a"}, corev1.LabelTopologyZone: {"z2", "z1"}, instancetypes.LabelCapacityType: {"spot"},
	}
	assert.Equal(t, want, claim.Values())
	assert.Empty(t, cloudprovider.NodeClaim{}.Values())
}

func TestCandidatesOf(t *testing.T) {
	cpu := corev1.ResourceList{"cpu": resource.MustParse("2")}
	got := cloudprovider.CandidatesOf(types(), requirements.Set{}, cpu, requirements.Keys{})
	assert.Equal(t, []cloudprovider.Candidate{{Type: "a", Offering: spot("x")}, {Type: "b", Offering: spot("x")}, {Type: "b", Offering: spot("y")}}, got)

	got = cloudprovider.CandidatesOf(types(), requirements.MustParse("topology.kubernetes.io/zone=y"), cpu, requirements.Keys{})
	assert.Equal(t, []cloudprovider.Candidate{{Type: "b", Offering: spot("y")}}, got)

	// A label that no type has: absent, unless it is left open.
	team := requirements.MustParse("team=a")
	assert.Empty(t, cloudprovider.CandidatesOf(types(), team, cpu, requirements.Keys{}))
	assert.Len(t, cloudprovider.CandidatesOf(types(), team, cpu, requirements.KeysOf("team")), 3)

	// Commitments make two offerings of one: a cloud is told one.
	twice := types()[2:]
	twice[0].Offerings = append(twice[0].Offerings, instancetypes.Offering{Requirements: spot("x"), Price: 0.005, Available: true, Commitment: "plan"})
	assert.Len(t, cloudprovider.CandidatesOf(twice, requirements.Set{}, nil, requirements.Keys{}), 1)
}

func TestNodeLabels(t *testing.T) {
	labels, err := cloudprovider.NodeLabels(validClaim(), types()[0], spot("x"))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{
		corev1.LabelInstanceTypeStable: "b", corev1.LabelTopologyZone: "x", instancetypes.LabelCapacityType: "spot",
		instancetypes.LabelNodePool: "general", "team": "a",
	}, labels)

	claim := validClaim()
	claim.Requirements = requirements.MustParse("topology.kubernetes.io/zone=y")
	_, err = cloudprovider.NodeLabels(claim, types()[0], spot("x"))
	var conflict *requirements.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, corev1.LabelTopologyZone, conflict.Key)
}

func TestInstanceClone(t *testing.T) {
	i := cloudprovider.Instance{Labels: map[string]string{"a": "1"}, Capacity: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	c := i.Clone()
	c.Labels["a"] = "2"
	c.Capacity["cpu"] = resource.MustParse("2")
	assert.Equal(t, "1", i.Labels["a"])
	assert.Equal(t, resource.MustParse("1"), i.Capacity["cpu"])
}

// A claim that is written down as JSON asks for exactly the same when it is read again.
func TestClaimsAsJSON(t *testing.T) {
	claim := validClaim()
	claim.Requirements = requirements.MustParse("team in (a,b), cores > 3, !old")
	claim.NodeClass = nodepool.NodeClassRef{Group: "g.example.com", Kind: "C", Name: "c"}
	claim.Requests = corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("2Gi")}
	claim.StartupTaints = []corev1.Taint{{Key: "s", Value: "v", Effect: corev1.TaintEffectNoExecute}}
	data, err := json.Marshal(claim)
	require.NoError(t, err)
	var again cloudprovider.NodeClaim
	require.NoError(t, json.Unmarshal(data, &again))
	assert.True(t, claim.Equal(again), "%s", data)
	require.NoError(t, again.Validate())
}

// Each fault of a policy is named.
func TestRepairPolicies(t *testing.T) {
	good := cloudprovider.RepairPolicy{Condition: "KernelReady", Status: corev1.ConditionFalse, Reason: "^Soft", Toleration: time.Minute, Priority: 100, Reboot: true}
	require.NoError(t, good.Validate())
	less := -time.Second
	for field, spoil := range map[string]func(*cloudprovider.RepairPolicy){
		"condition": func(p *cloudprovider.RepairPolicy) { p.Condition = "" }, "status": func(p *cloudprovider.RepairPolicy) { p.Status = "false" },
		"reason": func(p *cloudprovider.RepairPolicy) { p.Reason = "(" }, "toleration": func(p *cloudprovider.RepairPolicy) { p.Toleration = less },
		"grace": func(p *cloudprovider.RepairPolicy) { p.Grace = &less }, "priority": func(p *cloudprovider.RepairPolicy) { p.Priority = 101 },
	} {
		p := good
		spoil(&p)
		var invalid *cloudprovider.InvalidError
		require.ErrorAs(t, p.Validate(), &invalid)
		assert.Equal(t, field, invalid.Path)
	}
}
