package buffer

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionProvisioning is the condition of a CapacityBuffer that says whether its room is there.
const ConditionProvisioning = "Provisioning"

// The reasons of the condition. All but Infeasible are Karpenter's; that one says that no node that may be bought would hold what waits.
const (
	NotReady     = "NotReadyForProvisioning"
	FitsExisting = "FitsExistingCapacity"
	RequiresNew  = "RequiresNewCapacity"
	Empty        = "BufferEmpty"
	Infeasible   = "Infeasible"
)

// Standing is what became of the pods of a buffer in a plan.
type Standing struct {
	// Existing pods fit on nodes that are there, New need nodes that the plan buys, and Waiting have no place.
	Existing, New, Waiting int
	// Why says why pods wait, or why the buffer has none, and Fix what would help them; empty for none.
	Why, Fix string
}

// Condition is the status of the condition Provisioning, without a time: true if the room is there now. It is for whoever writes the status of
// a CapacityBuffer.
func (s Standing) Condition() metav1.Condition {
	c := metav1.Condition{Type: ConditionProvisioning, Status: metav1.ConditionFalse}
	size := s.Existing + s.New + s.Waiting
	switch {
	case size == 0 && s.Why != "":
		c.Reason, c.Message = NotReady, s.Why
	case size == 0:
		c.Reason, c.Message = Empty, "the buffer has no pods"
	case s.Waiting > 0:
		c.Reason, c.Message = Infeasible, fmt.Sprintf("%d of %d pods have no place: %s", s.Waiting, size, s.Why)
		if s.Fix != "" {
			c.Message += "; " + s.Fix
		}
	case s.New > 0:
		c.Reason, c.Message = RequiresNew, fmt.Sprintf("%d of %d pods need new nodes", s.New, size)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, FitsExisting, fmt.Sprintf("all %d pods fit on nodes that are there", size)
	}
	return c
}
