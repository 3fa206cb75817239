// Package budget counts how many nodes of each pool, or of each zone, may still be given back at
// one moment: what the budgets allow, minus the nodes that are already leaving.
package budget

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Usage counts the nodes of a pool, or of a zone, that have been ready at least once or that
// reboot.
type Usage struct {
	// Nodes is the number of all these nodes.
	Nodes int
	// Leaving is the number of nodes that are leaving or rebooting.
	Leaving int
	// NotReady is the number of other nodes that are not ready. They use up every budget except
	// that of repairs, because a repair makes a node ready again.
	NotReady int
}

// Count returns the usage of each pool. The keys are the names of the pools. It counts nodes that
// have been ready once or that reboot.
func Count(nodes []eligibility.Node) map[string]Usage {
	return count(nodes, (*eligibility.Node).PoolName)
}

// count returns the usage of the nodes that belong to pools, by a name that each node has.
func count(nodes []eligibility.Node, name func(*eligibility.Node) string) map[string]Usage {
	out := map[string]Usage{}
	for i := range nodes {
		n := &nodes[i]
		if n.Pool == nil || !n.Initialized() && !n.Rebooting() {
			continue
		}
		u := out[name(n)]
		u.Nodes++
		switch {
		case n.Leaving() || n.Rebooting():
			u.Leaving++
		case !n.Ready():
			u.NotReady++
		}
		out[name(n)] = u
	}
	return out
}

// Unlimited is the number that a pool without an active budget allows.
const Unlimited = math.MaxInt32

// Ledger says how many more nodes of each pool may go for each reason. It is immutable and safe for
// concurrent use. The zero value knows no pool and allows nothing.
type Ledger struct {
	lines []line
}

type line struct {
	name   string // of the pool or zone
	limits map[nodepool.Reason]limit
	taken  int
}

// limit is the budget that decides for a reason. text says what it allows, and used what uses it up
// already. any says that nodes of other reasons use it up, too. none says that it allows no node.
type limit struct {
	left            int
	text, used, any string
	none            bool
}

// Reasons returns the reasons that budgets distinguish.
func Reasons() []nodepool.Reason {
	return []nodepool.Reason{nodepool.Underutilized, nodepool.Empty, nodepool.Drifted, nodepool.Unhealthy}
}

// New reads the budgets of the pools at the given moment. The smallest budget that is active and
// counts for a reason decides. Percentages round up. The keys of usage are names of pools; a pool
// that is missing there has no nodes. A schedule that cannot be read makes its budget allow
// nothing, as in Karpenter. A decoded pool has no such schedule.
func New(pools []nodepool.NodePool, usage map[string]Usage, now time.Time) Ledger {
	var out Ledger
	for _, p := range pools {
		out.lines = append(out.lines, lineOf("pool", p.Name, p.Disruption.Budgets, usage[p.Name], now))
	}
	return out
}

// Zones is [New] for budgets of zones: each budget applies to each zone, across all pools. Nodes
// whose zone is unknown count as one zone. The methods of the ledger then take names of zones
// instead of names of pools.
func Zones(budgets []nodepool.Budget, nodes []eligibility.Node, now time.Time) Ledger {
	var out Ledger
	usage := count(nodes, func(n *eligibility.Node) string { return n.Zone })
	for i := range nodes { // a zone in which no node counts has budgets, too
		if _, known := usage[nodes[i].Zone]; !known {
			usage[nodes[i].Zone] = Usage{}
		}
	}
	for _, zone := range slices.Sorted(maps.Keys(usage)) {
		out.lines = append(out.lines, lineOf("zone", zone, budgets, usage[zone], now))
	}
	return out
}

func lineOf(kind, name string, budgets []nodepool.Budget, u Usage, now time.Time) line {
	l := line{name: name, limits: map[nodepool.Reason]limit{}}
	for _, r := range Reasons() {
		x := limit{left: Unlimited}
		for i, b := range budgets {
			if !b.Counts(r) {
				continue
			}
			active, err := b.Active(now)
			allowed := b.Allowed(u.Nodes)
			if err != nil {
				active, allowed = true, 0
			}
			if active && allowed < x.left {
				x = limit{left: allowed, text: fmt.Sprintf("budgets[%d] of %s %s allows %s of %d nodes at once", i, kind, name, allowance(b, allowed), u.Nodes), none: allowed == 0}
				if len(b.Reasons) > 0 && len(b.Reasons) < len(Reasons()) {
					x.text += " for the " + reasonsText(b.Reasons)
					x.any = "; nodes that go for other reasons count, too"
				}
			}
		}
		if x.left != Unlimited {
			taken, why := u.Leaving, "being removed"
			if r != nodepool.Unhealthy && u.NotReady > 0 {
				taken, why = u.Leaving+u.NotReady, "being removed or not ready"
			}
			x.left = max(0, x.left-taken)
			if taken > 0 {
				x.used = fmt.Sprintf(", and %d are %s", taken, why)
			}
		}
		l.limits[r] = x
	}
	return l
}

// reasonsText returns "reason Empty", or "reasons Empty and Drifted".
func reasonsText(reasons []nodepool.Reason) string {
	last := len(reasons) - 1
	if last == 0 {
		return "reason " + string(reasons[0])
	}
	names := make([]string, 0, last)
	for _, r := range reasons[:last] {
		names = append(names, string(r))
	}
	return "reasons " + strings.Join(names, ", ") + " and " + string(reasons[last])
}

func allowance(b nodepool.Budget, n int) string {
	if b.Percent {
		return fmt.Sprintf("%d%% (%d)", b.Nodes, n)
	}
	return fmt.Sprint(n)
}

// Left returns how many more nodes of the pool may go for the reason.
func (l Ledger) Left(pool string, r nodepool.Reason) int {
	x := l.of(pool)
	return max(0, x.limits[r].left-x.taken)
}

// of returns the line of the pool, or the zero value, which allows nothing.
func (l Ledger) of(pool string) line {
	if i := slices.IndexFunc(l.lines, func(x line) bool { return x.name == pool }); i >= 0 {
		return l.lines[i]
	}
	return line{}
}

// Why says which budget decides for the pool and reason, and what uses it up if it allows any node.
// It is empty if none decides.
func (l Ledger) Why(pool string, r nodepool.Reason) string {
	line := l.of(pool)
	x, used := line.limits[r], ""
	if x.text == "" || x.none {
		return x.text
	}
	if used = x.used; line.taken > 0 {
		used += fmt.Sprintf("; this plan takes %d", line.taken)
	}
	if used != "" {
		used += x.any
	}
	return x.text + used
}

// Take returns the ledger after n more nodes of the pool have been given back. Each node counts
// against the budgets of all reasons.
func (l Ledger) Take(pool string, n int) Ledger {
	out := Ledger{slices.Clone(l.lines)}
	for i := range out.lines {
		if out.lines[i].name == pool {
			out.lines[i].taken += n
		}
	}
	return out
}
