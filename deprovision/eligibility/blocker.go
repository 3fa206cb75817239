package eligibility

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Method is a way to find nodes to give back.
type Method string

// The methods, in the order in which they are tried.
const (
	Interruption  Method = "interruption" // the cloud takes the machine in any case
	Expiration    Method = "expiration"
	Unhealthy     Method = "unhealthy" // the node has a permanent fault
	Drift         Method = "drift"
	Emptiness     Method = "emptiness"
	Consolidation Method = "consolidation"
)

// Methods returns all methods in the order in which they are tried.
func Methods() []Method {
	return []Method{Interruption, Expiration, Unhealthy, Drift, Emptiness, Consolidation}
}

// Kind is a reason why a node must stay.
type Kind string

// The kinds of blockers.
const (
	NotOurs        Kind = "not-ours"        // none of the pools bought it
	Leaving        Kind = "leaving"         // it is already being removed
	Rebooting      Kind = "rebooting"       // it is being rebooted and will come back
	Uninitialized  Kind = "uninitialized"   // it is not initialized yet
	Nominated      Kind = "nominated"       // pending pods are about to go there
	MinimumAge     Kind = "minimum-age"     // it is younger than the caller's minimum
	DoNotDisrupt   Kind = "do-not-disrupt"  // an annotation of the node or its pool (do-not-disrupt or do-not-consolidate)
	SwitchedOff    Kind = "switched-off"    // the pool has disabled this method
	TooEarly       Kind = "too-early"       // consolidateAfter has not passed
	StaticPool     Kind = "static-pool"     // the pool keeps a fixed number of nodes
	UnknownPrice   Kind = "unknown-price"   // the market does not know what it costs
	Kept           Kind = "kept"            // a rule of the caller, see [Rules]
	PodProtected   Kind = "pod-protected"   // an annotation of a pod protects it
	PodUnowned     Kind = "pod-unowned"     // no controller would recreate a pod
	PodBudget      Kind = "pod-budget"      // a PodDisruptionBudget forbids an eviction
	PodUnplaceable Kind = "pod-unplaceable" // the plan cannot place a pod, see [Rules]
	PodGroup       Kind = "pod-group"       // a pod's group moves only as a whole, and not all of it can move
)

// Blocker is one reason why a node must stay.
type Blocker struct {
	Kind Kind
	// Pod is the namespace/name of the pod that is the reason. It is empty if the reason is not a
	// pod.
	Pod string
	// Text is the reason in words, without the name of the node or pod.
	Text string
}

// String returns the blocker as one line of text.
func (b Blocker) String() string {
	if b.Pod != "" {
		return b.Pod + ": " + b.Text
	}
	return b.Text
}

// Rules are the caller's choices. The zero value decides as Karpenter does.
type Rules struct {
	// MinimumAge protects younger nodes from all methods except interruption, expiration and
	// repair.
	MinimumAge time.Duration
	// KeepUnowned protects pods that no controller would recreate. If it is false, such pods are
	// protected only on nodes of karpenter.sh/v1alpha5 pools, as in the Karpenter versions with
	// that API.
	KeepUnowned bool
	// Keep returns why a node must stay, or an empty string if it may go; nil keeps no node. The
	// reason is a blocker of kind [Kept]. Interruption and the expiration of v1 pools ignore it.
	Keep func(*Node) string
	// Placeable returns why a plan cannot place a pod, or an empty string if it can; nil means that
	// it can place every pod.
	Placeable func(*corev1.Pod) string
}

const doNotConsolidate = "karpenter.sh/do-not-consolidate"

