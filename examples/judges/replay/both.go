package replay

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Snapshot reads a scenario as a user's manifests and catalogue.
func Snapshot(s scenario.Scenario) (scheduling.Snapshot, error) {
	text, err := s.YAML()
	if err != nil {
		return scheduling.Snapshot{}, err
	}
	m, err := manifests.Parse([]manifests.File{{Name: "scenario.yaml", Data: text}}, nil)
	if err != nil {
		return scheduling.Snapshot{}, err
	}
	types, err := scenario.CatalogueJSON(s.Catalogue)
	if err != nil {
		return scheduling.Snapshot{}, err
	}
	market, err := pipeline.KWOKMarket("scenario", types)
	if err != nil {
		return scheduling.Snapshot{}, err
	}
	snapshot, _, err := pipeline.Snapshot(m, market)
	return snapshot, err
}

// Both is what the two planners read to plan the same pods with one pool that may buy every type.
// Pods are handed over as they are, not as text, for there may be many. Karpenter knows the labels
// of the types, and has two workers.
func Both(ctx context.Context, types []scenario.Type, pods []*corev1.Pod) (scheduling.Snapshot, karpenter.Input, error) {
	pool := &karpv1.NodePool{
		TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"}, ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: karpv1.NodePoolSpec{Template: karpv1.NodeClaimTemplate{Spec: karpv1.NodeClaimTemplateSpec{
			NodeClassRef: &karpv1.NodeClassReference{Group: "cloud.example.com", Kind: "NodeClass", Name: "default"},
			Requirements: []karpv1.NodeSelectorRequirementWithMinValues{},
		}}},
	}
	s := scenario.Scenario{Catalogue: types, NodePools: []*karpv1.NodePool{pool}}
	snapshot, err := Snapshot(s)
	if err != nil {
		return snapshot, karpenter.Input{}, err
	}
	snapshot.Pods, s.Pods = pods, pods
	theirs, err := s.Karpenter(ctx)
	if err != nil {
		return snapshot, theirs, err
	}
	theirs.Workers = 2
	for _, t := range types {
		for _, r := range t.Requirements {
			if !slices.Contains(theirs.WellKnownLabels, r.Key) {
				theirs.WellKnownLabels = append(theirs.WellKnownLabels, r.Key)
			}
		}
	}
	return snapshot, theirs, nil
}

// KarpenterPlan is Karpenter's answer as nodes to buy and bindings. It has no order of its own.
func KarpenterPlan(r karpenter.Result) ([]*corev1.Node, []kubejudge.Binding) {
	var nodes []*corev1.Node
	var plan []kubejudge.Binding
	for i, n := range r.NewNodes {
		name := fmt.Sprintf("karpenter-%d", i)
		nodes = append(nodes, n.Node(name))
		for _, p := range n.Pods {
			plan = append(plan, kubejudge.Binding{Pod: p, Node: name})
		}
	}
	for _, n := range r.Existing {
		for _, p := range n.Pods {
			plan = append(plan, kubejudge.Binding{Pod: p, Node: n.Node})
		}
	}
	return nodes, plan
}
