package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/utils/pretty"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/deprovision/drift"
)

const (
	// requestAnnotation holds the launch request, as JSON of a cloudprovider.NodeClaim. The spec has lists of types and of zones, but
	// neither which type in which zone nor the order. A retry of a launch must ask for exactly the same, so the request is written
	// down before the cloud is asked.
	requestAnnotation = "joinery-sdk.dev/request"
	// classHashAnnotation is the hash of the node class's spec when the claim was made.
	classHashAnnotation = "joinery-sdk.dev/nodeclass-hash"
	// groupsAnnotation names the groups of pods in the plan that the claim is of. Until they run, the pods of that plan may change places.
	groupsAnnotation = "joinery-sdk.dev/groups"
)

// newClaim returns the NodeClaim of a node to buy, in a plan with these groups.
func (v *view) newClaim(ask cloudprovider.NodeClaim, groups string) (*karpv1.NodeClaim, error) {
	pool := v.pools[ask.Pool]
	hash, _ := drift.Hash(&pool.decoded)
	claim := pool.Spec.Template.ToNodeClaim().DeepCopy()
	claim.GenerateName, claim.Finalizers = ask.Pool+"-", []string{karpv1.TerminationFinalizer}
	claim.Labels = labels.Merge(ask.Labels, labels.Set{karpv1.NodeClassLabelKey(claim.Spec.NodeClassRef.GroupKind()): claim.Spec.NodeClassRef.Name})
	claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pool, schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"})}
	claim.Annotations = labels.Merge(claim.Annotations, labels.Set{
		classHashAnnotation: pool.classHash, karpv1.NodePoolHashAnnotationKey: hash, karpv1.NodePoolHashVersionAnnotationKey: drift.HashVersion,
	})
	if groups != "" {
		claim.Annotations[groupsAnnotation] = groups
	}
	claim.Spec.Resources.Requests = ask.Requests
	claim.Spec.Requirements = specOf(ask, pool.Spec.Template.Spec.Requirements)
	return claim, writeRequest(claim, ask)
}

// specOf returns the requirements of a claim: types, zones and capacity types of the candidates, every other label that the plan
// decided, and the pool's requirements for the remaining labels.
func specOf(ask cloudprovider.NodeClaim, pool []karpv1.NodeSelectorRequirementWithMinValues) []karpv1.NodeSelectorRequirementWithMinValues {
	in := ask.Values()
	var out []karpv1.NodeSelectorRequirementWithMinValues
	for _, key := range slices.Sorted(maps.Keys(in)) {
		out = append(out, karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: in[key]})
	}
	for _, r := range pool {
		if in[r.Key] == nil {
			r.MinValues = nil // the plan has met it
			out = append(out, r)
		}
	}
	return out
}

func writeRequest(claim *karpv1.NodeClaim, ask cloudprovider.NodeClaim) error {
	text, err := json.Marshal(ask)
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, requestAnnotation, string(text))
	return err
}

// readRequest returns the launch request of a claim, which is the same on every retry. A claim written by a user has no candidates.
func readRequest(claim *karpv1.NodeClaim) (ask cloudprovider.NodeClaim, err error) {
	if text := claim.Annotations[requestAnnotation]; text != "" {
		if err = json.Unmarshal([]byte(text), &ask); err != nil {
			err = fmt.Errorf("NodeClaim %s: annotation %s: %w", claim.Name, requestAnnotation, err)
		}
	}
	ask.Name, ask.Token = claim.Name, string(claim.UID)
	return ask, err
}

// describe returns the types of a request, shortened for the log.
func describe(ask cloudprovider.NodeClaim) string {
	var types []string
	for _, c := range ask.Candidates {
		if !slices.Contains(types, c.Type) {
			types = append(types, c.Type)
		}
	}
	return "types " + pretty.Slice(types, 5)
}
