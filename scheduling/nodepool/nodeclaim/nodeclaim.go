// Package nodeclaim reads the Machine of karpenter.sh/v1alpha5 and the NodeClaim of
// karpenter.sh/v1beta1 and v1 as one [NodeClaim].
//
// Controllers write claims, so restricted labels are accepted. Unknown fields, wrong types and
// malformed requirements are errors.
package nodeclaim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/internal/nodespec"
)

// NodeClaim is a requested node, whether or not it exists yet. It must not be modified, since
// copies share maps, slices and pointers. The zero value is a claim without a name or a machine.
type NodeClaim struct {
	// Name identifies the claim. Kind is "NodeClaim" or "Machine".
	Name, APIVersion, Kind string
	// Metadata is that of the claim. Its labels are those of the node.
	Metadata metav1.ObjectMeta
	// Pool is the name of its pool; empty for a claim that a user made.
	Pool string
	// Taints and StartupTaints are as in nodepool.NodePool.
	Taints, StartupTaints []corev1.Taint
	// Requirements are those of spec.requirements, with deprecated keys renamed. MinValues is as in
	// nodepool.NodePool.
	Requirements requirements.Set
	MinValues    map[string]int
	// Requests is the sum of the requests of the pods that the claim was made for, daemons
	// included.
	Requests corev1.ResourceList
	// NodeClass refers to the cloud's own settings.
	NodeClass nodepool.NodeClassRef
	// ExpireAfter is the age at which the node is removed; nil means never. A claim of v1 that does
	// not state it gets 720 hours. Before v1 the pool has it.
	ExpireAfter *time.Duration
	// TerminationGracePeriod limits how long the node may take to drain; nil means no limit.
	TerminationGracePeriod *time.Duration
	// ProviderID, NodeName and ImageID are empty until the machine is launched or the node has
	// joined.
	ProviderID, NodeName, ImageID string
	// Capacity and Allocatable are what the node has, or, until it has joined, is expected to have.
	Capacity, Allocatable corev1.ResourceList
	// Conditions are in the order of the manifest, such as [Registered].
	Conditions []metav1.Condition
	// LastPodEvent is when a pod was last bound to or removed from the node; the zero time if
	// unknown.
	LastPodEvent time.Time
}

// The conditions that planning looks at.
const (
	Launched       = "Launched"       // the provider has created the machine
	Registered     = "Registered"     // the node has joined the cluster, with its labels and taints
	Initialized    = "Initialized"    // the node was ready for pods once
	Drifted        = "Drifted"        // the node differs from what would be bought now
	Consolidatable = "Consolidatable" // consolidateAfter has passed since a pod last came or left
	Rebooting      = "Rebooting"      // a repair reboots the node (since Karpenter v1.15)
)

// Is reports whether the condition of that type exists and is "True".
func (c NodeClaim) Is(kind string) bool {
	return meta.IsStatusConditionTrue(c.Conditions, kind)
}

// wireCondition has the severity of conditions before karpenter.sh/v1, which is ignored.
type wireCondition struct {
	metav1.Condition `json:",inline"`
	Severity         string `json:"severity"`
}

type wireClaim struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       struct {
		Taints        []corev1.Taint         `json:"taints"`
		StartupTaints []corev1.Taint         `json:"startupTaints"`
		Requirements  []nodespec.Requirement `json:"requirements"`
		Resources     struct {
			Requests corev1.ResourceList `json:"requests"`
		} `json:"resources"`
		Kubelet                json.RawMessage    `json:"kubelet"`
		NodeClassRef           *nodespec.ClassRef `json:"nodeClassRef"`
		MachineTemplateRef     *nodespec.ClassRef `json:"machineTemplateRef"`
		TerminationGracePeriod string             `json:"terminationGracePeriod"`
		ExpireAfter            string             `json:"expireAfter"`
	} `json:"spec"`
	Status struct {
		NodeName         string              `json:"nodeName"`
		ProviderID       string              `json:"providerID"`
		ImageID          string              `json:"imageID"`
		Capacity         corev1.ResourceList `json:"capacity"`
		Allocatable      corev1.ResourceList `json:"allocatable"`
		Conditions       []wireCondition     `json:"conditions"`
		LastPodEventTime metav1.Time         `json:"lastPodEventTime"`
	} `json:"status"`
}

