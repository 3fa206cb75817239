// Package drain plans how a node is emptied: which pods can be evicted now, which pods must wait
// and for what, and which pods must be forced at the end.
package drain

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

// Tier is the turn of a pod in a drain.
type Tier int

// The tiers, in the order of their turns. Pods of the two system priority classes are critical:
// other pods may need them while they end.
const (
	Ordinary       Tier = iota // neither a daemon nor critical
	OrdinaryDaemon             // owned by a DaemonSet, but not critical
	Critical                   // critical, but no daemon
	CriticalDaemon             // owned by a DaemonSet, and critical
)

// String returns the tier in words.
func (t Tier) String() string {
	return [...]string{"ordinary", "daemon", "critical", "critical daemon"}[t]
}

// Step is one pod of a drain. A pod waits until all pods of earlier tiers are gone.
type Step struct {
	Pod  *corev1.Pod
	Tier Tier
	// Wait says what the pod waits for. It is empty if the pod can be evicted now.
	Wait string
	// Never says that waiting does not help: only force removes the pod.
	Never bool
}

// Plan says how one node is emptied from a given moment on.
type Plan struct {
	// Steps are the pods that the drain evicts, ordered by tier, then by the cost of eviction, then
	// by name.
	Steps []Step
	// Ending are the pods that were evicted and have not ended yet. A pod that should have ended
	// more than a minute ago is not listed, because no kubelet is left to report its end. After the
	// deadline no pod is listed.
	Ending []*corev1.Pod
	// Stay are the pods that no drain waits for: finished pods, static pods of the kubelet, pods
	// that tolerate the taint karpenter.sh/disrupted, and pods whose end is no longer waited for
	// (see Ending).
	Stay []*corev1.Pod
	// Forced are the pods to delete now because the deadline is near. Each of them is also in Steps
	// or in Ending.
	Forced []Forced
}

// Done reports whether the drain has nothing left to do or to wait for.
func (p Plan) Done() bool { return len(p.Steps) == 0 && len(p.Ending) == 0 && len(p.Forced) == 0 }

// stuck is how long after its due end a pod is still waited for.
const stuck = time.Minute

// Forced is a pod that is deleted without asking the eviction API. Grace is the grace period of the
// deletion, at least a second.
type Forced struct {
	Pod   *corev1.Pod
	Grace time.Duration
}

// Now returns the pods that can be evicted at once, in order.
func (p Plan) Now() []*corev1.Pod {
	var out []*corev1.Pod
	for _, s := range p.Steps {
		if s.Wait == "" {
			out = append(out, s.Pod)
		}
	}
	return out
}

// Of plans the drain of a node with the given pods. Every eviction uses up one disruption of the
// pod's budget, so two pods of one budget do not go at the same time if the budget allows only one
// disruption.
//
// deadline is when the node goes, whatever runs there; the zero time means never. The deadline
// holds for the node even if the grace period of a pod is longer: a pod is forced when the time
// until the deadline is shorter than the pod's grace period. A pod that is already ending is forced
// if it would end after the deadline. A nil pod is ignored.
func Of(pods []*corev1.Pod, budgets eviction.Budgets, now, deadline time.Time) Plan {
	var out Plan
	for _, p := range pods {
		switch {
		case p == nil:
		case eviction.Evictable(p):
			out.Steps = append(out.Steps, Step{Pod: p, Tier: tierOf(p)})
		case waitsFor(p, now, deadline):
			out.Ending = append(out.Ending, p)
		default:
			out.Stay = append(out.Stay, p)
		}
	}
	slices.SortStableFunc(out.Steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(eviction.Cost(a.Pod), eviction.Cost(b.Pod)),
			cmp.Compare(eviction.Name(a.Pod), eviction.Name(b.Pod)))
	})
	out.wait(budgets, now)
	if !deadline.IsZero() {
		out.force(now, deadline)
	}
	return out
}

// waitsFor reports whether a pod that need not be evicted has been evicted before and still has
// time to end.
func waitsFor(p *corev1.Pod, now, deadline time.Time) bool {
	if p.DeletionTimestamp == nil || now.After(p.DeletionTimestamp.Add(stuck)) || !deadline.IsZero() && !now.Before(deadline) {
		return false
	}
	before := *p
	before.DeletionTimestamp = nil
	return eviction.Evictable(&before)
}

func (p *Plan) wait(budgets eviction.Budgets, now time.Time) {
	turn := CriticalDaemon
	for _, s := range p.Steps {
		turn = min(turn, s.Tier)
	}
	for _, e := range p.Ending {
		turn = min(turn, tierOf(e))
	}
	taken := map[string]int{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Tier != turn {
			s.Wait = "pods of tier " + turn.String() + " go first"
			continue
		}
		if why := eviction.Protected(s.Pod, now); why != "" {
			s.Wait, s.Never = "annotation "+why, strings.HasSuffix(why, "=true") // a protection with a duration ends by itself
			continue
		}
		if refusal := budgets.Check(s.Pod); refusal.Text != "" {
			s.Wait, s.Never = refusal.Text, refusal.Always
			continue
		}
		if budgets.Free(s.Pod) {
			continue
		}
		name := budgets.Of(s.Pod)[0] // there is only one, because Check refuses a pod with several
		if taken[name]++; taken[name] > budgets.Allowed(name) {
			s.Wait = "PodDisruptionBudget " + name + " allows no more at the same time"
		}
	}
}

func (p *Plan) force(now, deadline time.Time) {
	for _, s := range p.Steps {
		grace := 30 * time.Second // the default of the API server
		if g := s.Pod.Spec.TerminationGracePeriodSeconds; g != nil {
			grace = time.Duration(min(*g, int64(math.MaxInt64/time.Second))) * time.Second // a longer one has no duration
		}
		if left := deadline.Sub(now); left < grace {
			p.Forced = append(p.Forced, Forced{s.Pod, max(time.Second, left)})
		}
	}
	for _, e := range p.Ending {
		if e.DeletionTimestamp.After(deadline) {
			p.Forced = append(p.Forced, Forced{e, max(time.Second, deadline.Sub(now))})
		}
	}
}

// tierOf uses the names of the two system priority classes, as Karpenter does. A class of the user
// is never critical, even if its priority is high.
func tierOf(p *corev1.Pod) Tier {
	critical := p.Spec.PriorityClassName == "system-cluster-critical" || p.Spec.PriorityClassName == "system-node-critical"
	daemon := eviction.Daemon(p)
	switch {
	case critical && daemon:
		return CriticalDaemon
	case critical:
		return Critical
	case daemon:
		return OrdinaryDaemon
	}
	return Ordinary
}
