package gang

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

const (
	// mostTrials limits the drafts that look for domains, for all sets of groups together;
	// draftedPods also limits their pods. One set gets a quarter of what remains. Otherwise a set
	// that fits nowhere would use it up.
	mostTrials = 512
	// trialWork is the pods and offerings of a usual trial, each counted once a round. A trial with
	// more work counts for several, so that large catalogues, and pods with many constraints and so
	// many rounds, do not take minutes. A draft of a set counts for one up to draftWork.
	trialWork = 200
	draftWork = 2_000
	// If drafts find no places, they are searched for at most searchedPods pods, mostSearches
	// times. A search takes ten times as long as a draft.
	searchedPods = 64
	mostSearches = 32
	// mostChoices limits the choices of domains that are looked at for one group.
	mostChoices = 256
)

// choice is the domains of one group: values of its key. If these are not known before nodes are
// bought, it says which of the pods share a value. The zero choice leaves it to the planner.
type choice struct {
	values []string
	part   map[types.NamespacedName]int // by pod; the first parts are with the running pods
}

func (c choice) isFree() bool { return c.values == nil && c.part == nil }

// domains are the choices by group; nil for none.
type domains []choice

func (d domains) of(g int) choice {
	if d == nil {
		return choice{}
	}
	return d[g]
}

// within returns [scheduling.Options.Within] for such domains.
func (a *admission) within(in domains) func(*corev1.Pod) requirements.Set {
	return func(pod *corev1.Pod) requirements.Set {
		g, ok := a.of[nameOf(pod)]
		if !ok || in[g].values == nil {
			if a.options.Within != nil {
				return a.options.Within(pod)
			}
			return requirements.Set{}
		}
		return requirements.MustOf(requirements.In(a.groups[g].Key, in[g].values...))
	}
}

// setOf returns the set of a pod whose group has a key and must share one value; empty for none.
func (a *admission) setOf(g int, c choice, pod *corev1.Pod) (set, label string) {
	group := &a.groups[g]
	switch {
	case c.values != nil, group.Values > 1 && c.isFree():
		return "", ""
	case c.isFree():
		return "group " + group.Name, group.Key
	}
	part, ok := c.part[nameOf(pod)]
	if v, runs := group.heldBy[nameOf(pod)]; runs {
		part, ok = slices.Index(group.held, v), true
	}
	if !ok {
		return "", ""
	}
	return fmt.Sprintf("group %s, part %d", group.Name, part+1), group.Key
}

