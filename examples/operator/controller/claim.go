package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/drift"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

const (
	// candidatesAnnotation holds the offerings that a claim may be launched as, best first, as JSON. The spec cannot say it: it
	// has lists of types and of zones, but not which type in which zone, nor the order. A retry of a launch must ask for exactly
	// the same, so it is written down before the cloud is asked.
	candidatesAnnotation = "joinery-sdk.dev/candidates"
	// classHashAnnotation is the hash of the node class's spec when the claim was made.
	classHashAnnotation = "joinery-sdk.dev/nodeclass-hash"
)

// wanted is a node to buy, whoever planned it.
type wanted struct {
	pool       string
	labels     map[string]string // of the planned node
	candidates []cloudprovider.Candidate
	requests   corev1.ResourceList
	pods       []*corev1.Pod
}

// wantedOf is a node of a provisioning plan.
func wantedOf(n *plan.NewNode) wanted {
	ask := pipeline.Claim(n, "planned")
	return wanted{pool: n.Pool.Name, labels: n.Labels, candidates: ask.Candidates, requests: ask.Requests, pods: n.Pods}
}

// replacement is a node that a command of deprovisioning buys.
func (v *view) replacement(n *deprovision.NewNode) (wanted, error) {
	w := wanted{pool: n.Pool, labels: n.Labels, pods: n.Pods}
	for _, p := range slices.Concat(n.Pods, n.Daemons) {
		w.requests = resources.Add(w.requests, resources.OfPod(p, false))
	}
	types := []string{n.InstanceType}
	for _, a := range n.Alternatives {
		types = append(types, a.InstanceType)
	}
	for _, name := range types {
		t, _ := v.typeOf(n.Pool, name)
		for _, o := range t.Offerings {
			zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
			c := cloudprovider.Candidate{Type: name, Offering: o.Requirements}
			if o.Available && zone == n.Zone && o.CapacityType() == n.CapacityType && !slices.ContainsFunc(w.candidates, func(x cloudprovider.Candidate) bool { return x.String() == c.String() }) {
				w.candidates = append(w.candidates, c)
			}
		}
	}
	if len(w.candidates) == 0 {
		return w, fmt.Errorf("controller: pool %s does not offer %s in %s as %s any more", n.Pool, n.InstanceType, n.Zone, n.CapacityType)
	}
	return w, nil
}

// newClaim is the NodeClaim of a node to buy. Its spec says all that the cloud is asked for but the order of candidates.
func (v *view) newClaim(w wanted) (*karpv1.NodeClaim, error) {
	object, pool := v.pools[w.pool], v.pools[w.pool].Spec.Template
	state, _ := v.pool(w.pool)
	hash, _ := drift.Hash(&state.NodePool)
	candidates, err := json.Marshal(w.candidates)
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	claim := pool.ToNodeClaim().DeepCopy()
	claim.GenerateName = w.pool + "-"
	claim.Labels = state.PoolLabels()
	claim.Annotations = maps.Clone(claim.Annotations)
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	maps.Copy(claim.Annotations, map[string]string{
		candidatesAnnotation: string(candidates), karpv1.NodePoolHashAnnotationKey: hash, karpv1.NodePoolHashVersionAnnotationKey: karpv1.NodePoolHashVersion,
	})
	claim.Finalizers = []string{karpv1.TerminationFinalizer}
	block := true
	claim.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: nodepool.V1, Kind: "NodePool", Name: object.Name, UID: object.UID, BlockOwnerDeletion: &block,
	}}
	claim.Spec.Resources.Requests = w.requests
	claim.Spec.Requirements = v.requirementsOf(w, pool)
	return claim, nil
}

// requirementsOf are the types, zones and capacity types of the candidates, a label for all else that the plan fixed, and what
// the pool asks besides.
func (v *view) requirementsOf(w wanted, pool karpv1.NodeClaimTemplate) []karpv1.NodeSelectorRequirementWithMinValues {
	in := map[string][]string{}
	add := func(key, value string) {
		if value != "" && !slices.Contains(in[key], value) {
			in[key] = append(in[key], value)
		}
	}
	byCandidate := map[string]bool{}
	for _, c := range w.candidates {
		add(corev1.LabelInstanceTypeStable, c.Type)
		for _, key := range []string{corev1.LabelTopologyZone, instancetypes.LabelCapacityType} {
			value, _ := c.Offering.Get(key).Single()
			add(key, value)
		}
		t, _ := v.typeOf(w.pool, c.Type)
		for _, set := range []requirements.Set{t.Requirements, c.Offering} {
			for r := range set.All() {
				byCandidate[r.Key()] = true
			}
		}
	}
	for key, value := range w.labels {
		if !byCandidate[key] && in[key] == nil && key != corev1.LabelHostname && key != nodepool.ProvisionerLabelKey {
			add(key, value)
		}
	}
	var out []karpv1.NodeSelectorRequirementWithMinValues
	for _, key := range slices.Sorted(maps.Keys(in)) {
		out = append(out, karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: in[key]})
	}
	for _, r := range pool.Spec.Requirements {
		if in[r.Key] == nil {
			r.MinValues = nil // the plan has seen to it
			out = append(out, r)
		}
	}
	return out
}

// decodeClaim reads a claim as package nodeclaim does it for every version.
func decodeClaim(claim *karpv1.NodeClaim) (nodeclaim.NodeClaim, error) {
	typed := *claim
	typed.APIVersion, typed.Kind = nodepool.V1, "NodeClaim" // caches drop them
	data, err := json.Marshal(&typed)
	if err != nil {
		return nodeclaim.NodeClaim{}, fmt.Errorf("NodeClaim %s: %w", claim.Name, err)
	}
	return nodeclaim.Decode(data)
}

// askOf is what the cloud is asked for: the same on every retry, for the spec and the candidates never change.
func askOf(claim *karpv1.NodeClaim) (cloudprovider.NodeClaim, error) {
	c, err := decodeClaim(claim)
	if err != nil {
		return cloudprovider.NodeClaim{}, err
	}
	ask := cloudprovider.NodeClaim{
		Name: claim.Name, Token: string(claim.UID), Pool: c.Pool, NodeClass: c.NodeClass, Requirements: c.Requirements, Requests: c.Requests,
		Labels: c.Requirements.Labels(), Taints: c.Taints, StartupTaints: c.StartupTaints,
	}
	if text := claim.Annotations[candidatesAnnotation]; text != "" {
		err = json.Unmarshal([]byte(text), &ask.Candidates)
	}
	// One type and one zone are labels of the node anyway, and the cloud knows that.
	delete(ask.Labels, corev1.LabelInstanceTypeStable)
	if err == nil && len(ask.Candidates) == 0 {
		err = errNoCandidates
	}
	if err != nil {
		return ask, fmt.Errorf("NodeClaim %s: annotation %s: %w", claim.Name, candidatesAnnotation, err)
	}
	return ask, nil
}

// Candidate as text, for the line that people look for in the log.
func describe(ask cloudprovider.NodeClaim) string {
	var types []string
	for _, c := range ask.Candidates {
		if !slices.Contains(types, c.Type) {
			types = append(types, c.Type)
		}
	}
	const shown = 5
	if len(types) <= shown {
		return fmt.Sprintf("types %v", types)
	}
	return fmt.Sprintf("types %v and %d other(s)", types[:shown], len(types)-shown)
}
