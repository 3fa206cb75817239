package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

// verdict returns a verdict for the node.
func (m *member) verdict(o Outcome, method eligibility.Method, detail string) Verdict {
	return Verdict{Node: m.Name, Outcome: o, Method: method, Detail: detail, Disruption: m.Disruption, PricePerHour: m.PricePerHour}
}

// after returns the verdict, completed with what an earlier one found before a later round decided.
func (v Verdict) after(old *Verdict) Verdict {
	out := *old
	out.Node, out.Outcome, out.Method, out.Disruption, out.PricePerHour = v.Node, v.Outcome, v.Method, v.Disruption, v.PricePerHour
	if v.Detail != "" {
		out.Detail = v.Detail
	}
	return out
}

// note records why a node stays, unless a verdict of higher precedence is known.
func (p *planner) note(v Verdict) {
	if old, ok := p.noted[v.Node]; ok {
		lead := precedence(old.Outcome) - precedence(v.Outcome)
		if lead > 0 || lead == 0 && old.Method == eligibility.Unhealthy && v.Method != old.Method { // why a broken node stays matters more
			return
		}
	}
	p.noted[v.Node] = v
}

// precedence is higher for outcomes that are closer to a command.
func precedence(o Outcome) int {
	switch o {
	case Chosen:
		return 6
	case Outranked:
		return 4
	case OverBudget:
		return 3
	case NoSaving, WouldNotFit:
		return 2
	case Blocked:
		return 1
	case NotAsked:
		return 0
	}
	return 0
}

// verdicts begins the verdicts with what the first search found. A node without an outcome stays
// unless a command gives it back, and explanations says why.
func (p *planner) verdicts() {
	if p.out.Verdicts != nil {
		return
	}
	for i := range p.cluster.Nodes {
		name := p.cluster.Nodes[i].Name()
		v, m := p.noted[name], p.nodes[name]
		v.Node = name
		if m == nil { // its command adds the rest
			v = Verdict{Node: name, Outcome: Chosen}
		}
		if v.Outcome == "" && !p.asksFor(eligibility.Consolidation) {
			v = m.verdict(NotAsked, "", "none of the requested methods applies")
		}
		v.Notes = p.cluster.Nodes[i].Undecided
		p.out.Verdicts = append(p.out.Verdicts, v)
	}
	slices.SortFunc(p.out.Verdicts, func(a, b Verdict) int { return strings.Compare(a.Node, b.Node) })
}

// explanations completes the verdicts of nodes without an outcome, as the commands leave the cluster.
// If these did not reach the state that was found, what was too little for a node there is asked again.
func (p *planner) explanations() {
	p.units = p.unitPrices()
	for i := range p.out.Verdicts {
		v := &p.out.Verdicts[i]
		if m := p.nodes[v.Node]; m != nil && (v.Outcome == "" || p.short && v.Outcome == Outranked && v.Method == eligibility.Consolidation) {
			notes := v.Notes
			*v = p.explain(m)
			v.Notes = notes
		}
		if m := p.nodes[v.Node]; m != nil && v.Method == eligibility.Consolidation {
			v.Detail += p.onRequest(m, v.Outcome)
		}
	}
}

// onRequest says what [Options.SpotToSpot] would find for a spot node that stays. It is empty if
// that is nothing that saves enough. Only a node whose pods would not fit elsewhere is told so.
func (p *planner) onRequest(m *member, o Outcome) string {
	set := p.tied(m)
	q := question(set)
	if p.o.SpotToSpot || !p.onlySpot(set) || o != NoSaving && o != WouldNotFit && o != Outranked || p.bound(q) >= costOf(set) {
		return ""
	}
	spot := func(a *Answer) bool {
		return a.OK() && slices.ContainsFunc(a.NewNodes, func(n NewNode) bool { return n.CapacityType == "spot" })
	}
	q.MaxNodes, q.MaxCost = len(set), costOf(set)-max(0, p.o.MinSavings-1)
	a := p.ask(q)
	w, found := p.weigh(set, a.cost()+a.Forgone), ""
	switch inflexible := p.inflexible(set, &a); {
	case !spot(&a) && a.OK() && p.saves(w):
		return "; on-demand nodes replace spot nodes only where the pool allows no spot nodes"
	case !spot(&a) && a.OK() && p.saves(w):
		return "; on-demand nodes replace spot nodes only where the pool allows no spot nodes"
	case !spot(&a) || !p.saves(w) || w.net() <= 0:
		if o != WouldNotFit {
			return ""
		}
		q.MaxCost = 0
		if a = p.ask(q); !spot(&a) {
			return ""
		}
		found = "none found would save enough"
	case inflexible != "":
		found = inflexible
	case len(a.NewNodes) == 1:
		found = fmt.Sprintf("%s in %s would do at $%.4f", a.NewNodes[0].InstanceType, a.NewNodes[0].Zone, a.price().Dollars())
	default:
		found = fmt.Sprintf("new nodes would do at $%.4f", a.price().Dollars())
	}
	return "; spot nodes are replaced by spot nodes only on request (option spot-to-spot): then " + found
}

