package scheduling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/exclusion"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/market"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
	"github.com/joinery-sdk/joinery/scheduling/internal/source"
	"github.com/joinery-sdk/joinery/scheduling/internal/spelling"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
)

// explain returns the reasons of unplaced pods of a class; see [Unplaced.Reasons]. The state must
// be solved.
func (s *state) explain(class int) []Reason {
	c := s.p.Classes[class]
	if c.Refusal != nil {
		return []Reason{*c.Refusal}
	}
	out, _ := s.reasons(class, c)
	for i, sources := range source.Blame(c.own, c.sources, func(required requirements.Alternatives) []string {
		other := *c
		other.Required = required
		reasons, places := s.reasons(class, &other)
		for i, r := range reasons {
			places[i] += fmt.Sprint(r.Stage, r.Key, r.Resource, r.Detail)
		}
		return places
	}) {
		out[i].Detail += sources
	}
	return out
}

// reasons returns the reasons of unplaced pods of a class, given as c with any requirements. places
// says, for the reason of each pool, which offerings would hold a pod by itself. It is only filled in
// for a class with sources.
func (s *state) reasons(class int, c *Class) (out []Reason, places []string) {
	p, labels := s.p, s.p.shapeLabels()
	suits := make([]bool, len(labels.sets))
	for i, set := range labels.sets {
		suits[i] = c.Required.Compatible(set, requirements.Keys{})
	}
	labelled := func(shape int) bool {
		return slices.ContainsFunc(labels.of[shape], func(id int32) bool { return suits[id] })
	}
	for k := range p.Pools {
		r, shapes := s.explainPool(class, c, k, labelled)
		r.Pool = p.Pools[k].Name
		place := ""
		if len(c.sources) > 0 { // only source.Blame reads it, and there may be thousands of shapes
			place = source.Places(shapes, labels.of, suits)
		}
		out, places = append(out, r), append(places, place)
	}
	if r, ok := s.explainExisting(c); ok {
		out, places = append(out, r), append(places, "")
	}
	if len(out) == 0 {
		return []Reason{{Stage: StagePod, Detail: p.nothingToBuy()}}, []string{""}
	}
	return out, places
}

// explainPool returns the reason of one pool, without its name. shapes are those that hold the
// pod by itself.
func (s *state) explainPool(class int, c *Class, k int, labelled func(shape int) bool) (out Reason, shapes []int) {
	p, pool := s.p, &s.p.Pools[k]
	if taint, bad := taints.Untolerated(pool.Taints, c.Template.Spec.Tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute); bad {
		return Reason{Stage: StageTaint, Key: taint.Key, Detail: fmt.Sprintf("taint %s is not tolerated", taints.Text(taint))}, nil
	}
	census := p.census(c, k, labelled)
	unsold := ""
	if !census.offered {
		unsold = market.NoneSold(pool.Types, pool.Set)
	}
	switch {
	case len(pool.Types) == 0:
		return Reason{Stage: StageOffering, Detail: "it has no instance types"}, nil
	case unsold != "":
		return Reason{Stage: StageOffering, Detail: unsold}, nil
	case !census.offered && pool.Set.IsImpossible():
		return Reason{Stage: StageOffering, Detail: "its requirements contradict each other, or its labels, so that no node meets them"}, nil
	case !census.offered:
		return Reason{Stage: StageOffering, Detail: "no instance type meets the pool's own requirements: " + pool.Set.String()}, nil
	case census.labelled == 0:
		return p.explainLabels(c, pool, census), nil
	case len(census.shapes) == 0:
		return p.explainResources(census), nil
	}
	if limit, ok := s.explainLimit(k, census.shapes); ok {
		return limit, census.shapes
	}
	if quota, ok := s.explainQuota(c, census.shapes); ok {
		return quota, census.shapes
	}
	if stock, ok := s.explainStock(c, census.shapes); ok {
		return stock, census.shapes
	}
	if values, ok := s.explainMinValues(class, c, k, census.shapes); ok {
		return values, census.shapes
	}
	return s.explainTopology(class), census.shapes
}

