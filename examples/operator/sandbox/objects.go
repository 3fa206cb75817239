package sandbox

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwok "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// Class is a node class for [Pool].
func Class() *kwok.KWOKNodeClass {
	return &kwok.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
}

// Pool is a node pool of the class "default" that buys on-demand and spot nodes, gives back what is
// empty or underused as soon as it is seen, and has no bound on how many at a time. The changes are
// applied in order.
func Pool(name string, changes ...func(*karpv1.NodePool)) *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{Require(karpv1.CapacityTypeLabelKey, "on-demand", "spot")}
	p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("Never")
	p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized
	p.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("0s")
	p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	for _, change := range changes {
		change(p)
	}
	return p
}

// Require is a requirement that a label has one of some values.
func Require(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
	return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// Inflate is a deployment of pods that do nothing but ask for room.
func Inflate(name string, replicas int32, cpu, memory string, changes ...func(*corev1.PodTemplateSpec)) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	grace := int64(0)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
	d.Spec.Replicas = &replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec = corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
		}}},
	}
	for _, change := range changes {
		change(&d.Spec.Template)
	}
	return d
}

// State is what there is of a cluster, counted.
type State struct {
	Pods, Running, Nodes, Claims, Machines int
	// Cost is the price of all machines, in dollars an hour.
	Cost float64
}

// String is one line.
func (s State) String() string {
	return fmt.Sprintf("%4d of %4d pods running, %3d nodes, %3d claims, %3d machines, $%.3f/h", s.Running, s.Pods, s.Nodes, s.Claims, s.Machines, s.Cost)
}

// State counts. Machines on their way out count until they are gone.
func (s *Sandbox) State(ctx context.Context) (State, error) {
	var pods corev1.PodList
	var nodes corev1.NodeList
	var claims karpv1.NodeClaimList
	if err := s.Client.List(ctx, &pods); err != nil {
		return State{}, err
	}
	if err := s.Client.List(ctx, &nodes); err != nil {
		return State{}, err
	}
	if err := s.Client.List(ctx, &claims); err != nil {
		return State{}, err
	}
	out := State{Pods: len(pods.Items), Nodes: len(nodes.Items), Claims: len(claims.Items)}
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning && pods.Items[i].DeletionTimestamp == nil {
			out.Running++
		}
	}
	for _, m := range s.Cloud.Truth() {
		out.Machines++
		out.Cost += s.price(m)
	}
	return out, nil
}

func (s *Sandbox) price(m cloudprovider.Instance) float64 {
	for _, t := range s.types {
		if t.Name != m.Type {
			continue
		}
		for _, o := range t.Offerings {
			if o.Requirements.Equal(m.Offering) {
				return o.Price
			}
		}
	}
	return 0
}
