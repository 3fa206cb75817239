package survive

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// maxJoint limits how many failures form one problem, because each adds its own dimensions to every
// node. The failures that need the dearest nodes are used.
const maxJoint = 24

// joint states all failures as one packing problem. A new node serves every failure that it
// outlives, so it has its capacity once for each of these failures: the dimensions of the problem
// are pairs of a failure and a resource. An item is the pods of a class that one failure displaces.
// It has a size only in the dimensions of its failure. Nodes and offerings that the failure
// destroys have no capacity there.
//
// Any headroom with which the failures hold is a packing of these items. So a bound of the packing
// is a bound of the headroom.
type joint struct {
	compiled *scheduling.Problem
	failures []Outcome
	origin   []origin        // by type of the instance
	members  [][]*corev1.Pod // by item of the instance
	of       map[*corev1.Pod]int
	instance *binpack.Instance
	packed   *binpack.Plan
}

// origin is the shape from which a type was made, with the indexes of the type's offerings in it.
type origin struct {
	shape     int
	offerings []int
}

// newJoint states the problem and packs it.
func (r *rehearsal) newJoint(ctx context.Context, failures []Outcome) (*joint, error) {
	j := &joint{failures: failures}
	s := r.snapshot
	s.Pods = slices.Clone(s.Pods)
	j.of = map[*corev1.Pod]int{}
	for i := range j.failures {
		for _, p := range r.displacedBy(&j.failures[i]) {
			p.Name = fmt.Sprintf("%d-%s", i, p.Name)
			j.of[p] = i
			s.Pods = append(s.Pods, p)
		}
	}
	var err error
	if j.compiled, err = scheduling.Compile(s, r.by.Scheduling); err != nil {
		return nil, fmt.Errorf("survive: %w", err)
	}
	problem := j.problem()
	if j.instance, err = binpack.Compile(problem); err == nil {
		j.packed, err = j.instance.Pack(ctx, &binpack.Options{Alternatives: 1})
	}
	if err != nil {
		return nil, fmt.Errorf("survive: %w", err)
	}
	return j, nil
}

// outermost returns the failures that do not lie within another one, up to [maxJoint]. A failure
// lies within another one if the other one loses the same nodes and offerings or more, and the pods
// of the first also need capacity after the other one, in the same zones.
func (r *rehearsal) outermost(short []Outcome) []Outcome {
	lost := make([][]bool, len(short)) // nodes and offerings, always in the same order
	zones := make([]map[string]string, len(short))
	for i := range short {
		zones[i] = map[string]string{}
		for _, p := range r.displacedBy(&short[i]) {
			zones[i][p.Namespace+"/"+p.Name] = p.Spec.NodeSelector[corev1.LabelTopologyZone]
		}
		f := short[i].Failure
		for _, n := range r.snapshot.Nodes {
			lost[i] = append(lost[i], f.strikes(labelsOf(n)))
		}
		for p := range r.snapshot.Pools {
			for t := range r.snapshot.Pools[p].Types {
				typ := &r.snapshot.Pools[p].Types[t]
				for o := range typ.Offerings {
					lost[i] = append(lost[i], f.Kind != Node && f.strikes(offered(typ, &typ.Offerings[o])))
				}
			}
		}
	}
	within := func(a, b int) bool {
		for k, is := range lost[a] {
			if is && !lost[b][k] {
				return false
			}
		}
		for pod, zone := range zones[a] {
			if there, needs := zones[b][pod]; !needs || zone != "" && zone != there {
				return false
			}
		}
		return true
	}
	var out []Outcome
	for i := range short {
		inner := false
		for k := range short {
			inner = inner || k != i && within(i, k) && (k < i || !within(k, i))
		}
		if !inner && len(out) < maxJoint {
			out = append(out, short[i])
		}
	}
	return out
}

// displacedBy returns copies of the pods that the failure displaces and that headroom can help. A
// pod that can only be in one zone selects it. Spreads are left out, because the zone expresses
// what they force.
func (r *rehearsal) displacedBy(o *Outcome) []*corev1.Pod {
	s, displaced := o.after(r.cluster()) // zones of spares count as domains
	zones, _ := sold(&s, Zone)
	lost := map[string]bool{}
	for _, p := range o.Lost {
		lost[p.Namespace+"/"+p.Name] = true
	}
	zoneOf := map[*corev1.Pod]string{}
	pinned, shut := forced(&s, displaced, lost, zones)
	for zone, pods := range pinned {
		for _, p := range pods {
			zoneOf[p] = zone
		}
	}
	var out []*corev1.Pod
	for _, p := range displaced {
		if lost[p.Namespace+"/"+p.Name] {
			continue
		}
		q := *p
		q.Spec.TopologySpreadConstraints = nil
		if full := shut[p]; len(full) > 0 { // such a pod has no required node affinity, see zoneSpread
			affinity := corev1.Affinity{}
			if p.Spec.Affinity != nil {
				affinity = *p.Spec.Affinity
			}
			affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: full}}},
			}}}
			q.Spec.Affinity = &affinity
		}
		if zone := zoneOf[p]; zone != "" {
			q.Spec.NodeSelector = map[string]string{}
			maps.Copy(q.Spec.NodeSelector, p.Spec.NodeSelector)
			q.Spec.NodeSelector[corev1.LabelTopologyZone] = zone
		}
		out = append(out, &q)
	}
	return out
}

