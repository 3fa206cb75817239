package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// named is the form in which Karpenter logs an object.
type named struct {
	Name string `json:"name"`
}

// karpenterLine is the part of a line of Karpenter's log that is read, as v1.14 and v1.15 write it.
type karpenterLine struct {
	Time         string              `json:"time"`
	Message      string              `json:"message"`
	NodeClaim    named               `json:"NodeClaim"`
	Node         named               `json:"Node"`
	NodePool     named               `json:"NodePool"`
	ProviderID   string              `json:"provider-id"`
	InstanceType string              `json:"instance-type"`
	Zone         string              `json:"zone"`
	CapacityType string              `json:"capacity-type"`
	Allocatable  corev1.ResourceList `json:"allocatable"`
}

// karpenter reads one line of Karpenter's log. A machine exists from "launched nodeclaim" to
// "deleted nodeclaim". "registered nodeclaim" says which node it is, and "created nodeclaim" names
// the pool. A deletion that an interruption has started is not Karpenter's choice.
func (r *logReader) karpenter(text []byte) error {
	var l karpenterLine
	if err := json.Unmarshal(text, &l); err != nil || l.Message == "" || l.Time == "" {
		r.unread["lines that are neither audit events nor Karpenter's"]++
		return nil //nolint:nilerr // it is counted: another program may write to the same file
	}
	at, err := logTime(l.Time)
	if err != nil {
		return err
	}
	r.seen(at)
	switch l.Message {
	case "created nodeclaim":
		r.pools(l.NodeClaim.Name, l.NodePool.Name)
	case "launched nodeclaim":
		if l.NodeClaim.Name == "" || l.InstanceType == "" {
			r.unread["launches without nodeclaim or type"]++
			return nil
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.NodeClaim.Name, CreationTimestamp: metav1.NewTime(at), Labels: map[string]string{
			corev1.LabelInstanceTypeStable: l.InstanceType, corev1.LabelTopologyZone: l.Zone, instancetypes.LabelCapacityType: l.CapacityType,
		}}}
		if pool := r.poolOf[l.NodeClaim.Name]; pool != "" {
			n.Labels[nodepool.LabelKey] = pool
		} else if l.NodePool.Name != "" {
			n.Labels[nodepool.LabelKey] = l.NodePool.Name
		}
		n.Spec.ProviderID = l.ProviderID
		n.Status.Allocatable, n.Status.Capacity = l.Allocatable, l.Allocatable
		r.changes = append(r.changes, change{at: at, node: n})
	case "registered nodeclaim":
		if l.NodeClaim.Name != "" && l.Node.Name != "" {
			r.changes = append(r.changes, change{at: at, name: &registration{l.NodeClaim.Name, l.Node.Name}})
		}
	case "initiating delete from interruption message":
		if name := cmp.Or(l.NodeClaim.Name, l.Node.Name); name != "" {
			r.changes = append(r.changes, change{at: at, back: name})
		}
	case "deleted nodeclaim":
		r.changes = append(r.changes, change{at: at, gone: &removal{kind: "NodeClaim", name: l.NodeClaim.Name}})
	}
	return nil
}

func (r *logReader) pools(claim, pool string) {
	if r.poolOf == nil {
		r.poolOf = map[string]string{}
	}
	r.poolOf[claim] = pool
}

// logTime reads the time of a line, in ISO 8601 with milliseconds.
func logTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.000Z0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, errors.New("time " + text + ": want ISO 8601, such as 2026-01-15T08:00:00.000Z")
}
