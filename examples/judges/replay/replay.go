// Package replay hands Joinery's plans to the judges: planned nodes become Node objects, and the plan's binding order
// becomes bindings.
package replay

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/pipeline"
)

// Plan is the nodes that a plan buys, as they will register, and its bindings in its own order.
func Plan(p *pipeline.Packed) ([]*corev1.Node, []kubejudge.Binding, error) {
	planned, err := p.NewNodes()
	if err != nil {
		return nil, nil, err
	}
	at := map[*corev1.Pod]string{}
	var nodes []*corev1.Node
	for i := range planned {
		nodes = append(nodes, planned[i].Node())
		for _, pod := range planned[i].Pods {
			at[pod] = planned[i].Name
		}
	}
	for r, pods := range p.Result.Existing {
		for _, pod := range pods {
			at[pod] = p.Problem.Existing[r].Node.Name
		}
	}
	var plan []kubejudge.Binding
	for _, pod := range p.Result.Order {
		plan = append(plan, kubejudge.Binding{Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: at[pod]})
	}
	return nodes, plan, nil
}
