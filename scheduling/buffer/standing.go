package buffer

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionProvisioning is the condition of a CapacityBuffer that says whether its capacity is
// available.
const ConditionProvisioning = "Provisioning"

// The reasons of the condition. All but Infeasible are Karpenter's.
const (
	NotReady     = "NotReadyForProvisioning" // it has no pods; Standing.Why says why
	FitsExisting = "FitsExistingCapacity"    // all pods fit on existing nodes
	RequiresNew  = "RequiresNewCapacity"     // some pods need nodes that the plan buys
	Empty        = "BufferEmpty"             // it has no pods, because its size is 0
	Infeasible   = "Infeasible"              // no node that may be bought would hold the waiting pods
)

// Standing says what a plan does with the pods of a buffer.
type Standing struct {
	// Existing is how many pods fit on existing nodes, New how many need nodes that the plan buys,
	// and Waiting how many have no place.
	Existing, New, Waiting int
	// Why says why pods wait, or why the buffer has no pods, and Fix what would help them. Both may
	// be empty.
	Why, Fix string
}

// Condition returns the condition Provisioning, without a time. It is true if the capacity is
// available now. It is for programs that write the status of a CapacityBuffer.
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
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, FitsExisting, fmt.Sprintf("its pods fit on existing nodes: %d", size)
	}
	return c
}