// explain returns the verdict of a candidate that stays, in the cluster as it is.
func (p *planner) explain(m *member) Verdict {
	v := m.verdict(NoSaving, eligibility.Consolidation, "")
	set := p.tied(m)
	q, with := question(set), p.together(m.Name)
	v.BoundPerHour = p.bound(q)
	if cost := costOf(set); v.BoundPerHour >= cost {
		v.Detail = fmt.Sprintf("%sit costs $%.4f an hour, and nothing that holds its pods can cost less than $%.4f", with, cost.Dollars(), v.BoundPerHour.Dollars())
		return v
	}
	q.MaxNodes, q.Explain = len(set), true
	a := p.ask(q)
	w := p.weigh(set, a.cost()+a.Forgone)
	if a.OK() && w.saving > 0 && !p.o.SpotToSpot && p.onlySpot(set) && p.forSpot(a.NewNodes) {
		q.MaxNodes = 0
		a = p.ask(q)
		w = p.weigh(set, a.Forgone)
	}
	pays, pods := a.OK() && p.saves(w), p.evictions(set...)
	inflexible := ""
	demands := func(n NewNode) bool { return p.pools[n.Pool] != nil && len(p.pools[n.Pool].MinValues) > 0 }
	if pays && (slices.ContainsFunc(set, p.spot) || slices.ContainsFunc(a.NewNodes, demands)) {
		q.MaxCost = costOf(set) - max(0, p.o.MinSavings-1) // dearer types are no choice
		b := p.ask(q)
		if inflexible = b.Inflexible; b.OK() {
			a, inflexible = b, p.inflexible(set, &b)
		}
	}
	switch {
	case inflexible != "":
		v.BestPricePerHour, v.Detail = a.price(), with+inflexible
	case pays && w.net() <= 0:
		return p.outranked(m, w, a.price())
	case pays && p.o.MaxEvictions > 0 && pods > p.o.MaxEvictions:
		v.Outcome, v.BestPricePerHour = OverBudget, a.price()
		v.Detail = fmt.Sprintf("%sit would save $%.4f an hour, but evictions are limited to %d, this plan makes %d for savings, and emptying it would make %d more", with, w.saving.Dollars(), p.o.MaxEvictions, p.evictions(), pods-p.evictions())
	case pays:
		return p.waits(m, set, &a)
	case a.OK() && w.saving > 0 && !p.saves(w):
		v.Outcome, v.BestPricePerHour = Outranked, a.price()
		v.Detail = fmt.Sprintf("%sit would save $%.4f an hour, less than the required minimum of $%.4f", with, w.saving.Dollars(), p.o.MinSavings.Dollars())
	case !a.OK():
		v.Outcome, v.Detail = WouldNotFit, with+cmp.Or(a.Inflexible, a.Why)+p.unbought(q, &a)
	case len(a.NewNodes) == 0:
		v.Detail = with + "its pods would fit on other nodes, but giving it back saves nothing"
	case len(set) > 1:
		v.BestPricePerHour = a.price()
		v.Detail = fmt.Sprintf("%sthey cost $%.4f an hour, and new nodes for their pods would cost $%.4f", with, priceOf(set).Dollars(), a.price().Dollars())
	default:
		n := a.NewNodes[0]
		v.BestPricePerHour = a.price()
		v.Detail = fmt.Sprintf("it costs $%.4f an hour, and the cheapest found for its pods is %s in %s at $%.4f", m.PricePerHour.Dollars(), n.InstanceType, n.Zone, n.PricePerHour.Dollars())
	}
	if v.Outcome == NoSaving && inflexible == "" && a.price() < priceOf(set) { // only the price is lower
		v.Detail += fmt.Sprintf("; what the objective counts would be $%.4f instead of $%.4f", (a.cost() + a.Forgone).Dollars(), costOf(set).Dollars())
	}
	return v
}

// unbought says what keeps a question without an answer from buying nodes. First, that is what the
// nodes of the question count against until they are gone: limits of pools, quotas, reservations and
// stocks. Otherwise it is what the answer says. It is empty if neither is known.
func (p *planner) unbought(q Question, answer *Answer) string {
	q.Freed, q.Explain = true, false
	switch a := p.ask(q); {
	case a.OK() && len(a.Freed) > 0:
		return "; nothing can be bought before it goes: " + strings.Join(a.Freed, "; ")
	case answer.Unsold != "" && answer.Inflexible == "":
		return "; " + answer.Unsold
	}
	return ""
}

