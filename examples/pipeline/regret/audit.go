// Package regret says what the past could have cost. It compares, hour by hour, the bill of a
// history as it was, the bill of a policy on the same arrivals, and a lower bound for any policy.
// It lists the decisions that cost most and what would have been better.
//
//	history.History ─► Audit ─► Report: Hours, Decisions
//	                     ├─ policy: plan.Make and giveback.Make, from observation to observation
//	                     └─ bounds: plan.Bound of the pods of each moment, without nodes
package regret

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// Options are the options of an audit. nil and the zero value mean defaults.
type Options struct {
	// Plan is how the policy provisions; its groups are read from the pods. Deprovision is how it
	// gives nodes back.
	Plan        *plan.Options
	Deprovision *giveback.Options
	// Startup is how long a node takes to be ready. During that time the policy pays for both the
	// old node and its replacement. 0 means a minute, and a negative value means no time.
	Startup time.Duration
	// Every is how often the policy looks for nodes to give back between observations; 0 means
	// every five minutes.
	Every time.Duration
	// Verify is how many of the most expensive decisions are planned again; 0 means 10, and a
	// negative value none.
	Verify int
}

type options struct {
	Plan        plan.Options
	Deprovision giveback.Options
	Startup     time.Duration
	Every       time.Duration
	Verify      int
}

func (o *Options) defaults() options {
	out := options{Startup: time.Minute, Every: 5 * time.Minute, Verify: 10}
	if o == nil {
		return out
	}
	if o.Plan != nil {
		out.Plan = *o.Plan
	}
	if o.Deprovision != nil {
		out.Deprovision = *o.Deprovision
	}
	out.Startup, out.Verify = max(0, cmp.Or(o.Startup, out.Startup)), max(0, cmp.Or(o.Verify, out.Verify))
	if o.Every > 0 {
		out.Every = o.Every
	}
	return out
}

// Audit computes what a history cost, what a policy would have paid, and what any policy must pay.
// The policy starts with the cluster of the first observation. At each later one, and in between,
// it gives nodes back and then buys for waiting pods. It knows only what exists at that moment. The
// error is that of the context, or of a plan of an invalid cluster.
func Audit(ctx context.Context, h *history.History, sale *history.Sale, o *Options) (*Report, error) {
	a := &auditor{
		history: h, sale: sale, options: o.defaults(), bounds: newBounds(sale.Snapshot), ledger: newLedger(), unpriced: map[string]bool{},
		report: &Report{From: h.Observations[0].At, To: h.Until, Notes: slices.Concat(h.Notes, sale.Notes)},
	}
	a.policy = &policy{options: a.options, manifests: *h.Cluster, sale: sale, classes: a.bounds.classes, nodes: map[string]*machine{}, inherited: map[string]bool{}, pods: map[string]*corev1.Pod{}, seen: map[string]*corev1.Pod{}}
	var ours []history.Observation
	for i := range h.Observations {
		for at := h.Observations[i].At; at.Before(h.End(i)); at = at.Add(a.Every) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := a.observe(ctx, i, at); err != nil {
				return nil, fmt.Errorf("regret: at %s: %w", at.UTC().Format(time.RFC3339), err)
			}
			ours = append(ours, a.policy.observation(at))
		}
	}
	r := a.report
	var err error
	if r.Ours, err = history.New(h.Cluster, ours, h.Until); err != nil {
		return nil, err
	}
	r.Evictions, r.Launches = a.policy.evictions, a.policy.launches
	r.Hours, r.Decisions = a.ledger.hours, a.ledger.decisions()
	for i := range r.Hours {
		r.add(r.Hours[i].Bill)
	}
	if a.remark(); r.NoPods {
		return r, nil
	}
	return r, a.verify(ctx)
}

type auditor struct {
	options
	history *history.History
	sale    *history.Sale
	policy  *policy
	bounds  *bounds
	ledger  *ledger
	report  *Report

	unpriced                                     map[string]bool
	daemons, unplaced, above, nowhere, intervals int
	notOurs                                      notOurs
}

// scene is an observation without the nodes and pods that are left out of all bills.
type scene struct {
	at             time.Time
	seconds        int64
	nodes          []machine
	byName         map[string]*corev1.Node
	running, waits []*corev1.Pod
	daemons        []*corev1.Pod
	nowhere        int // pods on nodes that are missing from the observation
	back           []string
}

