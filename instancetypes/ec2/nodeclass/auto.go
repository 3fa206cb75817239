package nodeclass

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// AutoKind is the kind of the node classes of EKS Auto Mode, whose group is ec2.AutoGroup.
const AutoKind = "NodeClass"

// autoStorage is the ephemeral storage of a node whose class says nothing.
const autoStorage = 80 << 30

// Auto is the class of a pool of EKS Auto Mode whose own class is not known.
func Auto() NodeClass {
	return NodeClass{Kind: AutoKind, APIVersion: ec2.AutoGroup + "/v1", Family: ec2.Bottlerocket, BlockDevices: []BlockDevice{{Root: true, Bytes: autoStorage}}}
}

// DecodeAuto reads a NodeClass of EKS Auto Mode (eks.amazonaws.com/v1) from JSON: its ephemeral storage, tags and status. AWS operates these nodes and
// adds fields as it likes, so fields that are not known are passed over. The error joins one [*FieldError] for each fault.
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
	c.Name, c.Role, c.InstanceProfile, c.Tags, c.Status = w.Metadata.Name, w.Spec.Role, w.Spec.InstanceProfile, w.Spec.Tags, status(w.Status)
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
