package survive

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Outcome is the result of one rehearsed failure.
type Outcome struct {
	Failure
	// Displaced is how many pods the failure displaces.
	Displaced int
	// Ignored are those of them that are not to be planned, such as those of another scheduler, and
	// why. The outcome says nothing else about these.
	Ignored []scheduling.Ignored
	// Waiting are the pods that fit only on new nodes, of the offerings that would still be for
	// sale. Lost are the pods without a place anywhere. Why says what is in the way of the first of
	// them.
	Waiting, Lost []*corev1.Pod
	Why           string

	price float64 // dollars an hour of the nodes planned for the waiting pods
}

// Holds reports whether all displaced pods have places at once, except [Outcome.Ignored].
func (o *Outcome) Holds() bool { return len(o.Waiting)+len(o.Lost) == 0 }

// Workload is the worst effect of a failure on a workload.
type Workload struct {
	// Workload is the name of [plan.WorkloadOf]. Pods is how many pods it has.
	Workload string
	Pods     int
	// Worst is the failure that leaves most of its pods without a place, or, of equal ones, lets
	// most of them wait. Waiting and Lost count the pods in that failure.
	Worst         Failure
	Waiting, Lost int
}

// Report is the result of rehearsing a cluster.
type Report struct {
	// Failures are all rehearsed failures, by kind in the order of the question, then by name.
	Failures []Outcome
	// Workloads are those that some failure leaves waiting or without a place, worst first, then by
	// name.
	Workloads []Workload
	// With Headroom, all displaced pods have places at once after every failure. Exceptions are
	// lost pods, which no capacity helps, and [Headroom.Unmet].
	Headroom Headroom
}

// Holds reports whether after every failure all pods have a place at once, without headroom. It
// does not count [Outcome.Ignored].
func (r *Report) Holds() bool {
	return !slices.ContainsFunc(r.Failures, func(o Outcome) bool { return !o.Holds() })
}

// Rehearse rehearses every single failure of the kinds, in the cluster after the plan. by says how
// plans are made; nil means defaults. A failure costs a plan of the pods that it displaces, and
// another one if some of them wait. The errors are those of [plan.Make].
//
// Displaced pods give up their preferences. Zones without nodes are not domains of spreads, as in
// kube-scheduler. Failed nodes no longer exist, and controllers recreate their pods. A volume stays
// where it is.
func Rehearse(ctx context.Context, p *plan.Plan, by *plan.Options, kinds []Kind) ([]Outcome, error) {
	r := rehearsal{snapshot: p.CarriedOut(), by: urgent(by)}
	return r.all(ctx, kinds)
}