// Decode reads a Machine or NodeClaim from JSON. The error joins one [*nodepool.FieldError] for
// each problem, or says in which line data is not JSON. The cost is linear in the size of data.
func Decode(data []byte) (NodeClaim, error) {
	n, err := strictjson.Parse(data)
	if err != nil {
		return NodeClaim{}, fmt.Errorf("nodeclaim: %w", err)
	}
	return decode(&n)
}

// DecodeObject reads a NodeClaim of karpenter.sh/v1 from any Go value whose JSON is that of a
// claim, such as a pointer to Karpenter's own type. Clients drop apiVersion and kind, so these may
// be missing. Everything else is as for [Decode].
func DecodeObject(object any) (NodeClaim, error) {
	n, err := nodespec.Object(object, nodepool.V1, "NodeClaim")
	if err != nil {
		return NodeClaim{}, fmt.Errorf("nodeclaim: %w", err)
	}
	return decode(&n)
}

func decode(n *strictjson.Node) (NodeClaim, error) {
	d := strictjson.Decoder{Live: true}
	var w wireClaim
	r := nodespec.NewReport(d.Decode(n, &w))
	machine := w.Kind == "Machine" && w.APIVersion == nodepool.V1Alpha5
	claim := w.Kind == "NodeClaim" && (w.APIVersion == nodepool.V1Beta1 || w.APIVersion == nodepool.V1)
	if !machine && !claim {
		r.Add("apiVersion", "%q %q is neither a Machine of %s nor a NodeClaim of %s or %s",
			w.APIVersion, w.Kind, nodepool.V1Alpha5, nodepool.V1Beta1, nodepool.V1)
	}
	c := NodeClaim{
		Name: w.Metadata.Name, APIVersion: w.APIVersion, Kind: w.Kind, Metadata: w.Metadata,
		Taints: w.Spec.Taints, StartupTaints: w.Spec.StartupTaints, Requests: w.Spec.Resources.Requests,
		ProviderID: w.Status.ProviderID, NodeName: w.Status.NodeName, ImageID: w.Status.ImageID,
		Capacity: w.Status.Capacity, Allocatable: w.Status.Allocatable,
		LastPodEvent: w.Status.LastPodEventTime.Time,
	}
	for _, condition := range w.Status.Conditions {
		c.Conditions = append(c.Conditions, condition.Condition)
	}
	c.Pool = cmp.Or(w.Metadata.Labels[nodepool.LabelKey], w.Metadata.Labels[nodepool.ProvisionerLabelKey])
	if c.Name == "" {
		r.Add("metadata.name", "the object needs a name")
	}
	c.Requirements, c.MinValues = r.Requirements("spec.requirements", w.Spec.Requirements,
		nodespec.Rules{Restricted: true, NoMinValues: machine})
	r.Taints("spec", c.Taints, c.StartupTaints)
	r.Quantities("spec.resources.requests", c.Requests)
	r.Quantities("status.capacity", c.Capacity)
	r.Quantities("status.allocatable", c.Allocatable)
	var usual *time.Duration // what an API server stores if a claim says nothing
	if w.APIVersion == nodepool.V1 {
		usual = new(720 * time.Hour)
	}
	c.ExpireAfter = r.Duration("spec.expireAfter", w.Spec.ExpireAfter, true, usual)
	c.TerminationGracePeriod = r.Duration("spec.terminationGracePeriod", w.Spec.TerminationGracePeriod, false, nil)
	c.NodeClass = w.class(r, machine)
	object := strings.TrimSpace(w.Kind + " " + c.Name)
	if err := nodespec.Join(r.Problems, func(path, detail string) error {
		return &nodepool.FieldError{Object: object, Path: path, Detail: detail}
	}); err != nil {
		return NodeClaim{}, err
	}
	return c, nil
}

// class reads the reference under the name that the version uses.
func (w *wireClaim) class(r *nodespec.Report, machine bool) nodepool.NodeClassRef {
	ref, path, other, wrong := w.Spec.NodeClassRef, "spec.nodeClassRef", w.Spec.MachineTemplateRef, "spec.machineTemplateRef"
	if machine {
		ref, path, other, wrong = other, wrong, ref, path
	}
	if other != nil {
		r.Add(wrong, "unknown field: did you mean %q?", path)
	}
	if ref == nil {
		return nodepool.NodeClassRef{}
	}
	if ref.Name == "" {
		r.Add(path+".name", "the reference needs a name")
	}
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	return nodepool.NodeClassRef{Group: cmp.Or(ref.Group, group), Kind: ref.Kind, Name: ref.Name}
}
