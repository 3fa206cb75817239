// Package replay hands Joinery's plans to the judges: planned nodes become Node objects, and the
// plan's binding order becomes bindings.
package replay

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// Steps is [Plan] for a cluster that still has its leaving nodes: each binding says which nodes and
// pods must go before it. The result is the argument of [scenario.Scenario.PlannedSteps].
func Steps(p *plan.Plan) ([]*corev1.Node, []kubejudge.Step) {
	nodes, bindings := Plan(p)
	steps := make([]kubejudge.Step, len(bindings))
	for i, b := range p.Bindings() {
		steps[i] = kubejudge.Step{Binding: bindings[i], Gone: b.After}
		if old := b.Replaces; old != nil {
			steps[i].Ends = types.NamespacedName{Namespace: bindings[i].Pod.Namespace, Name: scenario.LingeringName(old.Name)}
		}
	}
	return nodes, steps
}

// Plan returns the nodes that a plan buys, as they will register, and its bindings in their order.
func Plan(p *plan.Plan) ([]*corev1.Node, []kubejudge.Binding) {
	var nodes []*corev1.Node
	for _, n := range p.NewNodes() {
		nodes = append(nodes, n.Node())
	}
	var bindings []kubejudge.Binding
	for _, b := range p.Bindings() {
		bindings = append(bindings, kubejudge.Binding{Pod: types.NamespacedName{Namespace: b.Pod.Namespace, Name: b.Pod.Name}, Node: b.Node})
	}
	return nodes, bindings
}
