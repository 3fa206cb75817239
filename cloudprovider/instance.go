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

// InstanceState is how far an instance is.
type InstanceState string

// The states of an instance. One that is gone has none: Get fails with [ErrNotFound].
const (
	// Pending instances have an id and nothing else for certain.
	Pending InstanceState = "Pending"
	// Running instances are paid for.
	Running InstanceState = "Running"
	// Terminating instances are on their way out, by Delete or by the cloud's own decision.
	Terminating InstanceState = "Terminating"
)

// Instance is what there is: a machine, and what is remembered of the claim that it is for. It is a plain struct; the zero value
// is no instance.
type Instance struct {
	// ID is unique, never used again, and what a kubelet reports as its provider id.
	ID string
	// Claim, Pool and Token are those of the claim.
	Claim, Pool, Token string
	// Type and Offering are the candidate that was chosen.
	Type     string
	Offering requirements.Set
	// Labels are those that the node carries once the caller has registered it; see [Instance.Register].
	Labels map[string]string
	// Capacity and Allocatable are those of the type.
	Capacity, Allocatable corev1.ResourceList
	// ImageID is what the machine boots from, in the cloud's own terms; empty if there is no such thing.
	ImageID string
	// State is how far the instance is, Created when the cloud made it, by the cloud's clock. Create may have to guess the latter, to the minute.
	State   InstanceState
	Created time.Time
}

// Clone shares nothing with i that can be changed.
func (i Instance) Clone() Instance {
	i.Labels = maps.Clone(i.Labels)
	i.Capacity, i.Allocatable = i.Capacity.DeepCopy(), i.Allocatable.DeepCopy()
	return i
}

// Node is the node that the instance will register as, ready and with nothing running: the labels, resources and provider id of
// the instance, the taints of its claim without those of the start, and the name of the claim, for the node's name is not known
// before it is there. It shares nothing with either that can be changed.
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

// NodeLabels are the labels of a node that is bought by a candidate for a claim: those that the type, the offering and the
// requirements of the claim fix, its own labels, and its pool's. Where the requirements want a label that neither type nor offering has, and leave several
// values open, it has one of them, always the same ([requirements.Requirement.Any]). The error joins a [*requirements.ConflictError] for each key on
// which they contradict each other, which is [ErrInvalidSpec] to a caller.
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