// dimension is a resource in the cluster after a failure.
type dimension struct{ failure, resource int }

func (j *joint) problem() binpack.Problem {
	relaxed, nodes := j.compiled.Relaxed()
	var out binpack.Problem
	var dimensions []dimension
	for f := range j.failures {
		for k, name := range j.compiled.Resources {
			dimensions = append(dimensions, dimension{f, k})
			out.Resources = append(out.Resources, fmt.Sprintf("%s after %s", name, j.failures[f].Failure))
		}
	}
	items := plan.Items(relaxed)
	for i, it := range items {
		counts, members := make([]int, len(j.failures)), make([][]*corev1.Pod, len(j.failures))
		for _, p := range j.compiled.Classes[relaxed[i].Pods[0].Class].Pods {
			counts[j.of[p]]++
			members[j.of[p]] = append(members[j.of[p]], p)
		}
		for f, n := range counts {
			if n > 0 {
				next := it
				j.members = append(j.members, members[f])
				next.Name, next.Count, next.Priority = fmt.Sprintf("%d %s", f, it.Name), n, 0
				next.Size = expand(dimensions, it.Size, func(of int) bool { return of == f })
				next.Tags, next.Limits = tagged(f, it.Tags, it.Limits)
				out.Items = append(out.Items, next)
			}
		}
	}
	for i := range nodes {
		n := &nodes[i]
		next := binpack.Node{Name: n.Node.Name, Provides: n.Labels}
		next.Free = expand(dimensions, n.Free, func(f int) bool {
			return !j.failures[f].strikes(labelsOf(n.Node)) && slices.ContainsFunc(out.Items, func(it binpack.Item) bool { return fits(dimensions, f, it.Size, n.Free) })
		})
		limits := make([]binpack.Limit, len(n.Limits))
		for k, l := range n.Limits {
			limits[k] = binpack.Limit{Tag: l.Tag, Max: l.Max}
		}
		for f := range j.failures {
			tags, limits := tagged(f, n.Tags, limits)
			next.Tags, next.Limits = append(next.Tags, tags...), append(next.Limits, limits...)
		}
		out.Nodes = append(out.Nodes, next)
	}
	for i := range j.compiled.Pools {
		p := &j.compiled.Pools[i]
		pool := binpack.Pool{Name: p.Name, Limits: p.Left}
		if p.NodesLeft >= 0 {
			pool.MaxNodes = &p.NodesLeft
		}
		out.Pools = append(out.Pools, pool)
	}
	out.Budgets = plan.Budgets(j.compiled)
	for i, t := range plan.Types(j.compiled) {
		out.Types = append(out.Types, j.split(dimensions, i, t)...)
	}
	return out
}

// split returns the type of a shape once for each set of failures that its offerings outlive.
func (j *joint) split(dimensions []dimension, shape int, t binpack.Type) []binpack.Type {
	var out []binpack.Type
	at := map[string]int{}
	typ := j.compiled.InstanceType(shape)
	for k, o := range t.Offerings {
		outlives := make([]bool, len(j.failures))
		for f := range j.failures {
			outlives[f] = j.failures[f].Kind == Node || !j.failures[f].strikes(offered(typ, &typ.Offerings[j.compiled.Shapes[shape].Offerings[k].Index]))
		}
		key := fmt.Sprint(outlives)
		x, known := at[key]
		if !known {
			x = len(out)
			at[key] = x
			next := binpack.Type{Name: t.Name, Pool: t.Pool, Usage: t.Usage, Provides: t.Provides}
			next.Capacity = expand(dimensions, t.Capacity, func(f int) bool { return outlives[f] })
			out = append(out, next)
			j.origin = append(j.origin, origin{shape: shape})
		}
		out[x].Offerings = append(out[x].Offerings, o)
		of := &j.origin[len(j.origin)-len(out)+x]
		of.offerings = append(of.offerings, k)
	}
	return out
}

// expand returns a vector in all dimensions, with 0 for failures that do not concern it.
func expand(dimensions []dimension, vector []int64, in func(failure int) bool) []int64 {
	out := make([]int64, len(dimensions))
	last, is := -1, false
	for i, d := range dimensions {
		if d.failure != last {
			last, is = d.failure, in(d.failure)
		}
		if is {
			out[i] = max(vector[d.resource], 0)
		}
	}
	return out
}

// fits reports whether an item belongs to the failure and fits into the free capacity of a node.
func fits(dimensions []dimension, failure int, size, free []int64) bool {
	any := false
	for i, d := range dimensions {
		if size[i] == 0 {
			continue
		}
		if d.failure != failure || size[i] > free[d.resource] {
			return false
		}
		any = true
	}
	return any
}

