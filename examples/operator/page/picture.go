package page

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/operator/controller"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// picture is what the page shows. The keys are those of index.html.
type picture struct {
	Nodes   []box          `json:"nodes"`
	Pending map[string]int `json:"pending"` // by app
	Pods    int            `json:"pods"`
	Price   float64        `json:"price"` // dollars an hour
	Cost    []point        `json:"cost"`
}

// box is a node, or a claim that is not one yet.
type box struct {
	Name  string         `json:"name"`
	Pool  string         `json:"pool"`
	Type  string         `json:"type"`
	Zone  string         `json:"zone"`
	Kind  string         `json:"kind"`  // capacity type
	State string         `json:"state"` // coming, ready or going
	Price float64        `json:"price"`
	CPU   int            `json:"cpu"` // per cent of allocatable
	Mem   int            `json:"mem"`
	Pods  map[string]int `json:"pods"` // by app
}

// point is the cost at a time in seconds.
type point struct {
	At      int64   `json:"t"`
	Dollars float64 `json:"d"`
}

// take reads the caches.
func take(ctx context.Context, o *controller.Operator) (*picture, error) {
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
	p := &picture{Pending: map[string]int{}, Nodes: []box{}, Pods: len(pods.Items)}
	for i := range pods.Items {
		switch pod := &pods.Items[i]; {
		case pod.Spec.NodeName != "":
			on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
		case pod.DeletionTimestamp == nil:
			p.Pending[app(pod)]++
		}
	}
	byID := map[string]*corev1.Node{}
	for i := range nodes.Items {
		byID[nodes.Items[i].Spec.ProviderID] = &nodes.Items[i]
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		b := box{Name: c.Name, State: "coming", Pods: map[string]int{}}
		labels := c.Labels
		if node := byID[c.Status.ProviderID]; node != nil && c.Status.ProviderID != "" {
			b.Name, labels, b.Price = node.Name, node.Labels, prices[node.Name]
			b.fill(node, on[node.Name])
			if c.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized) {
				b.State = "ready"
			}
			if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.DisruptedTaintKey }) {
				b.State = "going"
			}
		}
		if c.DeletionTimestamp != nil {
			b.State = "going"
		}
		b.Pool, b.Type = labels[karpv1.NodePoolLabelKey], labels[corev1.LabelInstanceTypeStable]
		b.Zone, b.Kind = labels[corev1.LabelTopologyZone], labels[karpv1.CapacityTypeLabelKey]
		p.Price += b.Price
		p.Nodes = append(p.Nodes, b)
	}
	slices.SortFunc(p.Nodes, func(a, b box) int { return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Name, b.Name)) })
	return p, nil
}

// fill says what runs on the node.
func (b *box) fill(node *corev1.Node, pods []*corev1.Pod) {
	sum := corev1.ResourceList{}
	for _, pod := range pods {
		if eviction.Ended(pod) {
			continue
		}
		b.Pods[app(pod)]++
		sum = resources.Add(sum, resources.OfPod(pod, true))
	}
	share := func(name corev1.ResourceName) int {
		have := resources.Capacity(name, node.Status.Allocatable[name])
		if have <= 0 {
			return 0
		}
		return int(100 * resources.Request(name, sum[name]) / have)
	}
	b.CPU, b.Mem = share(corev1.ResourceCPU), share(corev1.ResourceMemory)
}

// app is what a pod is of, as far as its labels or its owner say.
func app(p *corev1.Pod) string {
	owner := ""
	if len(p.OwnerReferences) > 0 {
		owner = p.OwnerReferences[0].Name
	}
	return cmp.Or(p.Labels["app.kubernetes.io/name"], p.Labels["app"], owner, p.Name)
}
