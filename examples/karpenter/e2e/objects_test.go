package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwok "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// The operator's package sandbox has such objects, too, but it comes with the operator, whose metrics have the names of Karpenter's.

func class() *kwok.KWOKNodeClass {
	return &kwok.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
}

// pool gives back at once what is empty or underused, as many nodes at a time as it likes.
func pool(name string, changes ...func(*karpv1.NodePool)) *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Template.Spec = karpv1.NodeClaimTemplateSpec{
		NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
		Requirements: []karpv1.NodeSelectorRequirementWithMinValues{in(karpv1.CapacityTypeLabelKey, "on-demand", "spot")},
		ExpireAfter:  karpv1.MustParseNillableDuration("Never"),
	}
	p.Spec.Disruption = karpv1.Disruption{
		ConsolidationPolicy: karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, ConsolidateAfter: karpv1.MustParseNillableDuration("0s"),
		Budgets: []karpv1.Budget{{Nodes: "100%"}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func in(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
	return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// only buys one type, on demand.
func only(name string, weight int32) func(*karpv1.NodePool) {
	return func(p *karpv1.NodePool) {
		p.Spec.Weight = &weight
		p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
			in(karpv1.CapacityTypeLabelKey, "on-demand"), in(corev1.LabelInstanceTypeStable, name),
		}
	}
}

// onDemand leaves out spot nodes, which Karpenter does not replace by other spot nodes.
func onDemand(p *karpv1.NodePool) {
	p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{in(karpv1.CapacityTypeLabelKey, "on-demand")}
}

// inflate is a deployment of pods that ask for room and do nothing, each on a node of its own.
func inflate(name string, replicas int32, cpu string) *appsv1.Deployment {
	labels, grace := map[string]string{"app": name}, int64(0)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
	d.Spec.Replicas, d.Spec.Selector, d.Spec.Template.Labels = &replicas, &metav1.LabelSelector{MatchLabels: labels}, labels
	d.Spec.Template.Spec = corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("256Mi")},
		}}},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: d.Spec.Selector,
		}}}},
	}
	return d
}

// until asks until there is no error, or gives up after the time; then it returns the last error.
func until(ctx context.Context, limit time.Duration, ask func() error) error {
	for end := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		err := ask()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return errors.Join(fmt.Errorf("not within %s", limit), err)
		}
	}
}
