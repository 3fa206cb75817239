package cloudprovider

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// InstanceState is the stage of an instance's life.
type InstanceState string

// The states of an instance. An instance that is gone has no state: Get fails with [ErrNotFound].
const (
	// Pending instances have an id. Nothing else is certain.
	Pending InstanceState = "Pending"
	// Running instances have started, and are paid for from then on. The node of such an instance
	// may not have joined yet.
	Running InstanceState = "Running"
	// Terminating instances are ending, by Delete or by the cloud's own decision.
	Terminating InstanceState = "Terminating"
)

// Instance is an existing machine and what is known of the claim that it was made for. It is a
// plain struct; the zero value is not an instance.
type Instance struct {
	// ID is unique, is never reused, and is what the kubelet reports as its provider id.
	ID string
	// Claim, Pool and Token are those of the claim.
	Claim, Pool, Token string
	// Type and Offering are the chosen candidate.
	Type     string
	Offering requirements.Set
	// Labels are the labels of the node once the caller has registered it, see [Instance.Register].
	Labels map[string]string
	// Capacity and Allocatable are those of the type.
	Capacity, Allocatable corev1.ResourceList
	// ImageID is the image that the machine boots from, in the cloud's own terms. It may be empty.
	ImageID string
	// State is the stage of the instance's life. Created is when the cloud made it, by the cloud's
	// clock. Create may have to guess Created, to the minute. Created must not be zero: callers
	// never treat an instance of unknown age as an orphan, so it would never be cleaned up.
	State   InstanceState
	Created time.Time
}

// Clone returns a deep copy of i.
func (i Instance) Clone() Instance {
	i.Labels = maps.Clone(i.Labels)
	i.Capacity, i.Allocatable = i.Capacity.DeepCopy(), i.Allocatable.DeepCopy()
	return i
}

// Node returns the node that the instance will register as, ready and with nothing running. It has
// the labels, resources and provider id of the instance and the taints of the claim, without the
// startup taints. Its name is that of the claim, because the real name is not known before the node
// exists. The result shares no mutable data with the instance or the claim.
func (i Instance) Node(c NodeClaim) *corev1.Node {
	i = i.Clone()
	labels := map[string]string{corev1.LabelHostname: i.Claim}
	if i.Pool != "" {
		labels[instancetypes.LabelNodePool] = i.Pool
	}
	maps.Copy(labels, i.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: i.Claim, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: i.ID, Taints: slices.Clone(c.Taints)},
		Status: corev1.NodeStatus{
			Capacity: i.Capacity, Allocatable: i.Allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// NodeLabels returns the labels of the node that a claim gets if the provider chooses this type and
// offering. They come from the type, the offering, the requirements of the claim, the claim's own
// labels and its pool. The requirements may allow several values of a label that neither type nor
// offering has. Then the node gets one of them, always the same ([requirements.Requirement.Any]).
// If the sources contradict each other, the error joins a [*requirements.ConflictError] for each
// key in which they do. A provider reports such an error as [ErrInvalidSpec].
func NodeLabels(claim NodeClaim, t instancetypes.InstanceType, offering requirements.Set) (map[string]string, error) {
	var b requirements.Builder
	b.AddSet(nodeOf(t, offering)).AddSet(claim.Requirements)
	b.Add(requirements.In(corev1.LabelInstanceTypeStable, t.Name))
	if claim.Pool != "" {
		b.Add(requirements.In(instancetypes.LabelNodePool, claim.Pool))
	}
	for _, key := range slices.Sorted(maps.Keys(claim.Labels)) {
		b.Add(requirements.In(key, claim.Labels[key]))
	}
	node, err := b.Set()
	if err != nil {
		return nil, fmt.Errorf("cloudprovider: labels of a %q for claim %q: %w", t.Name, claim.Name, err)
	}
	labels := node.Labels()
	for r := range node.All() {
		if _, fixed := labels[r.Key()]; !fixed && !r.AllowsAbsent() {
			labels[r.Key()], _ = r.Any()
		}
	}
	return labels, nil
}
