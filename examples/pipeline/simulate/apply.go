package simulate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Node returns a node that a command buys, as it is when it is ready and initialized.
func Node(s scheduling.Snapshot, n *giveback.NewNode, now time.Time) (*corev1.Node, error) {
	pool := poolOf(&s, n.Pool)
	t := typeOf(pool, n.InstanceType)
	if t == nil {
		return nil, fmt.Errorf("simulate: pool %q has no type %q", n.Pool, n.InstanceType)
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{}, Annotations: pool.Annotations, CreationTimestamp: metav1.NewTime(now)},
		Spec:       corev1.NodeSpec{Taints: pool.Taints},
		Status: corev1.NodeStatus{
			Capacity: t.Capacity, Allocatable: t.Allocatable(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	maps.Copy(node.Labels, n.Labels)
	node.Labels["karpenter.sh/registered"], node.Labels["karpenter.sh/initialized"] = "true", "true"
	return node, nil
}

// poolOf returns the pool of that name, or nil.
func poolOf(s *scheduling.Snapshot, name string) *scheduling.Pool {
	if i := slices.IndexFunc(s.Pools, func(p scheduling.Pool) bool { return p.Name == name }); i >= 0 {
		return &s.Pools[i]
	}
	return nil
}

// typeOf returns the type of that name, or nil if the pool is nil or does not have it.
func typeOf(pool *scheduling.Pool, name string) *instancetypes.InstanceType {
	if pool == nil {
		return nil
	}
	for i := range pool.Types {
		if pool.Types[i].Name == name {
			return &pool.Types[i]
		}
	}
	return nil
}

// Apply returns the snapshot after a command: its nodes are gone, the new ones exist, and pods are
// on their new nodes. Pods of the old nodes that do not move are gone. It does not add the daemons
// of new nodes.
func Apply(s scheduling.Snapshot, c *giveback.Command, now time.Time) (scheduling.Snapshot, error) {
	gone := map[string]bool{}
	for _, n := range c.Nodes {
		gone[n.Name] = true
	}
	to := make(map[string]string, len(c.Placements)) // by name, because a pod that moved before is another object
	for _, p := range c.Placements {
		to[p.Pod.Namespace+"/"+p.Pod.Name] = p.Node
	}
	out := s
	out.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n *corev1.Node) bool { return gone[n.Name] })
	for i := range c.NewNodes {
		n, err := Node(s, &c.NewNodes[i], now)
		if err != nil {
			return s, err
		}
		out.Nodes = append(out.Nodes, n)
	}
	out.Pods = make([]*corev1.Pod, 0, len(s.Pods))
	for _, p := range s.Pods {
		node, moves := to[p.Namespace+"/"+p.Name]
		switch {
		case moves: // the pod's successor runs
			q := *p
			q.Spec.NodeName, q.DeletionTimestamp = node, nil
			out.Pods = append(out.Pods, &q)
		case !gone[p.Spec.NodeName]:
			out.Pods = append(out.Pods, p)
		}
	}
	return out, nil
}
