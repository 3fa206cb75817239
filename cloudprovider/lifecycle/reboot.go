package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The times of a [Reboot], as in Karpenter v1.15. A drained node waits a little for pods that were
// bound before it was tainted.
const (
	drainAtLeast  = 5 * time.Second
	acceptTimeout = 5 * time.Minute
	recoverIn     = 20 * time.Minute
)

// Reboot is the record of a node's reboot. With it, the process that carries the reboot out may be
// restarted between any two steps. The caller taints and drains the node, notes its boot id, asks
// the provider, and waits for another boot id, as [Reboot.Next] says.
type Reboot struct {
	// Requested is when the reboot was decided. Issued is when the provider had accepted it, or the
	// zero time before that.
	Requested, Issued time.Time
	// Grace limits the drain: nil means no limit, 0 means no drain. Pods that remain stay on the
	// node during the reboot.
	Grace *time.Duration
	// Noted says that BootID was recorded as the boot id before the reboot. The provider is asked
	// only after that.
	Noted  bool
	BootID string
	// Asked is when the provider was first asked, as far as the caller knows, or the zero time.
	Asked time.Time
}

// Step is what to do about a [Reboot].
type Step string

// The steps, in their order. StepWait means to call Next again later.
const (
	StepDrain     Step = "drain"     // taint the node against new pods, and evict the pods that may go
	StepNote      Step = "note"      // record the boot id
	StepAsk       Step = "ask"       // ask the provider, with the same operation each time
	StepIssued    Step = "issued"    // record that the reboot was accepted, because the node has another boot id
	StepWait      Step = "wait"      // nothing is to be done now
	StepOpen      Step = "open"      // remove the taint: the node has another boot id and is not ready yet
	StepSucceeded Step = "succeeded" // remove the taint: the node has another boot id and is ready
	StepFailed    Step = "failed"    // replace the node
)

// Next returns the step to take now. node is the node as the cluster shows it, or nil if it is
// gone. drained says that no pod is left that a drain would evict. Repeating a step does no harm. A
// reboot fails in three cases: the node is missing five minutes after Requested, and its boot id
// was not noted; the provider has not accepted the reboot five minutes after Asked; or 20 minutes
// after Issued the node has not come back, that is, it is not ready or still has the old boot id.
// If the node disappears after its boot id was noted and before the provider was asked, Next
// returns StepWait without a limit.
func (r Reboot) Next(node *corev1.Node, drained bool, now time.Time) Step {
	another := node != nil && r.Noted && node.Status.NodeInfo.BootID != r.BootID
	switch {
	case !r.Issued.IsZero():
		return r.recovering(node, another, now)
	case another:
		return StepIssued
	case r.Noted:
		switch {
		case !r.Asked.IsZero() && now.After(r.Asked.Add(acceptTimeout)):
			return StepFailed
		case node == nil:
			return StepWait
		}
		return StepAsk
	case node == nil:
		if now.After(r.Requested.Add(acceptTimeout)) {
			return StepFailed
		}
		return StepWait
	case r.Grace != nil && *r.Grace == 0:
		return StepNote
	case drained && !now.Before(r.Requested.Add(drainAtLeast)), r.Grace != nil && !now.Before(r.Requested.Add(max(*r.Grace, drainAtLeast))):
		return StepNote
	}
	return StepDrain
}

// recovering returns the step after the provider has accepted the reboot.
func (r Reboot) recovering(node *corev1.Node, another bool, now time.Time) Step {
	switch {
	case another && Works(node):
		return StepSucceeded
	case now.After(r.Issued.Add(recoverIn)):
		return StepFailed
	case another:
		return StepOpen
	}
	return StepWait
}

// RebootsEnough reports whether a node was rebooted so often, at the given times, that another
// reboot does not help: twice within a day, as in Karpenter v1.15. Such a node is replaced.
func RebootsEnough(times []time.Time, now time.Time) bool {
	n := 0
	for _, at := range times {
		if now.Sub(at) < 24*time.Hour {
			n++
		}
	}
	return n >= 2
}