// tagged returns the tags and limits of one failure, so that they do not affect the others.
func tagged(failure int, tags []string, limits []binpack.Limit) ([]string, []binpack.Limit) {
	outTags, outLimits := make([]string, len(tags)), make([]binpack.Limit, len(limits))
	for i, t := range tags {
		outTags[i] = fmt.Sprintf("%d %s", failure, t)
	}
	for i, l := range limits {
		outLimits[i] = binpack.Limit{Tag: fmt.Sprintf("%d %s", failure, l.Tag), Max: l.Max}
	}
	return outTags, outLimits
}

// hints returns where the packing places the pods, by failure, if the spares are those of the
// packing.
func (j *joint) hints(spares []Spare) map[Failure]map[string]string {
	out := map[Failure]map[string]string{}
	for i := range j.failures {
		out[j.failures[i].Failure] = map[string]string{}
	}
	next := make([]int, len(j.members))
	put := func(shares []binpack.Share, node string) {
		for _, s := range shares {
			for _, p := range j.members[s.Item][next[s.Item] : next[s.Item]+s.Count] {
				_, name, _ := strings.Cut(p.Name, "-")
				out[j.failures[j.of[p]].Failure][p.Namespace+"/"+name] = node
			}
			next[s.Item] += s.Count
		}
	}
	for i, shares := range j.packed.Nodes {
		put(shares, j.compiled.Existing[i].Node.Name)
	}
	for i, b := range j.packed.Bins {
		if len(spares) == len(j.packed.Bins) {
			put(b.Shares, spares[i].node.Name)
		}
	}
	return out
}

// several is the largest number of failures for which all sets of nodes can be searched.
const several = 3

// proof returns the best of several bounds: of all failures, of those that force most pods into
// some zone, of those that need the dearest nodes, and of each failure alone. Problems with fewer
// dimensions are searched better.
func (r *rehearsal) proof(ctx context.Context, all *joint) (*joint, error) {
	best := all
	if len(all.failures) < 2 || all.packed.Cost.Dollars() <= all.packed.Bound.Price.Dollars()*closeEnough {
		return best, nil
	}
	subsets := [][]Outcome{all.forcing(), all.failures[:min(several, len(all.failures))]}
	for i := range all.failures {
		subsets = append(subsets, all.failures[i:i+1])
	}
	for _, s := range subsets {
		if len(s) == len(all.failures) {
			continue
		}
		j, err := r.newJoint(ctx, s)
		if err != nil {
			return nil, err
		}
		if j.packed.Bound.Price > best.packed.Bound.Price {
			best = j
		}
	}
	return best, nil
}

// forcing returns, for each zone, the failure that forces most pods there. Pods are measured by the
// largest fraction that they take of a resource of the largest node.
func (j *joint) forcing() []Outcome {
	problem := j.instance.Problem()
	largest := make([]int64, len(problem.Resources))
	for i := range problem.Types {
		for k, q := range problem.Types[i].Capacity {
			largest[k] = max(largest[k], q)
		}
	}
	amount := map[string][]float64{} // by zone and failure
	for i := range problem.Items {
		it, of := &problem.Items[i], j.of[j.members[i][0]]
		zone := j.members[i][0].Spec.NodeSelector[corev1.LabelTopologyZone]
		if amount[zone] == nil {
			amount[zone] = make([]float64, len(j.failures))
		}
		part := 0.0
		for k, q := range it.Size {
			if q > 0 && largest[k] > 0 {
				part = max(part, float64(q)/float64(largest[k]))
			}
		}
		amount[zone][of] += part * float64(it.Count)
	}
	most := map[int]bool{}
	for _, zone := range slices.Sorted(maps.Keys(amount)) {
		best := 0
		for f, a := range amount[zone] {
			if a > amount[zone][best] {
				best = f
			}
		}
		most[best] = true
	}
	var out []Outcome
	for i := range j.failures {
		if most[i] {
			out = append(out, j.failures[i])
		}
	}
	return out
}

// spares returns the nodes of the packing.
func (j *joint) spares() []Spare {
	var out []Spare
	for _, b := range j.packed.Bins {
		of := &j.origin[b.Type]
		if s, ok := spareOffer(j.compiled, of.shape, of.offerings[b.Offering], j.instance.Labels(b)); ok {
			out = append(out, s)
		}
	}
	return out
}

// spareOffer returns an offering of a shape as a spare with narrowed labels.
func spareOffer(p *scheduling.Problem, shape, offering int, narrowed requirements.Set) (Spare, bool) {
	labels, err := p.NodeLabels(shape, offering)
	if err != nil {
		return Spare{}, false
	}
	sh, typ := &p.Shapes[shape], p.InstanceType(shape)
	so := sh.Offerings[offering]
	_, daemons := p.Daemons(shape)
	o := typ.Offerings[so.Index]
	zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
	capacityType, _ := o.Requirements.Get(instancetypes.LabelCapacityType).Single()
	if labels, err = labels.Intersect(narrowed); err != nil {
		return Spare{}, false
	}
	n := scheduling.NewNode{
		Name: "spare", Pool: &p.Pools[sh.Pool], InstanceType: typ, Offering: o, Zone: zone, CapacityType: capacityType, PricePerHour: so.Price,
		Labels: p.ChosenLabels(labels), DaemonRequests: daemons,
	}
	return spareOf(&n), true
}
