package idempotent

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// Choice is a candidate of a claim with its data from the catalogue.
type Choice struct {
	Candidate cloudprovider.Candidate
	Type      instancetypes.InstanceType
	Offering  instancetypes.Offering
	// Labels are the labels that the node will have, see [cloudprovider.NodeLabels].
	Labels map[string]string
}

// Resolve looks up the candidates of a claim in a catalogue, in their order, available or not. The
// error is a [*cloudprovider.Error] with ErrInvalidSpec: the claim is malformed, or one of its
// candidates does not exist or contradicts the claim. One bad candidate makes the whole claim
// invalid. The cost is O(candidates x types).
func Resolve(claim cloudprovider.NodeClaim, types []instancetypes.InstanceType) ([]Choice, error) {
	invalid := func(err error) error {
		return &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Op: "create", Subject: claim.Name, Err: err}
	}
	if err := claim.Validate(); err != nil {
		return nil, invalid(err)
	}
	out := make([]Choice, 0, len(claim.Candidates))
	for i, c := range claim.Candidates {
		t := slices.IndexFunc(types, func(t instancetypes.InstanceType) bool { return t.Name == c.Type })
		o := -1
		if t >= 0 {
			o = slices.IndexFunc(types[t].Offerings, func(o instancetypes.Offering) bool { return o.Requirements.Equal(c.Offering) })
		}
		if o < 0 {
			return nil, invalid(fmt.Errorf("candidates[%d]: %s is not in the catalogue", i, c))
		}
		labels, err := cloudprovider.NodeLabels(claim, types[t], c.Offering)
		if err != nil {
			return nil, invalid(fmt.Errorf("candidates[%d]: %w", i, err))
		}
		out = append(out, Choice{c, types[t], types[t].Offerings[o], labels})
	}
	return out, nil
}

// Instance returns the machine that the choice becomes for the claim, in state Running. It shares
// no mutable data with the choice.
func (c Choice) Instance(claim cloudprovider.NodeClaim, id string, created time.Time) cloudprovider.Instance {
	return cloudprovider.Instance{
		ID: id, Claim: claim.Name, Pool: claim.Pool, Token: claim.Token, Type: c.Type.Name, Offering: c.Offering.Requirements, Labels: c.Labels,
		Capacity: c.Type.Capacity, Allocatable: c.Type.Allocatable(), State: cloudprovider.Running, Created: created,
	}.Clone()
}

// Describe returns the instance that a claim has led to, derived from what the cloud says about the
// machine. It is needed when the reply to a launch was lost, so that the chosen candidate is not
// known. typ is the name of the machine's type, and offering is what the cloud sells it as. If the
// type has left the catalogue, the instance lacks its resources, and its labels are those of the
// offering and the claim; a [Journal] asks again until it has them. A type that no longer has the
// offering does no harm.
func Describe(claim cloudprovider.NodeClaim, types []instancetypes.InstanceType, typ string, offering requirements.Set, id string, created time.Time) cloudprovider.Instance {
	t := instancetypes.InstanceType{Name: typ}
	if i := slices.IndexFunc(types, func(t instancetypes.InstanceType) bool { return t.Name == typ }); i >= 0 {
		t = types[i]
	}
	labels, err := cloudprovider.NodeLabels(claim, t, offering)
	if err != nil { // the catalogue has changed since and contradicts the claim
		labels = maps.Clone(claim.Labels)
	}
	i := Choice{Type: t, Offering: instancetypes.Offering{Requirements: offering}, Labels: labels}.Instance(claim, id, created)
	if t.Capacity == nil {
		i.Capacity, i.Allocatable = nil, nil
	}
	return i
}
