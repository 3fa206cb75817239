package page

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/operator/controller"
	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
)

// cluster is what the page shows.
type cluster struct {
	nodes   []picture.Node
	waiting []picture.Pod
	pods    int
	price   float64 // dollars an hour
}

// message is what the browser gets. index.html knows the keys.
type message struct {
	Nodes   int               `json:"n"`
	Pods    int               `json:"p"`
	Waiting int               `json:"w"`
	Price   string            `json:"d"`
	Legend  string            `json:"legend"`
	Cost    string            `json:"cost"`
	Names   []string          `json:"names"` // in the order in which they are shown
	Drawn   map[string]string `json:"drawn"` // by name
}

// show draws the cluster and its cost over time.
func (c *cluster) show(cost []picture.Point) *message {
	m := &message{Nodes: len(c.nodes), Pods: c.pods, Waiting: len(c.waiting), Price: fmt.Sprintf("$%.2f", c.price), Drawn: map[string]string{}}
	for _, n := range c.nodes {
		m.Names = append(m.Names, n.Name)
		m.Drawn[n.Name] = string(n.SVG())
	}
	for _, e := range picture.Legend(append(slices.Clone(c.nodes), picture.Node{Pods: c.waiting})) {
		m.Legend += string(e.HTML())
	}
	line := picture.Line{}
	for _, p := range cost {
		line.Points = append(line.Points, picture.Point{X: (p.X - cost[len(cost)-1].X) / 60, Y: p.Y})
	}
	m.Cost = string(picture.Chart{Title: "Dollars an hour", X: "minutes", Lines: []picture.Line{line}, Steps: true}.SVG())
	return m
}

// since returns the message without the drawings that were sent before.
func (m *message) since(sent *message) *message {
	if sent == nil {
		return m
	}
	out := *m
	out.Drawn = map[string]string{}
	for name, svg := range m.Drawn {
		if sent.Drawn[name] != svg {
			out.Drawn[name] = svg
		}
	}
	return &out
}

// take reads the cluster from the caches.
func take(ctx context.Context, o *controller.Operator) (*cluster, error) {
	var pods corev1.PodList
	var nodes corev1.NodeList
	var claims karpv1.NodeClaimList
	for _, list := range []client.ObjectList{&pods, &nodes, &claims} {
		if err := o.Manager().GetClient().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	prices := o.Prices()
	on := map[string][]*corev1.Pod{}
	out := &cluster{pods: len(pods.Items)}
	for i := range pods.Items {
		switch pod := &pods.Items[i]; {
		case pod.Spec.NodeName != "":
			on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
		case pod.DeletionTimestamp == nil:
			out.waiting = append(out.waiting, picture.PodOf(pod))
		}
	}
	byID := map[string]*corev1.Node{}
	for i := range nodes.Items {
		byID[nodes.Items[i].Spec.ProviderID] = &nodes.Items[i]
	}
	delete(byID, "")
	for i := range claims.Items {
		c := &claims.Items[i]
		node, there := byID[c.Status.ProviderID]
		if !there {
			node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: c.Labels}}
		}
		n := picture.NodeOf(node, on[node.Name])
		dollars := prices[node.Name]
		if out.price += dollars; dollars > 0 {
			n.Price = fmt.Sprintf("$%.3f/h", dollars)
		}
		switch {
		case c.DeletionTimestamp != nil || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.DisruptedTaintKey }):
			n.State = picture.Going
		case !there || !c.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized):
			n.State = picture.Coming
		}
		out.nodes = append(out.nodes, n)
	}
	slices.SortFunc(out.nodes, func(a, b picture.Node) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}
