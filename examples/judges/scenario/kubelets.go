package scenario

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// nodeFeatures are what kubelets of today declare; pods may need the first two.
func nodeFeatures() []string {
	return []string{"RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "InPlacePodLevelResourcesVerticalScaling"}
}

// kubelets gives each node a kubelet of some age and the features that it declares. A pool buys nodes with the kubelet of its newest node;
// one without a node that shows it buys the newest kubelet.
func (g *generator) kubelets() {
	g.s.Declared = map[string][]string{}
	pools, newest := map[string]string{}, map[string]metav1.Time{} // by node, by pool
	for _, n := range slices.Concat(g.s.Nodes, g.s.Ready) {
		pools[n.Name] = n.Labels[karpv1.NodePoolLabelKey]
	}
	shown := map[string]*corev1.Node{}
	for i, n := range g.s.Nodes {
		n.CreationTimestamp = metav1.NewTime(asked().Add(time.Duration(g.r.IntN(5)*100-i) * time.Minute))
		if g.chance(85) { // people leave it out
			n.Status.NodeInfo.KubeletVersion = fmt.Sprintf("v1.36.%d", g.r.IntN(3))
			n.Status.DeclaredFeatures = slices.DeleteFunc(nodeFeatures(), func(string) bool { return g.chance(25) })
			if pool, known := pools[n.Name], newest[pools[n.Name]]; known.IsZero() || n.CreationTimestamp.After(known.Time) {
				newest[pool], g.s.Declared[pool] = n.CreationTimestamp, n.Status.DeclaredFeatures
			}
		}
		shown[n.Name] = n
	}
	for i, n := range g.s.Ready {
		if there := shown[n.Name]; there != nil {
			n.CreationTimestamp, n.Status.NodeInfo, n.Status.DeclaredFeatures = there.CreationTimestamp, there.Status.NodeInfo, there.Status.DeclaredFeatures
			continue
		}
		g.s.Ready[i] = g.s.withKubelet(n)
	}
}

// withKubelet is a copy of a node to come, with the features that its kubelet will declare.
func (s Scenario) withKubelet(n *corev1.Node) *corev1.Node {
	n = n.DeepCopy()
	features, ok := s.Declared[n.Labels[karpv1.NodePoolLabelKey]]
	if !ok {
		features = nodeFeatures()
	}
	n.Status.DeclaredFeatures = features
	return n
}