// nothingToBuy says why nothing is bought if no pool buys and no node takes pods.
func (p *Problem) nothingToBuy() string {
	var static, leaving []string
	for i := range p.snapshot.Pools {
		switch pool := &p.snapshot.Pools[i]; {
		case pool.Metadata.DeletionTimestamp != nil:
			leaving = append(leaving, fmt.Sprintf("pool %s is being deleted", pool.Name))
		case pool.IsStatic():
			static = append(static, fmt.Sprintf("pool %s keeps a fixed number of nodes and buys none for pods", pool.Name))
		}
	}
	if len(static)+len(leaving) == 0 {
		return "there is neither a pool nor a node"
	}
	return strings.Join(append(static, leaving...), ", ") + ", and no node takes pods"
}

// census counts the types of a pool by the stages that a class passes.
type census struct {
	offered  bool  // some type meets the pool's requirements
	labelled int   // how many types also meet the pod's
	shapes   []int // those that hold the pod

	// If no shape does:
	short   *Nearest // the labelled type that lacks the least
	shape   int      // the shape of short; negative if it is not for sale
	allLack string   // a resource that no labelled type has, even without daemons
	outside *Nearest // a type that is large enough, but excluded by labels
	unsold  *Nearest // a type that is large enough and has the labels, and why it cannot be bought
}

// labelSets holds the distinct label sets of shapes with offerings, and which of them each shape
// has.
type labelSets struct {
	sets []requirements.Set
	of   [][]int32
}

func (p *Problem) labelSets() *labelSets {
	out := &labelSets{of: make([][]int32, len(p.Shapes))}
	known := map[string]int32{}
	var key []byte
	for i := range p.Shapes {
		shape := &p.Shapes[i]
		for _, o := range shape.Offerings {
			key = o.Labels.AppendKey(shape.Labels.AppendKey(key[:0]))
			id, ok := known[string(key)]
			if !ok {
				id = int32(len(out.sets))
				known[string(key)] = id
				set, _ := shape.Labels.Intersect(o.Labels) // with an error it is impossible
				out.sets = append(out.sets, set)
			}
			if !slices.Contains(out.of[i], id) {
				out.of[i] = append(out.of[i], id)
			}
		}
	}
	return out
}

func (p *Problem) census(c *Class, k int, labelled func(shape int) bool) census {
	var out census
	last := -1 // a labelled type; the shapes of a type are side by side
	lacking, best := map[string]int{}, 0.0
	price := func(shape int) float64 {
		least, _ := p.InstanceType(shape).LeastPrice(requirements.Set{})
		return least
	}
	for i := range p.Shapes {
		shape := &p.Shapes[i]
		if shape.Pool != k {
			continue
		}
		out.offered = true
		if !labelled(i) {
			continue
		}
		first := shape.Type != last
		if first {
			last = shape.Type
			out.labelled++
		}
		short, worst := p.shortage(c, shape.Free)
		if short == nil {
			out.shapes = append(out.shapes, i)
			continue
		}
		for name := range short {
			if first && p.Pools[k].table[shape.Type].allocatable[slices.Index(p.Resources, corev1.ResourceName(name))] <= 0 {
				lacking[name]++
			}
		}
		if out.short == nil || worst < best || worst == best && price(i) < price(out.shape) {
			out.short, out.shape, best = &Nearest{Type: p.InstanceType(i).Name, Short: short}, i, worst
		}
	}
	if len(out.shapes) > 0 {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(lacking)) {
		if lacking[name] == out.labelled {
			out.allLack = name
		}
	}
	out.outside, out.unsold = p.outside(c, &p.Pools[k])
	return out
}

// shortage returns what a free capacity lacks for one pod, nil if nothing. The sum adds up each
// lack as a share of the request.
func (p *Problem) shortage(c *Class, free []int64) (map[string]int64, float64) {
	var short map[string]int64
	worst := 0.0
	for r, q := range c.requests {
		if q > 0 && q > free[r] {
			if short == nil {
				short = map[string]int64{}
			}
			short[string(p.Resources[r])] = q - max(free[r], 0)
			worst += float64(q-max(free[r], 0)) / float64(q)
		}
	}
	return short, worst
}