// scene returns an observation at a moment, until the policy acts next. It leaves out nodes of
// unknown price and the pods on them, and pods that run on every node or have ended.
func (a *auditor) scene(i int, at time.Time) scene {
	o := &a.history.Observations[i]
	out := scene{at: at, byName: map[string]*corev1.Node{}, back: o.TakenBack, seconds: int64(min(a.Every, a.history.End(i).Sub(at)) / time.Second)}
	nodes, prices, known := a.sale.Nodes(o.Nodes)
	priced, there := map[string]bool{}, map[string]bool{}
	for k, n := range nodes {
		there[n.Name] = true
		if !known[k] {
			a.unpriced[n.Name] = true
			continue
		}
		priced[n.Name], out.byName[n.Name] = true, n
		out.nodes = append(out.nodes, machine{node: n, price: prices[k], touched: o.LastPodEvent[n.Name]})
	}
	for _, p := range o.Pods {
		switch {
		case eviction.Ended(p):
		case eviction.Daemon(p) || eviction.Mirror(p):
			if priced[p.Spec.NodeName] {
				out.daemons = append(out.daemons, p)
			}
		case p.Spec.NodeName == "":
			out.waits = append(out.waits, p)
		case priced[p.Spec.NodeName]:
			out.running = append(out.running, p)
		case !there[p.Spec.NodeName]:
			out.nowhere++
		}
	}
	return out
}

// has reports whether the machine is among the nodes.
func (x *scene) has(n *corev1.Node) bool {
	now := x.byName[n.Name]
	return now != nil && history.SameMachine(now, n)
}

func (a *auditor) observe(ctx context.Context, i int, at time.Time) error {
	x := a.scene(i, at)
	a.daemons, a.nowhere = max(a.daemons, len(x.daemons)), max(a.nowhere, x.nowhere)
	pods := slices.Concat(x.running, x.waits)
	p := a.policy
	p.number, p.overlap = p.number+1, 0
	if p.number == 1 {
		p.begin(at, x.nodes, pods, x.daemons)
	} else {
		p.lose(x.back, &x)
		p.arrive(pods, at)
		if err := p.giveBack(ctx, at); err != nil {
			return err
		}
	}
	if err := p.provision(ctx, at); err != nil {
		return err
	}
	bound, err := a.bounds.of(ctx, x.running)
	if err != nil {
		return err
	}
	present := bound
	served := slices.DeleteFunc(slices.Clone(x.waits), func(pod *corev1.Pod) bool { return p.pods[eviction.Name(pod)].Spec.NodeName == "" })
	if len(served) > 0 { // a pod that no policy can place is no reason to pay
		if present, err = a.bounds.of(ctx, slices.Concat(x.running, served)); err != nil {
			return err
		}
		present.price = max(present.price, bound.price)
	}
	a.unplaced = max(a.unplaced, bound.unplaced)
	a.notOurs = a.notOurs.orMore(bound.notOurs).orMore(p.notOurs)
	waiting := 0
	for _, pod := range p.pods {
		if pod.Spec.NodeName == "" {
			waiting++
		}
	}
	a.report.MostWaiting = max(a.report.MostWaiting, waiting)
	paid := a.ledger.enter(&x, p, bound.price, present.price)
	if a.intervals++; bound.price > paid {
		a.above++
	}
	return nil
}

// remark notes what the report cannot know.
func (a *auditor) remark() {
	r := a.report
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	for name := range a.unpriced {
		r.Unpriced = append(r.Unpriced, name)
	}
	slices.Sort(r.Unpriced)
	if n := len(r.Unpriced); n > 0 {
		note("nodes of unknown price, left out everywhere, with their pods: %s", strings.Join(r.Unpriced, ", "))
	}
	if a.daemons > 0 && len(a.sale.Snapshot.DaemonSets) == 0 {
		note("pods of DaemonSets run and no DaemonSet was given: new nodes of the policy are planned without them, so its bill is too low")
	}
	if a.nowhere > 0 {
		note("pods on nodes that were not observed, left out everywhere: at most %d", a.nowhere)
	}
	if a.unplaced > 0 {
		note("pods that ran although no pool can hold them, left out of the bound: at most %d", a.unplaced)
	}
	if a.notOurs.pods > 0 {
		note("pods that are not ours to place (%s), left out of the bounds, and of our policy's bill while they wait: at most %d", a.notOurs.first, a.notOurs.pods)
	}
	if a.above > 0 {
		note("moments at which less than the bound was paid: %d of %d; what ran then does not match what is for sale", a.above, a.intervals)
	}
	if n := len(a.policy.lost); n > 0 {
		note("machines that the cloud took back from our policy, too, because they were there from the start: %d", n)
	}
	if r.MostWaiting > 0 {
		note("pods that waited under the policy: at most %d", r.MostWaiting)
	}
	if r.NoPods = !slices.ContainsFunc(a.history.Observations, func(o history.Observation) bool { return len(o.Pods) > 0 }); r.NoPods {
		note("the history has no pods, so only the bill is known: add an audit log or snapshots")
	}
}