// strand says how many pods of the command have no other place, and why the first of them has none.
func (p *planner) strand(c *Command) string {
	why := ""
	for _, pod := range c.Stranded {
		why = cmp.Or(why, p.losses[pod])
	}
	switch len(c.Stranded) {
	case 0:
		return ""
	case 1:
		return ", though a pod loses its place: " + cmp.Or(why, eviction.Name(c.Stranded[0]))
	}
	return fmt.Sprintf(", though %d pods lose their places: %s", len(c.Stranded), cmp.Or(why, eviction.Name(c.Stranded[0])+" and others"))
}

// lost names the pods of the command that nothing recreates; it is empty if there are none. Pods that
// move have places, so that whoever creates them again finds room.
func lost(c *Command) string {
	var names []string
	placed := false
	for _, pod := range slices.Concat(c.Pods(), c.Stranded) {
		if eviction.Unowned(pod) {
			names = append(names, eviction.Name(pod))
			placed = placed || !slices.Contains(c.Stranded, pod)
		}
	}
	slices.Sort(names)
	place := ""
	switch {
	case len(names) == 0:
		return ""
	case len(names) == 1 && placed:
		place = ", and its place is for one that is created anew"
	case placed:
		place = ", and their places are for pods that are created anew"
	}
	if len(names) == 1 {
		return fmt.Sprintf("; %s ends, because no controller recreates it%s", names[0], place)
	}
	return fmt.Sprintf("; %s and %d more end, because no controller recreates them%s", names[0], len(names)-1, place)
}