// inUse returns what the class asks of nodes to buy, under the keys that types and pools use.
func (p *Problem) inUse(c *Class) requirements.Alternatives {
	return p.aliases.Alternatives(c.Required)
}

// exclusions returns what excludes the pods of a class from the types of a pool. Classes with equal
// requirements share it.
func (p *Problem) exclusions(c *Class, pool *PoolState) *exclusion.Ranking {
	required := p.inUse(c)
	return pool.exclusions.Of(string(required.AppendKey(nil)), func() *exclusion.Ranking {
		return exclusion.Rank(required, pool.Set, pool.Registered(pool.Set), pool.Types)
	})
}

// outside returns the large enough type that violates the fewest requirements. Violations of the
// pod's requirements are compared first, then violations of the pool's, then the price. unsold is a
// large enough type that violates none, and why it cannot be bought.
func (p *Problem) outside(c *Class, pool *PoolState) (near, unsold *Nearest) {
	holds := func(i int32) bool {
		short, _ := p.shortage(c, p.besideDaemons(pool, int(i)))
		return short == nil
	}
	found := p.exclusions(c, pool)
	if at := slices.IndexFunc(found.Excluded, holds); at >= 0 {
		i := int(found.Excluded[at])
		by := found.Of(i)
		near = &Nearest{Type: pool.Types[i].Name, ShutOutBy: by.String(), PodKeys: by.PodKeys()}
	}
	if at := slices.IndexFunc(found.Unsold, holds); at >= 0 {
		i := int(found.Unsold[at])
		offers := found.Suitable(i)
		unsold = &Nearest{Type: pool.Types[i].Name, ShutOutBy: market.Unsold(offers)}
		if len(offers) > 0 && len(offers) < len(pool.Types[i].Offerings) && offers[0].Withheld == "" {
			unsold.ShutOutBy += " as " + market.Where(&offers[0])
		}
	}
	return near, unsold
}

// besideDaemons returns what a type's nodes have for pods beside the daemons that may run there,
// whatever the pool requires.
func (p *Problem) besideDaemons(pool *PoolState, i int) []int64 {
	free, typ := slices.Clone(pool.table[i].allocatable), &pool.Types[i]
	open := pool.Set.Keys().Union(exclusion.OfferingKeys(typ))
	for _, d := range p.daemons {
		if taints.Tolerates(d.pod.Spec.Tolerations, pool.Taints) && d.required.Compatible(typ.Requirements, open) {
			subtract(free, d.vector)
		}
	}
	return free
}

func (p *Problem) explainResources(n census) Reason {
	out := Reason{Stage: StageResource, Resource: n.allLack, Nearest: n.short, Detail: many(n.labelled, "type")}
	if n.allLack != "" && n.labelled == 1 {
		out.Detail += ", which lacks " + n.allLack
	} else if n.allLack != "" {
		out.Detail += ": all lack " + n.allLack
	} else {
		names := slices.Sorted(maps.Keys(n.short.Short))
		out.Resource = names[0]
		var parts []string
		for _, name := range names {
			parts = append(parts, fmt.Sprintf("%s of %s", resources.Humane(corev1.ResourceName(name), n.short.Short[name]), name))
		}
		out.Detail += fmt.Sprintf(": none is large enough; nearest %s, short of %s", n.short.Type, strings.Join(parts, " and "))
		if n.shape >= 0 && len(p.Shapes[n.shape].daemons) > 0 {
			out.Detail += " after " + many(len(p.Shapes[n.shape].daemons), "daemon")
		}
	}
	if out.Nearest = cmp.Or(n.outside, n.short); n.outside != nil && (n.unsold == nil || n.unsold.Type != n.outside.Type) {
		out.Detail += fmt.Sprintf("; %s would fit, but is excluded by %s", n.outside.Type, n.outside.ShutOutBy)
	}
	if n.unsold != nil {
		out.Detail += fmt.Sprintf("; %s would fit, but is %s", n.unsold.Type, n.unsold.ShutOutBy)
	} else if n.allLack != "" && n.outside == nil {
		out.Detail += "; no type of this catalogue has enough of it"
	}
	return out
}

