package cloudprovider

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// NodeClaim is a request for one node. It is a plain struct that receivers only read. The zero
// value is not valid: a claim needs a name, a token and candidates. A caller can write it as JSON
// before it calls Create and read it again: the result asks for the same node. The JSON names each
// offering once, so a candidate takes about 20 bytes.
type NodeClaim struct {
	// Name identifies the claim to people and in the cloud's tags. It may be used again after the
	// claim is gone, even while a machine that was made for it still exists: only the token tells
	// machines apart.
	Name string
	// Token makes Create idempotent. It must never be used for another claim, nor for a second
	// attempt after the first instance was deleted. It has 1 to 128 characters of A-Z a-z 0-9 . - _
	// / : and no meaning. A cloud whose labels are shorter keeps a hash of it.
	Token string
	// Pool is the name of the node pool, or empty for a claim without a pool.
	Pool string
	// NodeClass names the cloud's own settings. The zero value means the provider's defaults. An
	// unknown class is ErrInvalidSpec; a class that is still being resolved is ErrNotReady. A cloud
	// without such settings ignores it.
	NodeClass nodepool.NodeClassRef
	// Requirements are what the node's labels must satisfy.
	Requirements requirements.Set
	// Requests are the needs of the pods for which the claim was made, including daemons. The
	// candidates were chosen to hold them; providers use them only for their own bookkeeping.
	Requests corev1.ResourceList
	// Candidates are the acceptable offerings, in order of preference; there is at least one. A
	// cloud that knows more about its capacity may prefer a later one.
	Candidates []Candidate
	// Labels are put on the node in addition to those of its type and offering.
	Labels map[string]string
	// Taints are put on the node. StartupTaints are put on it as well, and stay until someone
	// removes them.
	Taints, StartupTaints []corev1.Taint
}

// InvalidError is a fault in a claim. Path leads from the claim to the fault: "candidates[2].type".
type InvalidError struct {
	Path   string
	Detail string
}

// Error returns "cloudprovider: path: detail".
func (e *InvalidError) Error() string { return "cloudprovider: " + e.Path + ": " + e.Detail }

// Validate checks the claim as far as possible without a cloud. The error joins one [*InvalidError]
// for each fault.
func (c NodeClaim) Validate() error {
	var errs []error
	fault := func(path, format string, args ...any) {
		errs = append(errs, &InvalidError{Path: path, Detail: fmt.Sprintf(format, args...)})
	}
	if c.Name == "" {
		fault("name", "required")
	}
	if wrong := tokenFault(c.Token); wrong != "" {
		fault("token", "%s", wrong)
	}
	if c.Requirements.IsImpossible() {
		fault("requirements", "no node satisfies them")
	}
	if len(c.Candidates) == 0 {
		fault("candidates", "at least one is required; CandidatesOf finds them in a catalogue")
	}
	seen := map[string]int{}
	for i, cand := range c.Candidates {
		path := fmt.Sprintf("candidates[%d]", i)
		if cand.Type == "" {
			fault(path+".type", "required")
		}
		if cand.Offering.IsImpossible() {
			fault(path+".offering", "no node satisfies it")
		}
		key := cand.String()
		if first, ok := seen[key]; ok {
			fault(path, "the same as candidates[%d]", first)
		} else {
			seen[key] = i
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		value := c.Labels[key]
		if r := c.Requirements.Get(key); !c.Requirements.IsImpossible() && !r.Contains(value) {
			fault(fmt.Sprintf("labels[%q]", key), "%q contradicts the requirement %s", value, r)
		}
	}
	return errors.Join(errs...)
}

// Values returns, for each label that the claim decides, the values that the node may have. If the
// requirements leave one value, the result has that value. For type, zone and capacity type it has
// the values of the candidates, in the order of the candidates. Karpenter's NodeClaim objects have
// these values as their requirements, although such requirements cannot say which type is available
// in which zone. The map is new.
func (c NodeClaim) Values() map[string][]string {
	out := map[string][]string{}
	for key, value := range c.Requirements.Labels() {
		out[key] = []string{value}
	}
	for _, cand := range c.Candidates {
		fixed := cand.Offering.Labels()
		fixed[corev1.LabelInstanceTypeStable] = cand.Type
		for _, key := range []string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, instancetypes.LabelCapacityType} {
			if value, ok := fixed[key]; ok && !slices.Contains(out[key], value) {
				out[key] = append(out[key], value)
			}
		}
	}
	return out
}

// Equal reports whether both claims ask for the same: names, tokens, candidates in their order, and
// everything else that a provider acts on. It tells a retry from a token that was reused. A
// provider that keeps no claims uses [NodeClaim.Identity].
func (c NodeClaim) Equal(o NodeClaim) bool {
	return c.Name == o.Name && c.Token == o.Token && c.Pool == o.Pool && c.NodeClass == o.NodeClass &&
		c.Requirements.Equal(o.Requirements) &&
		maps.EqualFunc(c.Requests, o.Requests, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }) &&
		slices.EqualFunc(c.Candidates, o.Candidates, func(a, b Candidate) bool { return a.Type == b.Type && a.Offering.Equal(b.Offering) }) &&
		maps.Equal(c.Labels, o.Labels) &&
		slices.EqualFunc(c.Taints, o.Taints, equalTaints) && slices.EqualFunc(c.StartupTaints, o.StartupTaints, equalTaints)
}

// Clone returns a deep copy of c.
func (c NodeClaim) Clone() NodeClaim {
	c.Requests, c.Labels = c.Requests.DeepCopy(), maps.Clone(c.Labels)
	c.Candidates, c.Taints, c.StartupTaints = slices.Clone(c.Candidates), slices.Clone(c.Taints), slices.Clone(c.StartupTaints)
	return c
}

func equalTaints(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}
