// Package replay hands Joinery's plans to the judges: planned nodes become Node objects, and the plan's binding order
// becomes bindings.
package replay

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Scenario is the cluster as it will be when all planned nodes are there, with the bindings of the plan in its own
// order: the daemons that are still missing first, then the pods.
func Scenario(s scheduling.Snapshot, daemons []*appsv1.DaemonSet, p *pipeline.Packed) (kubejudge.Scenario, []kubejudge.Binding, error) {
	out := kubejudge.Scenario{
		Nodes: slices.Clone(s.Nodes), CSINodes: s.Volumes.CSINodes, StorageClasses: s.Volumes.Classes,
		PVs: s.Volumes.Persistent, PVCs: s.Volumes.Claims, Namespaces: s.Namespaces,
	}
	for _, pod := range s.Pods {
		if pod.Spec.NodeName != "" {
			out.Running = append(out.Running, pod)
		}
	}
	at := map[*corev1.Pod]string{}
	nodes, err := p.NewNodes()
	if err != nil {
		return out, nil, err
	}
	for i := range nodes {
		out.Nodes = append(out.Nodes, nodes[i].Node())
		for _, pod := range nodes[i].Pods {
			at[pod] = nodes[i].Name
		}
	}
	for r, pods := range p.Result.Rooms {
		for _, pod := range pods {
			at[pod] = p.Problem.Rooms[r].Node.Name
		}
	}
	pods, plan := kubejudge.Daemons(daemons, out.Nodes, out.Running)
	out.Pods = pods
	for _, pod := range p.Result.Order {
		out.Pods = append(out.Pods, pod)
		plan = append(plan, kubejudge.Binding{Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: at[pod]})
	}
	return out, plan, nil
}