// explainLabels names the label key on which the pod and the pool contradict each other.
func (p *Problem) explainLabels(c *Class, pool *PoolState, n census) Reason {
	out := Reason{Stage: StageRequirement, Nearest: n.outside}
	known := pool.known()
	conflict := exclusion.Closest(p.inUse(c), pool.Set, pool.Types, known)
	if conflict == nil {
		if unavailable, ok := p.explainUnavailable(c, pool, n); ok {
			return unavailable
		}
		out.Detail = "no single type has all the labels that it requires: " + p.inUse(c).String()
		if near := n.outside; near != nil {
			out.Detail += fmt.Sprintf("; %s would fit, but is excluded by %s", near.Type, near.ShutOutBy)
			out.Key = strings.Join(near.PodKeys[:min(1, len(near.PodKeys))], "")
		}
		return out
	}
	out.Key = conflict.Key
	values, offered := known[conflict.Key]
	feature, isFeature := nodefeature.Name(conflict.Key)
	newest := p.newest(pool.Name)
	switch {
	case isFeature && newest != nil:
		out.Nearest = nil
		out.Detail = fmt.Sprintf("it needs the node feature %s, which the newest node of the pool, %s, does not declare", feature, newest.Name)
	case conflict.Key == requirements.NodeNameKey:
		out.Detail = fmt.Sprintf("it requires the %s, and no node to buy has a name that is known before", conflict.Left)
	case n.outside != nil && len(n.outside.PodKeys) == 0:
		out.Detail = fmt.Sprintf("it requires %s; %s would fit, but is excluded by %s", conflict.Left, n.outside.Type, n.outside.ShutOutBy)
	case !offered && !pool.Set.Has(conflict.Key):
		out.Detail = fmt.Sprintf("it requires %s, a label that nothing in the pool has%s", conflict.Left, spelling.Hint(conflict.Key, slices.Sorted(maps.Keys(known))))
	case pool.Set.Has(conflict.Key) && !conflict.Left.Overlaps(pool.Set.Get(conflict.Key)):
		out.Detail = fmt.Sprintf("it requires %s, but the pool allows %s%s", conflict.Left, pool.Set.Get(conflict.Key), spelling.Allowed(conflict.Left, pool.Set.Get(conflict.Key), values))
	default:
		out.Nearest = nil
		out.Detail = fmt.Sprintf("it requires %s, which no type of the pool offers%s", conflict.Left, spelling.Offered(conflict.Left, values))
		if shut := p.shutOut(c, pool); shut != "" {
			out.Detail = fmt.Sprintf("it requires %s; %s", conflict.Left, shut)
		}
	}
	return out
}

// explainUnavailable names an offering that suits the pod and is not available now, or says that
// every type with one is too small; false if there is none.
func (p *Problem) explainUnavailable(c *Class, pool *PoolState, n census) (Reason, bool) {
	n.shape = -1
	best := 0.0
	var names []string // types with such an offering
	var offers []instancetypes.Offering
	for i := range pool.Types {
		typ := &pool.Types[i]
		at := slices.IndexFunc(typ.Offerings, func(o instancetypes.Offering) bool {
			if o.Available {
				return false
			}
			node, err := typ.Requirements.Intersect(o.Requirements)
			if err == nil {
				node, err = node.Intersect(pool.Set)
			}
			return err == nil && p.inUse(c).Compatible(node, requirements.Keys{})
		})
		if at < 0 {
			continue
		}
		if short, worst := p.shortage(c, p.besideDaemons(pool, i)); short != nil {
			if n.labelled++; n.short == nil || worst < best {
				n.short, best = &Nearest{Type: typ.Name, Short: short}, worst
			}
			continue
		}
		names, offers = append(names, typ.Name), append(offers, typ.Offerings[at])
	}
	if len(names) == 0 {
		if n.labelled == 0 {
			return Reason{}, false
		}
		return p.explainResources(n), true
	}
	example, why := offers[0].Requirements, market.Unsold(offers)
	out := Reason{
		Stage: StageOffering, Nearest: &Nearest{Type: names[0], ShutOutBy: why},
		Detail: fmt.Sprintf("what it requires is %s: %s has it as %s", why, names[0], market.Where(&offers[0])),
	}
	if len(names) > 1 {
		out.Detail += ", like " + many(len(names)-1, "other type")
	}
	keys := slices.Collect(p.inUse(c).Keys().All())
	if at := slices.IndexFunc(keys, example.Has); at >= 0 {
		out.Key = keys[at]
	}
	return out, true
}