// used returns the values of the group's key on the nodes of its placed and running pods, in order.
func (a *admission) used(g int, at *attempt) []string {
	values, valueOf := slices.Clone(a.groups[g].held), a.valueIn(at)
	for _, b := range at.result.Bindings() {
		if i, ok := a.of[nameOf(b.Pod)]; ok && i == g {
			values = append(values, valueOf(g, &b))
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// valueIn returns a function for the value of a group's key on the node of a binding. A node
// without the value counts by its name.
func (a *admission) valueIn(at *attempt) func(g int, b *scheduling.Binding) string {
	fresh, old := map[string]map[string]string{}, map[string]map[string]string{}
	for _, n := range at.result.NewNodes() {
		fresh[n.Name] = n.Labels
	}
	for i := range at.problem.Existing {
		old[at.problem.Existing[i].Node.Name] = at.problem.Existing[i].Labels.Labels() // a node that starts may not have its labels yet
	}
	return func(g int, b *scheduling.Binding) string {
		labels := old[b.Node]
		if b.New {
			labels = fresh[b.Node]
		}
		return cmp.Or(labels[a.groups[g].Key], b.Node)
	}
}

// isSpread reports whether a group has more values of its key than it may. Only a finished plan
// shows that if it may have several values, or if its pods run on nodes without their labels yet.
func (a *admission) isSpread(g int, at *attempt) bool {
	group := &a.groups[g]
	return group.Key != "" && at.placed[g] > 0 && len(a.used(g, at)) > max(1, group.Values, len(group.held))
}

// domainsOf returns the domains that an attempt uses, as a choice.
func (a *admission) domainsOf(at *attempt) domains {
	out := make(domains, len(a.groups))
	for g := range a.groups {
		group := &a.groups[g]
		if !at.set[g] || at.placed[g] == 0 || group.Key == "" {
			continue
		}
		if a.valuesOf(g) != nil {
			out[g].values = a.used(g, at)
			continue
		}
		if group.Values < 2 {
			continue
		}
		out[g].part = map[types.NamespacedName]int{}
		parts, valueOf := slices.Clone(group.held), a.valueIn(at)
		for _, b := range at.result.Bindings() {
			if i, ok := a.of[nameOf(b.Pod)]; ok && i == g {
				v := valueOf(g, &b)
				if !slices.Contains(parts, v) {
					parts = append(parts, v)
				}
				out[g].part[nameOf(b.Pod)] = slices.Index(parts, v)
			}
		}
		for _, pod := range group.pods { // those without a place may join the others
			if _, ok := out[g].part[nameOf(pod)]; !ok {
				out[g].part[nameOf(pod)] = 0
			}
		}
	}
	return out
}

// valuesOf returns the values of the group's key. It is nil if there is no key, or if not all
// values are known.
func (a *admission) valuesOf(g int) []string {
	key := a.groups[g].Key
	if key == "" {
		return nil
	}
	return a.roomsOf(key).values
}

// rooms is the capacity of each resource by domain of a label.
type rooms struct {
	values []string
	free   map[string][]float64 // on existing nodes
	most   map[string][]float64 // including what may be bought
}

// roomsOf measures the domains of a label, once for each label.
func (a *admission) roomsOf(key string) *rooms {
	if r, known := a.rooms[key]; known {
		return r
	}
	p := a.base
	r := &rooms{values: p.Values(key), free: map[string][]float64{}, most: map[string][]float64{}}
	a.rooms[key] = r
	for _, v := range r.values {
		is, free, most := requirements.MustOf(requirements.In(key, v)), make([]float64, len(p.Resources)), make([]float64, len(p.Resources))
		offered := offeredIn(p, is)
		for k := range p.Resources {
			for i := range p.Existing {
				if value, ok := p.Existing[i].Labels.Get(key).Single(); ok && value == v {
					free[k] += max(0, float64(p.Existing[i].Free[k]))
				}
			}
			most[k] = free[k]
			for pool := range p.Pools {
				most[k] += purchasable(p, pool, k, offered)
			}
		}
		r.free[v], r.most[v] = free, most
	}
	return r
}

// offeredIn reports of each shape and offering whether its nodes may be in a domain.
func offeredIn(p *scheduling.Problem, domain requirements.Set) func(shape, offering int) bool {
	in := make([][]bool, len(p.Shapes))
	for i := range p.Shapes {
		for j := range p.Shapes[i].Offerings {
			labels, err := p.NodeLabels(i, j)
			in[i] = append(in[i], err == nil && domain.Compatible(labels, requirements.Keys{}))
		}
	}
	return func(shape, offering int) bool { return in[shape][offering] }
}

// choices returns the choices of a group, and whether these are all. They are the values of its
// running pods with as many others as it may have, those with the most capacity first. If values
// are unknown, they are divisions of its pods, the most even first.
func (a *admission) choices(g int) (out []choice, all bool) {
	group := &a.groups[g]
	most := max(1, group.Values)
	if len(group.held) >= most {
		return []choice{{values: group.held}}, true
	}
	values := a.valuesOf(g)
	if values == nil {
		if most == 1 {
			return nil, true
		}
		return divisions(group.pods, most, len(group.held) > 0)
	}
	others := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(group.held, v) })
	rooms := a.roomsOf(group.Key)
	share := func(v string) float64 {
		out := 0.0
		for r, n := range group.demand {
			if n > 0 {
				out = max(out, n/rooms.most[v][r])
			}
		}
		return out
	}
	slices.SortStableFunc(others, func(x, y string) int { return cmp.Compare(share(x), share(y)) })
	more := min(len(others), most-len(group.held))
	all = true
	var extend func(chosen []string, from int)
	extend = func(chosen []string, from int) {
		if len(chosen) == len(group.held)+more {
			if len(out) == mostChoices {
				all = false
				return
			}
			out = append(out, choice{values: slices.Sorted(slices.Values(chosen))})
			return
		}
		for i := from; i < len(others) && all; i++ {
			extend(append(slices.Clip(chosen), others[i]), i+1)
		}
	}
	extend(group.held, 0)
	return out, all
}

// divisions returns the ways to divide pods into a number of parts, each no larger than the one
// before, the most even first. If the parts differ, it returns all ways.
func divisions(pods []*corev1.Pod, parts int, differ bool) (out []choice, all bool) {
	all = true
	var extend func(sizes []int, left, most int)
	extend = func(sizes []int, left, most int) {
		if left == 0 {
			if all = len(out) < mostChoices; !all {
				return
			}
			c, at := choice{part: map[types.NamespacedName]int{}}, 0
			for k, n := range sizes {
				for range n {
					c.part[nameOf(pods[at])] = k
					at++
				}
			}
			out = append(out, c)
			return
		}
		if len(sizes) == parts {
			return
		}
		least := (left + parts - len(sizes) - 1) / (parts - len(sizes)) // of an even division
		if differ {
			least, most = 0, left
		}
		for size := least; size <= min(left, most) && all; size++ {
			extend(append(slices.Clip(sizes), size), left-size, size)
		}
	}
	extend(nil, len(pods), len(pods))
	return out, all
}

// explore drafts a set in the domains that the planner chooses, and then in one choice of domains
// after the other until one holds all groups. It is a depth-first search that cuts off branches
// without the capacity. For a few pods it then searches for places in the same way. If there are
// more choices than drafts, it says so.
func (a *admission) explore(set []bool) (*attempt, error) {
	d := &descent{admission: a, set: set, in: make(domains, len(a.groups))}
	first, err := d.leaf(nil)
	if err != nil || a.holds(first) && first.who != needed {
		return first, err
	}
	for g := range a.groups {
		if !set[g] || a.groups[g].Key == "" || len(a.groups[g].pods) == 0 {
			continue
		}
		choices, all := a.choices(g)
		if a.complete = a.complete && all; len(choices) > 0 {
			d.groups, d.choices = append(d.groups, g), append(d.choices, choices)
		}
	}
	for _, d.by = range []method{byDraft, bySearch} {
		d.left = (max(0, a.trials[d.by]) + 3) / 4
		if d.by == byDraft && len(d.groups) == 0 || d.by == bySearch && len(a.of) > searchedPods {
			continue
		}
		if err := d.descend(0, 0); err != nil {
			return nil, err
		}
		if d.found != nil {
			return d.found, nil
		}
	}
	return first, nil
}

// descent is a search for the domains of a set.
type descent struct {
	*admission
	set     []bool
	groups  []int // with choices
	choices [][]choice
	in      domains
	by      method
	left    int // drafts that may still be made
	found   *attempt
	spares  bool // found is whole already, and a plan of more pods is wanted
}

// ends reports whether nothing more is wanted.
func (d *descent) ends() bool {
	return d.found != nil && !(d.spares && slices.ContainsFunc(d.groups, func(g int) bool { return d.found.placed[g] < len(d.admission.groups[g].pods) }))
}

// descend tries the choices of the groups from position n on. before is the position of the
// previous group's choice.
func (d *descent) descend(n, before int) error {
	if n == len(d.groups) {
		if d.left--; d.left < 0 || d.ctx.Err() != nil {
			d.complete = false
			return nil
		}
		next, err := d.leaf(slices.Clone(d.in))
		if err != nil {
			return err
		}
		d.trials[d.by] -= 1 + next.work/trialWork
		d.left -= next.work / trialWork
		if next.who != needed && d.holds(next) && (!d.spares || d.valueOf(next).compare(d.valueOf(d.found)) > 0) {
			d.found = next
		}
		return nil
	}
	g, from := d.groups[n], 0
	kind := d.admission.groups[g].kind
	if n > 0 && kind == d.admission.groups[d.groups[n-1]].kind { // two of one kind may change places
		from = before
	}
	for i := from; i < len(d.choices[n]) && !d.ends() && d.left >= 0; i++ {
		d.in[g] = d.choices[n][i]
		fits := d.fits(g)
		if fits && len(d.groups) > 1 {
			var err error
			if fits, err = d.holdsAlone(g, i, d.in[g], d.by); err != nil {
				return err
			}
		}
		if fits {
			if err := d.descend(n+1, i); err != nil {
				return err
			}
		}
		d.in[g] = choice{}
	}
	return nil
}

// leaf plans the set in domains. It plans the needed pods alone first, because most choices of
// domains already fail for them, and other pods only slow that down. If only these have places,
// groups do without spare pods whose priority is no higher than that of the groups that fail beside
// them.
func (d *descent) leaf(in domains) (at *attempt, err error) {
	work, t := 0, trial{set: d.set, last: noGroup, in: in, by: d.by}
	for _, t.who = range []crowd{needed, everyone, noSpares} {
		if at, err = d.attempt(t); err != nil {
			return nil, err
		}
		work += at.work
		broken := d.broken(at)
		if (len(broken) == 0) != (t.who == needed) {
			break
		}
		for i, g := range broken {
			if p := d.admission.groups[g].priority; i == 0 || p > t.spares {
				t.spares = p
			}
		}
	}
	at.work = work
	return at, nil
}

// free is the position of the choice that leaves the domains to the planner.
const free = -1

// alone is a group of a kind in one of its choices of domains, without other groups.
type alone struct {
	kind, choice int
	by           method
}

// holdsAlone reports whether a choice of domains holds what a group needs if nothing else is
// planned. A choice that does not is never tried. If the group's constraints select pods of other
// groups, the answer is unknown, and the result is true.
func (a *admission) holdsAlone(g, choice int, c choice, by method) (bool, error) {
	key := alone{a.groups[g].kind, choice, by}
	holds, known := a.alone[key]
	if known || a.groups[g].selects || a.trials[by] <= 0 {
		return holds || !known, nil
	}
	in := make(domains, len(a.groups))
	in[g] = c
	at, err := a.attempt(trial{set: with(make([]bool, len(a.groups)), g), last: noGroup, in: in, by: by, who: needed})
	if err != nil {
		return false, err
	}
	a.trials[by] -= 1 + at.work/trialWork
	a.alone[key] = a.holds(at)
	return a.alone[key], nil
}

// fits reports whether the domains of a group's key have enough capacity. Each domain must hold the
// groups that have no other. What these need beyond the free capacity of their domains, and what
// other groups need beyond the remaining free capacity, must fit in all purchases together.
func (d *descent) fits(g int) bool {
	key, c := d.admission.groups[g].Key, d.in[g]
	rooms := d.roomsOf(key)
	if c.values == nil || rooms.values == nil {
		return true
	}
	for r := range d.capacity {
		room := 0.0
		for _, v := range c.values {
			room += rooms.most[v][r]
		}
		if d.admission.groups[g].demand[r] > room*(1+rounding) {
			return false
		}
		load, others := map[string]float64{}, 0.0
		for i := range d.admission.groups {
			switch demand := d.admission.groups[i].demand[r]; {
			case !d.set[i]:
			case d.admission.groups[i].Key == key && len(d.in[i].values) == 1:
				load[d.in[i].values[0]] += demand
			default:
				others += demand
			}
		}
		free, buy := d.existing[r], 0.0
		for _, v := range rooms.values {
			if load[v] > rooms.most[v][r]*(1+rounding) {
				return false
			}
			free -= min(load[v], rooms.free[v][r])
			buy += max(0, load[v]-rooms.free[v][r])
		}
		if buy+max(0, others-free) > (d.capacity[r]-d.existing[r])*(1+rounding)+rounding {
			return false
		}
	}
	return true
}
