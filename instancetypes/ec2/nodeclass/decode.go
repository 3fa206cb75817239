package nodeclass

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// wireObject is a node class whose version is not known yet.
type wireObject struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
	Status     json.RawMessage `json:"status"`
}

// versions maps "apiVersion kind" to the function that reads the spec.
func versions() map[string]func(*report, json.RawMessage) NodeClass {
	return map[string]func(*report, json.RawMessage) NodeClass{
		"karpenter.k8s.aws/v1alpha1 AWSNodeTemplate": (*report).template,
		"karpenter.k8s.aws/v1beta1 EC2NodeClass":     (*report).beta,
		"karpenter.k8s.aws/v1 EC2NodeClass":          (*report).v1,
	}
}

// Decode reads an AWSNodeTemplate (karpenter.k8s.aws/v1alpha1) or an EC2NodeClass (v1beta1, v1)
// from JSON. It fills in the defaults of its version and validates it as the version's webhook and
// schema do. The error joins one [*FieldError] for each fault; the class must then not be used.
func Decode(raw json.RawMessage) (NodeClass, error) {
	r := &report{object: "node class"}
	// The name comes first because faults mention it. Faults of the name itself are found below.
	var head struct {
		Kind     string
		Metadata struct{ Name string }
	}
	_ = json.Unmarshal(raw, &head)
	if head.Kind != "" {
		r.object = head.Kind
	}
	if head.Metadata.Name != "" {
		r.object += " " + head.Metadata.Name
	}
	var o wireObject
	r.strict("", raw, &o)
	if err := r.err(); err != nil {
		return NodeClass{}, err
	}
	if head.Metadata.Name == "" {
		r.bad("metadata.name", "missing: want a string")
	}
	read, ok := versions()[o.APIVersion+" "+o.Kind]
	if !ok {
		hint := ""
		if near, ok := requirements.Nearest(o.Kind, []string{"AWSNodeTemplate", "EC2NodeClass"}); ok {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		r.bad("apiVersion", "%q %q: want AWSNodeTemplate of karpenter.k8s.aws/v1alpha1 or EC2NodeClass of karpenter.k8s.aws/v1beta1 or v1%s", o.APIVersion, o.Kind, hint)
		return NodeClass{}, r.err()
	}
	if len(o.Spec) == 0 {
		o.Spec = json.RawMessage("{}")
	}
	c := read(r, o.Spec)
	c.Kind, c.APIVersion, c.Name = o.Kind, o.APIVersion, head.Metadata.Name
	c.Status = r.status(o.Status)
	if err := r.err(); err != nil {
		return NodeClass{}, err
	}
	return c, nil
}

// DecodeProvider reads the inline provider of a Provisioner of karpenter.sh/v1alpha5. It is an
// AWSNodeTemplate without user data, image selector and detailed monitoring. Paths of faults start
// with spec.provider.
func DecodeProvider(raw json.RawMessage) (NodeClass, error) {
	r := &report{object: "Provisioner"}
	var w wireProvider
	r.strict("spec.provider", raw, &w)
	c := r.aws("spec.provider", w.template())
	c.Kind = "Provisioner"
	if err := r.err(); err != nil {
		return NodeClass{}, err
	}
	return c, nil
}

// status reads what planning can use from a live object, and ignores everything else that a
// controller writes there.
func (r *report) status(raw json.RawMessage) Status {
	var w struct {
		Subnets              []struct{ ID, Zone, ZoneID string }
		SecurityGroups       []struct{ ID string }
		AMIs                 []struct{ ID string }
		InstanceProfile      string
		CapacityReservations json.RawMessage
	}
	if len(raw) == 0 || json.Unmarshal(raw, &w) != nil {
		return Status{}
	}
	s := Status{InstanceProfile: w.InstanceProfile}
	for _, n := range w.Subnets {
		s.Subnets = append(s.Subnets, Subnet(n))
	}
	for _, g := range w.SecurityGroups {
		s.SecurityGroups = append(s.SecurityGroups, g.ID)
	}
	for _, a := range w.AMIs {
		s.AMIs = append(s.AMIs, a.ID)
	}
	s.Reservations = r.reservations("status.capacityReservations", w.CapacityReservations)
	return s
}

// reservations reads the capacity reservations of a status. An API server refuses what is a fault
// here, so only a status that a person wrote has faults.
func (r *report) reservations(path string, raw json.RawMessage) []Reservation {
	var wire []struct {
		ID, InstanceType, AvailabilityZone, State, ReservationType string
		AvailableInstanceCount                                     *int
		EndTime                                                    time.Time
		Interruptible                                              bool
	}
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		r.bad(path, "%s", err)
		return nil
	}
	var out []Reservation
	seen := map[string]bool{}
	for i, w := range wire {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case w.ID == "" || w.InstanceType == "" || w.AvailabilityZone == "":
			r.bad(at, "want id, instanceType and availabilityZone")
		case seen[w.ID]:
			r.bad(at+".id", "%q is given twice", w.ID)
		case w.AvailableInstanceCount != nil && *w.AvailableInstanceCount < 0:
			r.bad(at+".availableInstanceCount", "%d: want no negative number", *w.AvailableInstanceCount)
		}
		seen[w.ID] = true
		out = append(out, Reservation{
			ID: w.ID, InstanceType: w.InstanceType, Zone: w.AvailabilityZone, Free: w.AvailableInstanceCount, End: w.EndTime,
			State: cmp.Or(w.State, "active"), Type: cmp.Or(w.ReservationType, "default"), Interruptible: w.Interruptible,
		})
	}
	return out
}

// AutoKind is the kind of the node classes of EKS Auto Mode, whose group is ec2.AutoGroup.
const AutoKind = "NodeClass"

// autoStorage is the default ephemeral storage of a node.
const autoStorage = 80 << 30

// Auto returns the class of a pool of EKS Auto Mode whose own class is not known.
func Auto() NodeClass {
	return NodeClass{Kind: AutoKind, APIVersion: ec2.AutoGroup + "/v1", Family: ec2.Bottlerocket, BlockDevices: []BlockDevice{{Root: true, Bytes: autoStorage}}}
}

// DecodeAuto reads a NodeClass of EKS Auto Mode (eks.amazonaws.com/v1) from JSON: its ephemeral
// storage, tags and status. AWS operates these nodes and may add fields, so unknown fields are
// skipped. The error joins one [*FieldError] for each fault.
func DecodeAuto(raw json.RawMessage) (NodeClass, error) {
	r := &report{object: AutoKind}
	var w struct {
		Metadata struct{ Name string }
		Spec     struct {
			Role, InstanceProfile string
			Tags                  map[string]string
			EphemeralStorage      struct{ Size string }
		}
		Status json.RawMessage
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		r.bad("", "%s", err)
		return NodeClass{}, r.err()
	}
	c := Auto()
	c.Name, c.Role, c.InstanceProfile, c.Tags, c.Status = w.Metadata.Name, w.Spec.Role, w.Spec.InstanceProfile, w.Spec.Tags, r.status(w.Status)
	if text := w.Spec.EphemeralStorage.Size; text != "" {
		q, err := resources.Parse(text)
		if err != nil || q.Sign() <= 0 {
			r.bad("spec.ephemeralStorage.size", "%q: want a size such as 80Gi", text)
		} else {
			c.BlockDevices[0].Bytes = resources.Capacity(corev1.ResourceEphemeralStorage, q)
		}
	}
	return c, r.err()
}