// shutOut names a type with the labels that the pod asks for, the requirements of the pool that
// exclude it, and what else it lacks. It is empty if there is no such type.
func (p *Problem) shutOut(c *Class, pool *PoolState) string {
	found := p.exclusions(c, pool)
	if found.ByPool < 0 {
		return ""
	}
	text := fmt.Sprintf("%s is excluded by %s", pool.Types[found.ByPool].Name, found.Of(found.ByPool))
	free := p.besideDaemons(pool, found.ByPool)
	for k, resource := range slices.Backward(p.Resources) {
		if c.requests[k] > free[k] && !attachable(resource) {
			return fmt.Sprintf("%s, and does not have enough %s", text, resource)
		}
	}
	return text
}

// holdsBesideDaemons reports whether a pod would have room on the node if none were kept for daemons
// that have not started. left is what the node has free.
func (p *Problem) holdsBesideDaemons(c *Class, r *ExistingNode, left []int64) bool {
	all := slices.Clone(left)
	for i := range all {
		all[i] += r.bare[i] - r.Free[i]
	}
	lacks, _ := p.shortage(c, p.spare(c, r, all))
	return lacks == nil
}

// portsInUse returns, for each existing node, the first host port of the class that another pod has
// there, or will have by the plan; empty if there is none.
func (s *state) portsInUse(c *Class) []string {
	out := make([]string, len(s.p.Existing))
	if len(c.ports) == 0 {
		return out
	}
	compare := func(node int, taken []hostport.Port) {
		if k := slices.IndexFunc(c.ports, func(port hostport.Port) bool { return slices.ContainsFunc(taken, port.Conflicts) }); k >= 0 && out[node] == "" {
			out[node] = c.ports[k].String()
		}
	}
	for i := range s.p.Existing {
		r := &s.p.Existing[i]
		compare(i, r.ports)
		for _, d := range r.missing {
			compare(i, s.p.daemons[d].ports)
		}
	}
	for _, b := range s.bound {
		if b.at.node >= 0 {
			compare(b.at.node, s.p.Classes[b.class].ports)
		}
	}
	return out
}

// contradiction is the refusal of a class that no node within an area suits. what names the parts
// that contradict each other.
func (c *Class) contradiction(what string, area requirements.Alternatives) *Reason {
	return &Reason{Stage: StagePod, Detail: what + " contradict each other" + source.Blamed(c.own, c.sources, func(r requirements.Alternatives) string {
		return fmt.Sprint(r.Intersect(area).IsImpossible())
	})}
}

// labelsKnown returns the values of labels that nodes of the pool have.
func (r *PoolState) labelsKnown() map[string]map[string]bool {
	return exclusion.Known(r.Set, r.Registered(r.Set), r.Types)
}

// call calls the packer, or says why it cannot.
func call(ctx context.Context, packer Packer, p *Problem, r Round) (Outcome, error) {
	switch {
	case ctx == nil:
		return Outcome{}, errors.New("the context is nil; pass context.Background() for none")
	case packer == nil:
		return Outcome{}, errors.New("the packer is nil")
	}
	return packer.Pack(ctx, p, r)
}
