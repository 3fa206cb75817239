// Package buffer reads CapacityBuffers of autoscaling.x-k8s.io: spare capacity in a cluster, as a
// number of pods that could be placed at once. A buffer becomes pods that exist only in the plan.
// They are planned after all others, so that they never take the place of a real pod. What they
// lack is bought.
//
// The API is described at
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/proposals/buffers.md;
// sizes are those of cluster-autoscaler and Karpenter.
package buffer

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// ActiveCapacity is the strategy that buys nodes for what a buffer lacks. It is the default, and
// the only one that is planned.
const ActiveCapacity = "buffer.x-k8s.io/active-capacity"

// Buffer is a CapacityBuffer. The zero value asks for nothing.
type Buffer struct {
	// Namespace is also that of Template and Scalable; empty means "default".
	Namespace, Name string
	// Strategy is the provisioning strategy; empty means [ActiveCapacity].
	Strategy string
	// Template names the PodTemplate whose pods fill the buffer. Either it or Scalable is set.
	Template string
	// Scalable is the workload whose pods fill the buffer; the zero value means none.
	Scalable Reference
	// Replicas is the number of pods for which the buffer keeps capacity. Percentage gives that
	// number as a percentage of the replicas of Scalable, rounded up. The larger one counts. If
	// both are nil, the buffer has as many pods as Limits allow. Percentage counts as nil if
	// Scalable is not set or its workload has no replicas.
	Replicas, Percentage *int32
	// Limits limits the sum of the pods' requests. It has no effect on resources that the pods do
	// not request.
	Limits corev1.ResourceList
}

// Reference names a workload of the buffer's namespace.
type Reference struct {
	// Group is the API group; empty means "apps".
	Group string
	// Kind is Deployment, ReplicaSet or StatefulSet.
	Kind, Name string
}

// String returns "Deployment web", or "Rollout.argoproj.io web" for a kind of a group other than
// apps.
func (r Reference) String() string {
	if g := cmp.Or(r.Group, "apps"); g != "apps" {
		return r.Kind + "." + g + " " + r.Name
	}
	return r.Kind + " " + r.Name
}

// String returns namespace and name.
func (b *Buffer) String() string { return cmp.Or(b.Namespace, corev1.NamespaceDefault) + "/" + b.Name }

// Size returns the number of pods for which the buffer keeps capacity: the larger of Replicas and
// Percentage, but at most what Limits allow. If both are nil, it is what Limits allow. The argument
// replicas is the number of pods that the workload of Scalable asks for; if it is 0, Percentage
// counts as nil. The size is 0 if Replicas, Percentage and Limits are all unset, without a template,
// and for any strategy other than [ActiveCapacity].
func (b *Buffer) Size(template *corev1.PodTemplateSpec, replicas int32) int {
	if template == nil || cmp.Or(b.Strategy, ActiveCapacity) != ActiveCapacity {
		return 0
	}
	size, asked := int64(0), false
	if b.Replicas != nil {
		size, asked = int64(*b.Replicas), true
	}
	if b.Percentage != nil && b.Scalable != (Reference{}) && replicas > 0 {
		size, asked = max(size, (int64(replicas)*int64(*b.Percentage)+99)/100), true
	}
	if most, limited := b.most(template); limited && (!asked || most < size) {
		size = most
	}
	return int(min(max(size, 0), math.MaxInt32))
}

// most returns how many pods the limits allow; false if they limit nothing that the pods request.
func (b *Buffer) most(template *corev1.PodTemplateSpec) (n int64, limited bool) {
	requests := resources.OfPod(&corev1.Pod{Spec: template.Spec}, false)
	n = math.MaxInt64
	for name, limit := range b.Limits {
		each := resources.Request(name, requests[name])
		if name == corev1.ResourcePods || each <= 0 {
			continue
		}
		n, limited = min(n, max(0, resources.Capacity(name, limit))/each), true
	}
	return n, limited
}

// The annotations of the pods, as Karpenter gives them to its own.
const (
	annotationFake      = "karpenter.sh/capacity-buffer-fake-pod"
	annotationName      = "karpenter.sh/capacity-buffer-name"
	annotationNamespace = "karpenter.sh/capacity-buffer-namespace"
)

// Pods returns the pods that fill the buffer: those of the template, pending. They use no claims,
// because no volume is made for them. The caller must place all other pods first. The returned pods
// share the memory of their specs with each other and with the template. There are none without a
// template, or if size is negative.
func (b *Buffer) Pods(template *corev1.PodTemplateSpec, size int) []*corev1.Pod {
	if template == nil || size < 0 {
		return nil
	}
	spec := template.Spec
	spec.NodeName = ""
	spec.Volumes = slices.DeleteFunc(slices.Clone(spec.Volumes), func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
	namespace := cmp.Or(b.Namespace, corev1.NamespaceDefault)
	annotations := map[string]string{annotationFake: "true", annotationName: b.Name, annotationNamespace: namespace}
	out := make([]*corev1.Pod, size)
	for i := range out {
		out[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("capacity-buffer-%s-%d", b.Name, i+1), Labels: template.Labels, Annotations: annotations},
			Spec:       spec,
		}
	}
	return out
}

// Of returns the buffer that a pod fills, in the form of [Buffer.String]; false if it is a pod of
// the cluster.
func Of(pod *corev1.Pod) (buffer string, ok bool) {
	if pod.Annotations[annotationFake] != "true" {
		return "", false
	}
	return pod.Annotations[annotationNamespace] + "/" + pod.Annotations[annotationName], true
}
