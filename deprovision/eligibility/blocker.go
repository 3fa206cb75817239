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
	Interruption  Method = "interruption" // the cloud takes the machine anyway
	Expiration    Method = "expiration"
	Drift         Method = "drift"
	Emptiness     Method = "emptiness"
	Consolidation Method = "consolidation"
)

// Methods returns all methods in the order in which they are tried.
func Methods() []Method { return []Method{Interruption, Expiration, Drift, Emptiness, Consolidation} }

// Kind is a reason why a node must stay.
type Kind string

// The kinds of blockers.
const (
	NotOurs        Kind = "not-ours"        // no pool of ours bought it
	Leaving        Kind = "leaving"         // it is on its way out already
	Rebooting      Kind = "rebooting"       // it is being rebooted, and comes back
	Uninitialized  Kind = "uninitialized"   // it has not been ready for pods yet
	Nominated      Kind = "nominated"       // pending pods are about to go there
	MinimumAge     Kind = "minimum-age"     // it is younger than the caller's minimum
	DoNotDisrupt   Kind = "do-not-disrupt"  // an annotation of node or pool
	SwitchedOff    Kind = "switched-off"    // the pool does not want it by this method
	TooEarly       Kind = "too-early"       // consolidateAfter has not passed
	StaticPool     Kind = "static-pool"     // the pool keeps a fixed number of nodes
	UnknownPrice   Kind = "unknown-price"   // the market does not know what it costs
	Kept           Kind = "kept"            // a rule of the caller, see [Rules]
	PodProtected   Kind = "pod-protected"   // an annotation of a pod
	PodUnowned     Kind = "pod-unowned"     // no controller would make a pod again
	PodBudget      Kind = "pod-budget"      // a PodDisruptionBudget
	PodUnplaceable Kind = "pod-unplaceable" // a pod that is not ours to place
	PodGroup       Kind = "pod-group"       // a pod of a group that moves only as a whole, and not all of it can
)

// Blocker is one reason why a node must stay.
type Blocker struct {
	Kind Kind
	// Pod is the namespace/name of the pod that is the reason; empty for other reasons.
	Pod string
	// Text is the reason in words, without the name of node or pod.
	Text string
}

// String is one line for people.
func (b Blocker) String() string {
	if b.Pod != "" {
		return b.Pod + ": " + b.Text
	}
	return b.Text
}

// Rules are choices of the caller. The zero value decides as Karpenter does.
type Rules struct {
	// MinimumAge keeps nodes that are younger from all but interruption and expiration.
	MinimumAge time.Duration
	// KeepUnowned protects pods that no controller would make again. Otherwise they are protected only on nodes of
	// karpenter.sh/v1alpha5 pools, as in the versions of that API.
	KeepUnowned bool
	// Keep says why no method but interruption and the expiration of v1 pools may give back a node, empty if it may; nil keeps none.
	// The reason is a blocker of kind [Kept].
	Keep func(*Node) string
	// Placeable says why a plan cannot place a pod, empty if it can; nil means that it can place all.
	Placeable func(*corev1.Pod) string
}

const doNotConsolidate = "karpenter.sh/do-not-consolidate"

// Blockers returns the reasons why the method must not give back the node, in a fixed order: state of the node, annotations, settings
// of the pool, pods by name. None means that the node is a candidate. Blockers does not ask whether it is empty, expired or drifted.
//
// Interruption and the expiration of v1 pools have no blockers but NotOurs and Leaving. Pods do not block the drift of a node with a
// terminationGracePeriod, because it bounds how long they can stay.
func Blockers(n *Node, m Method, budgets eviction.Budgets, now time.Time, r Rules) []Blocker {
	var out []Blocker
	add := func(k Kind, format string, args ...any) {
		out = append(out, Blocker{Kind: k, Text: fmt.Sprintf(format, args...)})
	}
	if n.Pool == nil {
		add(NotOurs, "no pool of ours bought it")
		return out
	}
	if n.Leaving() {
		add(Leaving, "it is on its way out already")
		return out
	}
	if m == Interruption || m == Expiration && n.Pool.APIVersion == nodepool.V1 {
		return out
	}
	switch {
	case n.Rebooting():
		add(Rebooting, "it is being rebooted")
	case !n.Initialized():
		add(Uninitialized, "it has not been ready for pods yet")
	}
	if n.Nominated {
		add(Nominated, "pending pods are about to go there")
	}
	if age := now.Sub(n.Created()); m != Expiration && age < r.MinimumAge {
		add(MinimumAge, "it is %s old, and the minimum is %s", age.Round(time.Second), r.MinimumAge)
	}
	if r.Keep != nil {
		if why := r.Keep(n); why != "" {
			add(Kept, "%s", why)
		}
	}
	annotations(n, m, add)
	switches(n, m, now, add)
	forced := m == Drift && n.gracePeriod() != nil
	first := len(out)
	for _, p := range n.Pods {
		if b, ok := podBlocker(n, p, budgets, now, r, forced); ok {
			out = append(out, b)
		}
	}
	slices.SortFunc(out[first:], func(a, b Blocker) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// GracePeriod bounds how long the node may take to drain: the setting of the claim, else of the pool; nil means no bound.
func (n *Node) gracePeriod() *time.Duration {
	if n.Claim.TerminationGracePeriod != nil || n.Claim.Decides {
		return n.Claim.TerminationGracePeriod
	}
	return n.Pool.TerminationGracePeriod
}

// annotations are those of the node. A do-not-disrupt that only its pool has is for new nodes: it is drift, and must not keep the node
// from it. A pool that is not to be consolidated says so for all its nodes.
func annotations(n *Node, m Method, add func(Kind, string, ...any)) {
	consolidates := m == Consolidation || m == Emptiness
	switch {
	case n.Node.Annotations[eviction.DoNotDisrupt] == "true":
		add(DoNotDisrupt, "annotation %s=true", eviction.DoNotDisrupt)
	case consolidates && n.Node.Annotations[doNotConsolidate] == "true":
		add(DoNotDisrupt, "annotation %s=true", doNotConsolidate)
	case consolidates && n.Pool.Annotations[doNotConsolidate] == "true":
		add(DoNotDisrupt, "annotation %s=true of pool %s", doNotConsolidate, n.Pool.Name)
	}
}

// switches are the settings of the pool.
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
	case Interruption, Expiration, Drift:
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
			return Blocker{PodUnowned, eviction.Name(p), "no controller would make it again"}, true
		}
		if r.Placeable != nil {
			if why := r.Placeable(p); why != "" {
				return Blocker{PodUnplaceable, eviction.Name(p), why}, true
			}
		}
	}
	// A pod that tolerates the taint of leaving nodes is not evicted but ends with its node. Its budget counts all the same.
	if (eviction.Evictable(p) || eviction.Reschedulable(p) && p.DeletionTimestamp == nil) && !forced {
		if refusal := budgets.Check(p); refusal.Text != "" {
			return Blocker{PodBudget, eviction.Name(p), refusal.Text}, true
		}
	}
	return Blocker{}, false
}