// Blockers returns the reasons why the method must not give the node back. Their order is fixed:
// state of the node, annotations, settings of the pool, then pods by name. A node without blockers
// is a candidate. Blockers does not check whether the node is empty, expired or drifted.
//
// Exceptions:
//
//   - Interruption and the expiration of v1 pools have only the blockers NotOurs and Leaving.
//   - Annotations and PodDisruptionBudgets of pods do not block drift or repair of a node with a
//     terminationGracePeriod, nor a repair with a Grace, because these limit how long the pods can
//     stay. The blockers PodUnowned and PodUnplaceable remain.
//   - As in Karpenter v1.15, a do-not-disrupt annotation on the node does not block its repair, and
//     a node that was never ready can be repaired.
func Blockers(n *Node, m Method, budgets eviction.Budgets, now time.Time, r Rules) []Blocker {
	var out []Blocker
	add := func(k Kind, format string, args ...any) {
		out = append(out, Blocker{Kind: k, Text: fmt.Sprintf(format, args...)})
	}
	if n.Pool == nil {
		add(NotOurs, "it belongs to none of the given pools")
		return out
	}
	if n.Leaving() {
		add(Leaving, "it is already being removed")
		return out
	}
	if m == Interruption || m == Expiration && n.Pool.APIVersion == nodepool.V1 {
		return out
	}
	switch {
	case n.Rebooting():
		add(Rebooting, "it is being rebooted")
	case !n.Initialized() && m != Unhealthy:
		add(Uninitialized, "it is not initialized yet")
	}
	if n.Nominated && (m != Unhealthy || n.Initialized()) {
		add(Nominated, "pending pods are about to go there")
	}
	if age := now.Sub(n.Created()); m != Expiration && m != Unhealthy && age < r.MinimumAge {
		add(MinimumAge, "it is %s old, and the minimum is %s", age.Round(time.Second), r.MinimumAge)
	}
	if r.Keep != nil {
		if why := r.Keep(n); why != "" {
			add(Kept, "%s", why)
		}
	}
	annotations(n, m, add)
	switches(n, m, now, add)
	forced := (m == Drift || m == Unhealthy) && n.gracePeriod() != nil || m == Unhealthy && n.Repair != nil && n.Repair.Grace != nil
	first := len(out)
	for _, p := range n.Pods {
		if b, ok := podBlocker(n, p, budgets, now, r, forced); ok {
			out = append(out, b)
		}
	}
	slices.SortFunc(out[first:], func(a, b Blocker) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// gracePeriod limits how long the node may take to drain. The claim's setting precedes the pool's.
// nil means no limit.
func (n *Node) gracePeriod() *time.Duration {
	if n.Claim.TerminationGracePeriod != nil || n.Claim.Decides {
		return n.Claim.TerminationGracePeriod
	}
	return n.Pool.TerminationGracePeriod
}

// annotations adds the blockers from the node's annotations. A do-not-disrupt that only the pool
// has is meant for new nodes. For an existing node it is drift, so it must not protect the node
// from drift. A do-not-consolidate of the pool counts for all its nodes.
func annotations(n *Node, m Method, add func(Kind, string, ...any)) {
	consolidates := m == Consolidation || m == Emptiness
	switch {
	case n.Node.Annotations[eviction.DoNotDisrupt] == "true" && m != Unhealthy:
		add(DoNotDisrupt, "annotation %s=true", eviction.DoNotDisrupt)
	case consolidates && n.Node.Annotations[doNotConsolidate] == "true":
		add(DoNotDisrupt, "annotation %s=true", doNotConsolidate)
	case consolidates && n.Pool.Annotations[doNotConsolidate] == "true":
		add(DoNotDisrupt, "annotation %s=true of pool %s", doNotConsolidate, n.Pool.Name)
	}
}

// switches adds the blockers from the settings of the pool.
func switches(n *Node, m Method, now time.Time, add func(Kind, string, ...any)) {
	d := n.Pool.Disruption
	switch m {
	case Consolidation, Emptiness:
		switch {
		case d.Policy == "" && n.Pool.APIVersion == nodepool.V1Alpha5:
			add(SwitchedOff, "pool %s has neither consolidation nor ttlSecondsAfterEmpty", n.Pool.Name)
		case d.Policy == "" || d.ConsolidateAfter == nil:
			add(SwitchedOff, "pool %s never consolidates", n.Pool.Name)
		case m == Consolidation && d.Policy == nodepool.WhenEmpty:
			add(SwitchedOff, "pool %s gives back only empty nodes", n.Pool.Name)
		default:
			if why := n.consolidatable(now); why != "" {
				add(TooEarly, "%s", why)
			}
		}
		if n.Pool.IsStatic() {
			add(StaticPool, "pool %s keeps a fixed number of nodes (%d), whatever runs on them", n.Pool.Name, *n.Pool.Replicas)
		}
		if m == Consolidation && !n.Priced {
			add(UnknownPrice, "no offering of %s is known, so its price is unknown", described(n))
		}
	case Interruption, Expiration, Unhealthy, Drift:
	}
}

func described(n *Node) string {
	if n.InstanceType == "" {
		return "its instance type, which no label names,"
	}
	return fmt.Sprintf("type %s in zone %s as %s", n.InstanceType, n.Zone, n.CapacityType)
}

func podBlocker(n *Node, p *corev1.Pod, budgets eviction.Budgets, now time.Time, r Rules, forced bool) (Blocker, bool) {
	if why := eviction.Protected(p, now); why != "" && !forced && p.DeletionTimestamp == nil {
		return Blocker{PodProtected, eviction.Name(p), "annotation " + why}, true
	}
	if eviction.Reschedulable(p) {
		if eviction.Unowned(p) && (r.KeepUnowned || n.Pool.APIVersion == nodepool.V1Alpha5) {
			return Blocker{PodUnowned, eviction.Name(p), "no controller would recreate it"}, true
		}
		if r.Placeable != nil {
			if why := r.Placeable(p); why != "" {
				return Blocker{PodUnplaceable, eviction.Name(p), why}, true
			}
		}
	}
	// A pod that tolerates the taint of leaving nodes is not evicted but ends with its node. Its
	// budget still counts.
	if (eviction.Evictable(p) || eviction.Reschedulable(p) && p.DeletionTimestamp == nil) && !forced {
		if refusal := budgets.Check(p); refusal.Text != "" {
			return Blocker{PodBudget, eviction.Name(p), refusal.Text}, true
		}
	}
	return Blocker{}, false
}
