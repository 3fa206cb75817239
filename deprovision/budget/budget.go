// Package budget counts how many nodes of each pool, or of each zone, may still be given back at
// one moment: what the budgets allow, minus the nodes that are already leaving.
package budget

import (
	"cmp"
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

// line is the budgets of a pool or zone. kind says which of these it is.
type line struct {
	kind, name string
	usage      Usage
	rules      map[nodepool.Reason][]rule // those that are active
	moments    []moment                   // fewest gone first, which have most leaving
}

// rule is a budget with its place in the list. One that cannot be read allows nothing.
type rule struct {
	nodepool.Budget
	at         int
	unreadable bool
}

func (r rule) allows(nodes int) int {
	if r.unreadable {
		return 0
	}
	return r.Allowed(max(0, nodes))
}

// moment is a state of the pool while commands are carried out: how many of its nodes they have
// given back, and how many are on their way. Nodes that leave without waves are always on their way,
// because no budget allows more nodes once a node has gone than before it left.
type moment struct{ gone, leaving int }

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
	l := line{kind: kind, name: name, usage: u, rules: map[nodepool.Reason][]rule{}, moments: []moment{{}}}
	for i, b := range budgets {
		active, err := b.Active(now)
		for _, r := range Reasons() {
			if b.Counts(r) && (active || err != nil) {
				l.rules[r] = append(l.rules[r], rule{b, i, err != nil})
			}
		}
	}
	return l
}

// used counts the nodes that use up the budgets of the reason already.
func (l line) used(r nodepool.Reason) int {
	if r == nodepool.Unhealthy {
		return l.usage.Leaving
	}
	return l.usage.Leaving + l.usage.NotReady
}

// tightest returns the budget of the reason that allows fewest further nodes, with how many these are
// and when that is.
func (l line) tightest(r nodepool.Reason) (decides rule, when moment, left int) {
	left = Unlimited
	for _, m := range l.moments {
		for _, x := range l.rules[r] {
			if n := max(0, x.allows(l.usage.Nodes-m.gone)-l.used(r)-m.leaving); n < left || n == left && m == when && x.allows(l.usage.Nodes-m.gone) < decides.allows(l.usage.Nodes-m.gone) {
				decides, when, left = x, m, n
			}
		}
	}
	return decides, when, left
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
	if len(x.moments) == 0 {
		return 0
	}
	_, _, left := x.tightest(r)
	return left
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
	x := l.of(pool)
	b, when, left := x.tightest(r)
	if left == Unlimited {
		return ""
	}
	nodes := max(0, x.usage.Nodes-when.gone)
	allowed := b.allows(nodes)
	text := fmt.Sprintf("budgets[%d] of %s %s allows %s of %d nodes at once", b.at, x.kind, x.name, allowance(b.Budget, allowed), nodes)
	if when.gone > 0 {
		text += fmt.Sprintf(" when this plan has given back %d", when.gone)
	}
	some := len(b.Reasons) > 0 && len(b.Reasons) < len(Reasons())
	if some {
		text += " for the " + reasonsText(b.Reasons)
	}
	if allowed == 0 {
		return text
	}
	used := ""
	switch taken := x.used(r); {
	case taken == 0:
	case r != nodepool.Unhealthy && x.usage.NotReady > 0:
		used = fmt.Sprintf(", and %s being removed or not ready", are(taken))
	default:
		used = fmt.Sprintf(", and %s being removed", are(taken))
	}
	if when.leaving > 0 {
		used += fmt.Sprintf("; this plan takes %d", when.leaving)
	}
	if used != "" && some {
		used += "; nodes that go for other reasons count, too"
	}
	return text + used
}

// Take returns the ledger after n more nodes of the pool have been given back. Each node counts
// against the budgets of all reasons.
func (l Ledger) Take(pool string, n int) Ledger { return l.TakeInWaves(pool, []int{n}) }

// TakeInWaves is [Ledger.Take] for waves of nodes, given by their sizes: a wave leaves when the one
// before it has gone. What is left is left at every moment, although a percentage allows fewer nodes
// when some have gone.
func (l Ledger) TakeInWaves(pool string, waves []int) Ledger {
	if len(waves) == 0 {
		return l
	}
	return l.with(pool, func(m moment) (out []moment) {
		for _, n := range waves {
			out = append(out, moment{m.gone, m.leaving + n})
			m.gone += n
		}
		return out
	})
}

// Gone returns the ledger when n more nodes of the pool have gone. A percentage counts the others.
func (l Ledger) Gone(pool string, n int) Ledger {
	return l.with(pool, func(m moment) []moment { return []moment{{m.gone + n, m.leaving}} })
}

// with returns the ledger with other moments of the pool: those that each moment becomes. Of moments
// with equally many nodes on their way the last one decides, so there are no more than budgets allow.
func (l Ledger) with(pool string, become func(moment) []moment) Ledger {
	out := Ledger{slices.Clone(l.lines)}
	i := slices.IndexFunc(out.lines, func(x line) bool { return x.name == pool })
	if i < 0 {
		return out
	}
	var all []moment
	for _, m := range out.lines[i].moments {
		all = append(all, become(m)...)
	}
	slices.SortFunc(all, func(a, b moment) int { return cmp.Or(cmp.Compare(b.leaving, a.leaving), cmp.Compare(b.gone, a.gone)) })
	var kept []moment
	for _, m := range all { // those with more on their way come first
		if n := len(kept); n == 0 || m.gone > kept[n-1].gone {
			kept = append(kept, m)
		}
	}
	out.lines[i].moments = kept
	return out
}

func are(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}
