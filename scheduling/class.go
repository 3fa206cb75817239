package scheduling

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Class is a set of pending pods that are equal in all that bears on placement.
type Class struct {
	// Pods are the members, by namespace and name, numbers in names counted as numbers.
	Pods []*corev1.Pod
	// Template is one of them as an API server would have stored it.
	Template *corev1.Pod
	// Requests is what each pod takes, its pod slot included.
	Requests corev1.ResourceList
	// Required is what the node's labels must satisfy: Asked, and what volumes and [Options.Constraints] add.
	Required requirements.Alternatives
	// Asked is the pods' own node selector and affinity, deprecated keys renamed.
	Asked requirements.Alternatives
	// Preferred holds the soft terms of node affinity, heaviest first.
	Preferred []requirements.Preference
	// Refusal is set where no node at all can hold the pods, such as for a claim that does not exist.
	Refusal *Reason

	requests []int64 // by Problem.Resources
	priority int32
	ports    []hostport.Port
	shared   []volume.Attachment // volumes that several pods use, of the class, of other classes or running
}

// ComparePods orders pods by namespace, then name, with digits compared as numbers: web-2 is before web-10. It is meant for
// slices.SortFunc.
func ComparePods(a, b *corev1.Pod) int { return podclass.Compare(a, b) }

// Name is namespace and name of the first pod; it identifies the class.
func (c *Class) Name() string { return podclass.Name(c.Pods[0]) }

// fill reads the constraints of the class from its first pod.
func (p *Problem) fill(c *Class) error {
	c.Template = p.admission.Pod(c.Pods[0])
	c.Requests = resources.OfPod(c.Template, false)
	asked, err := kube.FromPod(&c.Template.Spec)
	if err != nil {
		return &InvalidError{What: "pod " + podclass.Name(c.Pods[0]), Err: err}
	}
	c.Asked = p.aliases.Alternatives(asked.Required)
	c.Required = c.Asked
	for _, preferred := range asked.Preferred {
		if renamed, err := p.aliases.Set(preferred.Nodes); err == nil {
			c.Preferred = append(c.Preferred, requirements.Preference{Weight: preferred.Weight, Nodes: renamed})
		}
	}
	if c.Template.Spec.Priority != nil {
		c.priority = *c.Template.Spec.Priority
	}
	c.ports = hostport.Of(c.Template)
	return nil
}

// Ignored is a pending pod that is not ours to place, and why.
type Ignored struct {
	Pod *corev1.Pod
	Why string
}

// optedOut says whether the pod refuses every node of a pool, which is how users keep pods away from provisioning.
func optedOut(required requirements.Alternatives) bool {
	absent := requirements.DoesNotExist(nodepool.LabelKey)
	for s := range required.All() {
		if !s.Has(nodepool.LabelKey) || !s.Get(nodepool.LabelKey).Subset(absent) {
			return false
		}
	}
	return required.Len() > 0
}
