// Package budget counts how many nodes of each pool may still be given back at one moment: the budgets of the pools less the nodes that
// are leaving already.
package budget

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Usage counts the nodes of a pool that were ready once.
type Usage struct {
	// Nodes is the number of all of them.
	Nodes int
	// Leaving is the number of those that are on their way out, or that reboot.
	Leaving int
	// NotReady is the number of the others that are not ready. They use up every budget but that of repairs, which make them ready again.
	NotReady int
}

// Count is the usage of each pool, by its name, of nodes that were ready once or that reboot.
func Count(nodes []eligibility.Node) map[string]Usage {
	out := map[string]Usage{}
	for i := range nodes {
		n := &nodes[i]
		if n.Pool == nil || !n.Initialized() && !n.Rebooting() {
			continue
		}
		u := out[n.Pool.Name]
		u.Nodes++
		switch {
		case n.Leaving() || n.Rebooting():
			u.Leaving++
		case !n.Ready():
			u.NotReady++
		}
		out[n.Pool.Name] = u
	}
	return out
}

// Unlimited is what a pool without an active budget allows.
const Unlimited = math.MaxInt32

// Ledger says how many more nodes of each pool may go, by reason. It is immutable and safe for concurrent use; the zero
// value knows no pool and allows nothing.
type Ledger struct {
	lines []line
}

type line struct {
	pool  string
	left  map[nodepool.Reason]int
	taken int
	texts map[nodepool.Reason]string
}

// Reasons are the reasons that budgets distinguish.
func Reasons() []nodepool.Reason {
	return []nodepool.Reason{nodepool.Underutilized, nodepool.Empty, nodepool.Drifted, nodepool.Unhealthy}
}

// New reads the budgets of the pools at the given moment: of those that are active and count for a reason, the smallest
// decides; shares round up. Usage is by name of the pool, and a pool that is not in it has no nodes. A schedule that cannot
// be read makes its budget allow nothing, as in Karpenter; no decoded pool has one.
func New(pools []nodepool.NodePool, usage map[string]Usage, now time.Time) Ledger {
	var out Ledger
	for _, p := range pools {
		u := usage[p.Name]
		l := line{pool: p.Name, left: map[nodepool.Reason]int{}, texts: map[nodepool.Reason]string{}}
		for _, r := range Reasons() {
			least, text := Unlimited, ""
			for i, b := range p.Disruption.Budgets {
				if !b.Counts(r) {
					continue
				}
				active, err := b.Active(now)
				allowed := b.Allowed(u.Nodes)
				if err != nil {
					active, allowed = true, 0
				}
				if active && allowed < least {
					least, text = allowed, fmt.Sprintf("budgets[%d] of pool %s allows %s of %d nodes at once", i, p.Name, allowance(b, allowed), u.Nodes)
				}
			}
			if least != Unlimited {
				taken, why := u.Leaving, "on their way out"
				if r != nodepool.Unhealthy && u.NotReady > 0 {
					taken, why = u.Leaving+u.NotReady, "on their way out or not ready"
				}
				least = max(0, least-taken)
				if taken > 0 {
					text += fmt.Sprintf(", and %d are %s", taken, why)
				}
			}
			l.left[r], l.texts[r] = least, text
		}
		out.lines = append(out.lines, l)
	}
	return out
}

func allowance(b nodepool.Budget, n int) string {
	if b.Percent {
		return fmt.Sprintf("%d%% (%d)", b.Nodes, n)
	}
	return fmt.Sprint(n)
}

// Left is how many more nodes of the pool may go for the reason.
func (l Ledger) Left(pool string, r nodepool.Reason) int {
	x := l.of(pool)
	return max(0, x.left[r]-x.taken)
}

// of is the line of the pool; the zero value, which allows nothing, if there is none.
func (l Ledger) of(pool string) line {
	if i := slices.IndexFunc(l.lines, func(x line) bool { return x.pool == pool }); i >= 0 {
		return l.lines[i]
	}
	return line{}
}

// Why says which budget decides for the pool and reason; empty if none does.
func (l Ledger) Why(pool string, r nodepool.Reason) string {
	x := l.of(pool)
	if x.taken > 0 && x.texts[r] != "" {
		return fmt.Sprintf("%s; this plan takes %d", x.texts[r], x.taken)
	}
	return x.texts[r]
}

// Take is the ledger after n more nodes of the pool were given back. Each counts against the budgets of all reasons.
func (l Ledger) Take(pool string, n int) Ledger {
	out := Ledger{slices.Clone(l.lines)}
	for i := range out.lines {
		if out.lines[i].pool == pool {
			out.lines[i].taken += n
		}
	}
	return out
}
