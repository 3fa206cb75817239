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

// Outcome is a failure that was rehearsed.
type Outcome struct {
	Failure
	// Displaced is how many pods the failure displaces.
	Displaced int
	// Ignored is how many of them are not ours to place, such as those of another scheduler: nothing is said of them.
	Ignored int
	// Waiting are those that only nodes to buy have room for, of what would still be for sale. Lost are those without a place anywhere, and
	// Why says what is in the way of the first of them.
	Waiting, Lost []*corev1.Pod
	Why           string

	price float64 // dollars an hour of the nodes that are planned for the waiting pods
}

// Holds reports whether all displaced pods have places at once.
func (o *Outcome) Holds() bool { return len(o.Waiting)+len(o.Lost) == 0 }

// Workload is the worst that a failure does to a workload.
type Workload struct {
	// Workload is that of [plan.WorkloadOf], and Pods how many it has.
	Workload string
	Pods     int
	// Worst is the failure that leaves most of its pods without a place, and of these the one that lets most of them wait.
	Worst         Failure
	Waiting, Lost int
}

// Report is what a cluster would live through.
type Report struct {
	// Failures are all that were rehearsed, by kind in the order of the question, then by name.
	Failures []Outcome
	// Workloads are those that some failure leaves waiting or without a place, the worst first, then by name.
	Workloads []Workload
	// Headroom makes every failure hold, but for the pods that are lost: no room helps these.
	Headroom Headroom
}

// Holds reports whether every failure leaves all pods a place at once, without headroom.
func (r *Report) Holds() bool {
	return !slices.ContainsFunc(r.Failures, func(o Outcome) bool { return !o.Holds() })
}

// Rehearse rehearses every single failure of the kinds, in the cluster with the plan carried out. By is how plans are made; nil means
// defaults. A failure costs a plan of the pods that it displaces, and another one where some of them wait. The errors are those of [plan.Make].
//
// Displaced pods care for no preferences, and zones without nodes are no domains of spreads, as it is in kube-scheduler. Nodes that fail
// are there no more, and who made their pods makes them anew. A volume stays where it is.
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

// Of is [Rehearse] with what it means for workloads, and with the headroom that makes failures hold, which costs a bounded number of
// plans more. Kept are nodes that are kept free beside the plan, such as those of CapacityBuffers.
func Of(ctx context.Context, p *plan.Plan, by *plan.Options, kinds []Kind, kept ...*corev1.Node) (*Report, error) {
	r := rehearsal{snapshot: p.CarriedOut(), by: urgent(by)}
	r.snapshot.Nodes = slices.Concat(r.snapshot.Nodes, kept)
	all, err := r.all(ctx, kinds)
	if err != nil {
		return nil, err
	}
	out := &Report{Failures: all, Workloads: workloads(r.snapshot.Pods, all)}
	out.Headroom, err = r.headroom(ctx, all)
	return out, err
}

// urgent is how pods are planned that a failure displaced. The snapshot is narrowed already.
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

// rehearsal is a cluster, and the headroom that it has.
type rehearsal struct {
	snapshot scheduling.Snapshot
	spare    []Spare
	next     int // number of the next spare
	by       plan.Options
	hints    map[Failure]map[string]string // where a packing of all failures has the pods that one of them displaces, by pod
}

// cluster is the snapshot with its headroom.
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

// rehearse says what a failure does. What the displaced pods find at once is planned with nothing for sale, because nobody waits for a plan
// then that only works out if nodes might have been bought.
func (r *rehearsal) rehearse(ctx context.Context, f Failure) (Outcome, error) {
	s, displaced := f.after(r.cluster())
	out := Outcome{Failure: f, Displaced: len(displaced)}
	now, err := r.atOnce(ctx, f, s)
	for _, i := range now.ignored {
		if slices.ContainsFunc(displaced, func(p *corev1.Pod) bool { return p.Name == i.Pod.Name && p.Namespace == i.Pod.Namespace }) {
			out.Ignored++
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

// state is what becomes of the displaced pods at once.
type state struct {
	cluster scheduling.Snapshot // with the pods that have places
	places  []scheduling.Binding
	waiting []*corev1.Pod
	ignored []scheduling.Ignored
}

// atOnce gives the pods that wait places on nodes that are there. Where a plan leaves some out, it is made again by the packing of all failures,
// which is tighter.
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

// placed is the state once as many of the pods have places as a plan with nothing for sale finds, by the hint if there is one.
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

// read notes which of the waiting pods are lost in the plan of what is for sale.
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

// workloads are the worst cases.
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