// lingers says which PodDisruptionBudget may keep the drain of the nodes from ending; it is empty if none
// does. A node that drains is a domain of a spread over hosts until it is gone, unless the spread
// honors its taint. So the successor of an evicted pod may wait for the node to go, while the budget
// allows no further eviction until the successor runs.
func (p *planner) lingers(set []*member, a *Answer) string {
	places := map[*corev1.Pod]string{}
	for _, pl := range a.Placements {
		places[pl.Pod] = pl.Node
	}
	type drained struct {
		pod  *corev1.Pod
		from *member
	}
	guarded := map[string][]drained{}
	for _, m := range set {
		for _, pod := range m.Pods {
			if places[pod] == "" || p.pdbs.Free(pod) {
				continue
			}
			for _, name := range p.pdbs.Of(pod) {
				guarded[name] = append(guarded[name], drained{pod, m})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(guarded)) {
		list, allowed := guarded[name], p.pdbs.Allowed(name)
		at := slices.IndexFunc(list, func(d drained) bool { return overHosts(d.pod) != nil })
		if at < 0 || len(list) <= allowed {
			continue
		}
		owner := list[at].pod
		spread := overHosts(owner)
		selected := func(pod *corev1.Pod) bool { return counts(spread, owner, pod) }
		hosts, targets, waiting, left := map[string]int{}, []string(nil), 0, 0
		count := func(m *member) {
			for _, pod := range m.Pods {
				if selected(pod) {
					hosts[m.Name]++
				}
			}
		}
		for _, m := range set {
			count(m)
		}
		for _, d := range list {
			if !selected(d.pod) {
				continue
			}
			left++
			if to := places[d.pod]; !slices.Contains(targets, to) {
				if targets, hosts[to] = append(targets, to), 0; p.nodes[to] != nil {
					count(p.nodes[to])
				}
			}
		}
		slices.Sort(targets)
		for _, d := range list {
			if !selected(d.pod) {
				continue
			}
			waiting, left = waiting+1, left-1
			if hosts[d.from.Name]--; hosts[d.from.Name] == 0 {
				delete(hosts, d.from.Name) // it is empty, and goes
			}
			for waiting > 0 {
				to := slices.MinFunc(targets, func(a, b string) int { return cmp.Compare(hosts[a], hosts[b]) })
				if hosts[to]+1-slices.Min(slices.Collect(maps.Values(hosts))) > int(spread.MaxSkew) {
					break
				}
				hosts[to], waiting = hosts[to]+1, waiting-1
			}
			if waiting >= allowed && left > 0 {
				return fmt.Sprintf("; the drain may not end: a node counts for the spread of %s over hosts until it is gone, so evicted pods wait for it, and PodDisruptionBudget %s allows no eviction meanwhile (nodeTaintsPolicy: Honor avoids this)", eviction.Name(owner), name)
			}
		}
	}
	return ""
}

// overHosts returns the pod's hard spread over hosts for which nodes that drain count; nil if it has
// none that counts the pod itself.
func overHosts(pod *corev1.Pod) *corev1.TopologySpreadConstraint {
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if c.TopologyKey == corev1.LabelHostname && c.WhenUnsatisfiable == corev1.DoNotSchedule &&
			(c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyIgnore) && counts(c, pod, pod) {
			return c
		}
	}
	return nil
}

// counts reports whether the spread of its owner counts the pod.
func counts(c *corev1.TopologySpreadConstraint, owner, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	return err == nil && pod.Namespace == owner.Namespace && pod.DeletionTimestamp == nil && selector.Matches(labels.Set(pod.Labels)) &&
		!slices.ContainsFunc(c.MatchLabelKeys, func(key string) bool { return pod.Labels[key] != owner.Labels[key] })
}

// outranked returns the verdict of a node whose disruption costs more than it saves. A node whose
// lifetime has ended saves nothing, because it goes in any case.
func (p *planner) outranked(m *member, w balance, best deprovision.Price) Verdict {
	if w.horizon <= 0 {
		return m.verdict(Outranked, eligibility.Consolidation, p.together(m.Name)+"its lifetime has ended, so consolidation saves nothing: expiration gives it back")
	}
	v := m.verdict(Outranked, eligibility.Consolidation, fmt.Sprintf("%sit would save $%.4f in %s, but its disruption costs $%.4f", p.together(m.Name), w.earned.Dollars(), time.Duration(w.horizon*float64(time.Hour)).Round(time.Minute), w.disrupted.Dollars()))
	v.BestPricePerHour, v.Earned, v.Cost = best, w.earned, w.disrupted
	return v
}

// waits returns the verdict of a node of the set that could go after the commands, as the answer says,
// but waits for the next plan.
func (p *planner) waits(m *member, set []*member, a *Answer) Verdict {
	v := m.verdict(OverBudget, eligibility.Consolidation, "")
	for _, mate := range set {
		if _, over := p.ledger.split(eligibility.Consolidation, []*member{mate}); len(over) > 0 {
			v.Detail = p.ledger.why(mate.Node, mate.reason(eligibility.Consolidation))
			return v
		}
	}
	if other := p.keeps[m.Name]; other != "" {
		why := "which this plan does not move"
		if o := p.verdictOf(other).Outcome; o == OverBudget {
			why = "which the budgets hold back"
		} else if o == Chosen {
			why = "which move elsewhere in this plan, and no pod moves twice"
		}
		v.Outcome, v.Detail = NoSaving, fmt.Sprintf("%sit is kept for pods of %s, %s", p.together(m.Name), other, why)
		return v
	}
	moved := p.movedAlready()
	if slices.ContainsFunc(set, func(m *member) bool {
		return slices.ContainsFunc(m.Pods, func(pod *corev1.Pod) bool { return moved[pod] })
	}) {
		v.Outcome, v.Detail = NotAsked, p.together(m.Name)+"pods move to it in this plan, and no pod moves twice"
		return v
	}
	why := "elsewhere now, but the search ended without a command for it"
	if p.held {
		why = "elsewhere now, but budgets hold other nodes back, and this plan ends there"
	}
	for _, pl := range a.Placements {
		if p.verdictOf(pl.Node).Outcome == OverBudget {
			why = fmt.Sprintf("on %s now, but the budgets hold that node back, and a later plan may give it back", pl.Node)
			break
		}
	}
	v.Outcome, v.Detail = NotAsked, p.together(m.Name)+"its pods would fit "+why
	return v
}

// keepFor records which nodes stay for pods of nodes that the moves give back, but no command does. A
// pod that a command has moved counts for its node of the cluster.
func (p *planner) keepFor(list []move, to *destination) {
	if p.single {
		return
	}
	from := map[*corev1.Pod]string{}
	for i := range p.out.Commands {
		for _, n := range p.out.Commands[i].Nodes {
			for _, pod := range n.Pods {
				from[pod] = n.Name
			}
		}
	}
	p.keeps = map[string]string{}
	for _, v := range list {
		m := v.nodes[0]
		for _, pod := range m.Pods {
			name := cmp.Or(from[pod], m.Name)
			if node := to.moved[pod]; p.nodes[m.Name] != nil && (p.keeps[node] == "" || name < p.keeps[node]) {
				p.keeps[node] = name
			}
		}
	}
}

// block records the blockers of the node for the method and reports whether there are any.
func (p *planner) block(m *member, method eligibility.Method) bool {
	by := p.blockers(m, method)
	if len(by) == 0 {
		by = p.tieBlockers(m, method)
	}
	if len(by) == 0 {
		return false
	}
	v := m.verdict(Blocked, method, by[0].String())
	v.By = by
	p.note(v)
	return true
}
