package regret

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// verify looks for something better than the most expensive decisions. It tries two moments: when
// the node first had pods, and when the most was paid for it beyond what its pods cost under the
// policy.
func (a *auditor) verify(ctx context.Context) error {
	n := 0
	for i := range a.report.Decisions {
		d := &a.report.Decisions[i]
		if n == a.Verify || d.Regret() <= 0 {
			return nil
		}
		if d.Node == "" {
			continue
		}
		n++
		if err := a.better(ctx, d, a.ledger.rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *auditor) better(ctx context.Context, d *Decision, r *row) error {
	if d.Idle > 0 && d.Idle >= d.Regret()/2 {
		d.Kind, d.At, d.Saves = Empty, r.empty.observation, r.empty.more.Dollars()
		d.Better = fmt.Sprintf("give it back when it is empty, which it was for %.0f%% of the time", 100*float64(d.Idle)/float64(d.Paid))
	}
	for _, when := range []struct {
		kind Kind
		moment
	}{{Bought, r.first}, {Kept, r.worst}} {
		if d.Kind != "" || !when.known {
			continue
		}
		text, saves, err := a.without(ctx, d.Node, when.observation)
		if err != nil {
			return err
		}
		if text != "" && when.kind == Bought && a.there(r) {
			when.kind = Kept
		}
		if text != "" {
			d.Kind, d.Better, d.At, d.Saves = when.kind, text, when.observation, saves.Dollars()
		}
	}
	switch d.Kind {
	case "":
		d.Kind = Together
	case Kept, Empty:
		if d.Keeps = a.keeps(d.Node, d.At); d.Keeps != "" {
			d.Kind = Protected
		}
	case Bought, Protected, Together, Waited, Spare:
	}
	return nil
}

// keeps names a do-not-disrupt annotation of the node or of its pods at a moment. It is empty if there
// is none.
func (a *auditor) keeps(node string, at time.Time) string {
	x := a.observed(at)
	if n := x.byName[node]; n != nil && n.Annotations[eviction.DoNotDisrupt] == "true" {
		return "the node has " + eviction.DoNotDisrupt + "=true"
	}
	first := ""
	for _, p := range slices.Concat(x.running, x.daemons) {
		why := eviction.Protected(p, at)
		if text := eviction.Name(p) + " has " + why; p.Spec.NodeName == node && why != "" && p.DeletionTimestamp == nil && (first == "" || text < first) {
			first = text
		}
	}
	return first
}

// observed returns what was there at a moment.
func (a *auditor) observed(at time.Time) scene {
	i := slices.IndexFunc(a.history.Observations, func(o history.Observation) bool { return o.At.After(at) })
	if i < 0 {
		i = len(a.history.Observations)
	}
	return a.scene(i-1, at)
}

// there reports whether the node is older than the history, which then has no purchase of it. A
// node of the first observation whose creation is unknown counts as older.
func (a *auditor) there(r *row) bool {
	begin := a.report.From
	return r.From.Equal(begin) && (r.node.CreationTimestamp.IsZero() || r.node.CreationTimestamp.Time.Before(begin))
}

// without plans the pods of a node elsewhere, with everything else as it was at a moment. The text
// is empty if that is not cheaper.
func (a *auditor) without(ctx context.Context, node string, at time.Time) (string, deprovision.Price, error) {
	x := a.observed(at)
	s := a.sale.Snapshot
	var price deprovision.Price
	for k := range x.nodes {
		if x.nodes[k].node.Name == node {
			price = x.nodes[k].price
		} else {
			s.Nodes = append(s.Nodes, x.nodes[k].node)
		}
	}
	moves := map[string]bool{}
	for _, p := range x.running {
		if p.Spec.NodeName == node {
			p = on(p, "")
			moves[p.Namespace+"/"+p.Name] = true
		}
		s.Pods = append(s.Pods, p)
	}
	for _, p := range x.daemons {
		if p.Spec.NodeName != node {
			s.Pods = append(s.Pods, p)
		}
	}
	p, err := plan.Make(ctx, s, &plan.Options{Packing: &binpack.Options{Effort: binpack.EffortFast}})
	if err != nil {
		return "", 0, err
	}
	saves := price - deprovision.Price(p.Cost())
	if len(p.Unplaced()) > 0 || saves <= 0 {
		return "", 0, nil
	}
	to := map[string]int{}
	for _, b := range p.Bindings() {
		if !b.New && moves[b.Pod.Namespace+"/"+b.Pod.Name] {
			to[b.Node]++
		}
	}
	var texts []string
	if len(to) > 0 {
		names := slices.Sorted(maps.Keys(to))
		pods := 0
		for _, n := range to {
			pods += n
		}
		const most = 3
		more := ""
		if k := len(names) - most; k > 0 {
			names, more = names[:most], fmt.Sprintf(" and %d more", k)
		}
		fit := "fit"
		if pods == 1 {
			fit = "fits"
		}
		texts = append(texts, fmt.Sprintf("%s %s on %s%s", plural(pods, "pod"), fit, strings.Join(names, ", "), more))
	}
	for _, n := range p.NewNodes() {
		texts = append(texts, fmt.Sprintf("%s in %s, %s, is enough for %s (%v/h)", n.InstanceType.Name, n.Zone, n.CapacityType, plural(len(n.Pods), "pod"), binpack.Dollars(n.PricePerHour)))
	}
	return strings.Join(texts, "; "), saves, nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
