package scheduling

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling/internal/admission"
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
	shared   []volume.Attachment       // volumes that several pods use, of the class, of other classes or running
	where    requirements.Alternatives // what volumes ask
	tolerance
}

// tolerance is which taint sets the tolerations of a class cover.
type tolerance struct {
	tolerated requirements.Set // those whose NoSchedule and NoExecute taints it tolerates
	untainted requirements.Set // those of them without untolerated PreferNoSchedule taints
}

// tolerate sets the tolerance of all classes. Neighbouring classes often share their tolerations.
func (p *Problem) tolerate() {
	var last []corev1.Toleration
	for i, c := range p.Classes {
		list := c.Template.Spec.Tolerations
		if i > 0 && len(list) == len(last) && (len(list) == 0 || &list[0] == &last[0]) {
			c.tolerance = p.Classes[i-1].tolerance
			continue
		}
		c.tolerance.tolerated, c.tolerance.untainted = p.taints.Tolerated(list)
		last = list
	}
}

// ComparePods orders pods by namespace, then name, with digits compared as numbers: web-2 is before web-10. It is meant for
// slices.SortFunc.
func ComparePods(a, b *corev1.Pod) int { return podclass.Compare(a, b) }

// Name is namespace and name of the first pod; it identifies the class.
func (c *Class) Name() string { return podclass.Name(c.Pods[0]) }

// fill reads the constraints of the class from its first pod.
func (c *Class) fill(admitted *admission.Cluster, aliases requirements.Aliases, totals *podclass.Totals[corev1.ResourceList]) error {
	c.Template = admitted.Pod(c.Pods[0])
	c.Requests = totals.Of(c.Template, func() corev1.ResourceList { return resources.OfPod(c.Template, false) }) // shared, not modified
	asked, err := kube.FromPod(&c.Template.Spec)
	if err != nil {
		return &InvalidError{What: "pod " + podclass.Name(c.Pods[0]), Err: err}
	}
	c.Required = aliases.Alternatives(asked.Required)
	c.Asked = c.Required
	for _, p := range asked.Preferred {
		if renamed, err := aliases.Set(p.Nodes); err == nil {
			c.Preferred = append(c.Preferred, requirements.Preference{Weight: p.Weight, Nodes: renamed})
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