func (r *rehearsal) all(ctx context.Context, kinds []Kind) ([]Outcome, error) {
	var out []Outcome
	for _, f := range failures(&r.snapshot, kinds) {
		o, err := r.rehearse(ctx, f)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// Of is [Rehearse], plus the effect on each workload and the headroom with which the cluster
// survives the failures. The headroom costs a bounded number of additional plans. kept are nodes
// that are kept free in addition to the plan, such as those of CapacityBuffers.
func Of(ctx context.Context, p *plan.Plan, by *plan.Options, kinds []Kind, kept ...*corev1.Node) (*Report, error) {
	r := rehearsal{snapshot: p.CarriedOut(), by: urgent(by)}
	r.snapshot.Nodes = slices.Concat(r.snapshot.Nodes, kept)
	all, err := r.all(ctx, kinds)
	if err != nil {
		return nil, err
	}
	if r.sale, err = r.newSale(); err != nil {
		return nil, err
	}
	out := &Report{Failures: all, Workloads: workloads(r.snapshot.Pods, all)}
	out.Headroom, err = r.headroom(ctx, all)
	return out, err
}

// urgent returns the options for planning displaced pods. The snapshot is already narrowed.
func urgent(by *plan.Options) plan.Options {
	var out plan.Options
	if by != nil {
		out = *by
	}
	var rules scheduling.Options
	if out.Scheduling != nil {
		rules = *out.Scheduling
	}
	rules.IgnorePreferences, rules.LeaveZones, rules.Progress = true, true, nil
	out.Scheduling = &rules
	if beyond := out.Objective; beyond != nil {
		narrowed := *beyond
		narrowed.Prices, narrowed.MostCPU, narrowed.MostNodes = nil, 0, 0
		out.Objective = &narrowed
	}
	return out
}

// rehearsal is a cluster and its headroom.
type rehearsal struct {
	snapshot scheduling.Snapshot
	spare    []Spare
	next     int // number of the next spare
	by       plan.Options
	sale     *sale
	hints    map[Failure]map[string]string // where a packing of all failures places the displaced pods, by failure and pod
}

// cluster returns the snapshot with its headroom.
func (r *rehearsal) cluster() scheduling.Snapshot {
	s := r.snapshot
	s.Nodes = slices.Clone(s.Nodes)
	for i := range r.spare {
		s.Nodes = append(s.Nodes, r.spare[i].node)
	}
	return s
}

func (r *rehearsal) plan(ctx context.Context, s scheduling.Snapshot) (*plan.Plan, error) {
	p, err := plan.Make(ctx, s, &r.by)
	if err != nil {
		return nil, fmt.Errorf("survive: %w", err)
	}
	return p, nil
}

// rehearse returns the result of a failure. What the displaced pods find at once is planned with
// nothing for sale, because it must not depend on buying nodes.
func (r *rehearsal) rehearse(ctx context.Context, f Failure) (Outcome, error) {
	s, displaced := f.after(r.cluster())
	out := Outcome{Failure: f, Displaced: len(displaced)}
	now, err := r.atOnce(ctx, f, s)
	for _, i := range now.ignored {
		if slices.ContainsFunc(displaced, func(p *corev1.Pod) bool { return p.Name == i.Pod.Name && p.Namespace == i.Pod.Namespace }) {
			out.Ignored = append(out.Ignored, i)
		}
	}
	if err != nil || len(now.waiting) == 0 {
		return out, err
	}
	at := now.cluster
	at.Pools, at.Pods = s.Pools, slices.Concat(at.Pods, now.waiting)
	p, err := r.plan(ctx, at)
	if err != nil {
		return out, err
	}
	out.read(p, now.waiting)
	out.price = p.Totals().PricePerHour
	return out, nil
}

// state is the immediate situation of the displaced pods.
type state struct {
	cluster scheduling.Snapshot // with the pods that have places
	places  []scheduling.Binding
	waiting []*corev1.Pod
	ignored []scheduling.Ignored
}

// atOnce gives waiting pods places on existing nodes. If a plan leaves some out, it is made again
// with the hint from the packing of all failures, which is tighter.
func (r *rehearsal) atOnce(ctx context.Context, f Failure, s scheduling.Snapshot) (state, error) {
	out := state{cluster: s}
	if !slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" }) {
		return out, nil
	}
	free, err := r.placed(ctx, s, nil)
	hints := r.hints[f]
	if err != nil || len(free.waiting) == 0 || len(hints) == 0 {
		return free, err
	}
	displaced := slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
	hinted, err := r.placed(ctx, s, newHint(displaced, hints))
	if err != nil || len(hinted.waiting) >= len(free.waiting) {
		return free, err
	}
	return hinted, nil
}

// placed returns the state after a plan with nothing for sale has placed as many pods as it can,
// with the hint if there is one.
func (r *rehearsal) placed(ctx context.Context, s scheduling.Snapshot, by *hint) (state, error) {
	s.Pools = nil
	opts, packing := r.by, binpack.Options{}
	if r.by.Packing != nil {
		packing = *r.by.Packing
	}
	packing.Draft = true // no bound is needed
	if by != nil {
		packing.Strategy = by
	}
	opts.Packing = &packing
	p, err := plan.Make(ctx, s, &opts)
	if err != nil {
		return state{}, fmt.Errorf("survive: %w", err)
	}
	out := state{cluster: p.CarriedOut(), places: p.Bindings(), ignored: p.Ignored()}
	for _, u := range p.Unplaced() {
		out.waiting = append(out.waiting, u.Pods...)
	}
	return out, nil
}

// read records which of the waiting pods are lost in the plan with what is for sale.
func (o *Outcome) read(p *plan.Plan, waiting []*corev1.Pod) {
	lost := map[string]bool{}
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			lost[pod.Namespace+"/"+pod.Name] = true
		}
		if o.Why == "" {
			var why []string
			for _, reason := range u.Reasons() {
				why = append(why, reason.String())
			}
			o.Why = strings.Join(why, "; ")
		}
	}
	for _, pod := range waiting {
		if lost[pod.Namespace+"/"+pod.Name] {
			o.Lost = append(o.Lost, pod)
		} else {
			o.Waiting = append(o.Waiting, pod)
		}
	}
}

// workloads returns the worst case of each workload that some failure affects.
func workloads(pods []*corev1.Pod, all []Outcome) []Workload {
	total := map[string]int{}
	for _, p := range pods {
		total[plan.WorkloadOf(p)]++
	}
	worst := map[string]Workload{}
	for _, o := range all {
		waiting, lost := map[string]int{}, map[string]int{}
		for _, p := range o.Waiting {
			waiting[plan.WorkloadOf(p)]++
		}
		for _, p := range o.Lost {
			lost[plan.WorkloadOf(p)]++
		}
		for _, p := range slices.Concat(o.Waiting, o.Lost) {
			name := plan.WorkloadOf(p)
			w := Workload{Workload: name, Pods: total[name], Worst: o.Failure, Waiting: waiting[name], Lost: lost[name]}
			if before, known := worst[name]; !known || cmp.Or(cmp.Compare(w.Lost, before.Lost), cmp.Compare(w.Waiting, before.Waiting)) > 0 {
				worst[name] = w
			}
		}
	}
	out := make([]Workload, 0, len(worst))
	for _, w := range worst { // sorted below
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(b.Waiting, a.Waiting), strings.Compare(a.Workload, b.Workload))
	})
	return out
}
