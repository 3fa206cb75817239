package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
)

// explain is the reasons of unplaced pods of a class; see [Unplaced.Reasons]. The state must be solved.
func (s *state) explain(class int) []Reason {
	p := s.p
	c := p.Classes[class]
	if c.Refusal != nil {
		return []Reason{*c.Refusal}
	}
	var out []Reason
	labels := p.shapeLabels()
	suits := make([]bool, len(labels.sets))
	for i, set := range labels.sets {
		suits[i] = c.Required.Compatible(set, requirements.Keys{})
	}
	labelled := func(shape int) bool {
		return slices.ContainsFunc(labels.of[shape], func(id int32) bool { return suits[id] })
	}
	for k := range p.Pools {
		out = append(out, s.explainPool(class, k, labelled))
	}
	if r, ok := s.explainExisting(c); ok {
		out = append(out, r)
	}
	if len(out) == 0 {
		out = append(out, Reason{Stage: StagePod, Detail: "there is neither a pool nor a node"})
	}
	return out
}

func (s *state) explainPool(class, k int, labelled func(shape int) bool) Reason {
	p := s.p
	c := p.Classes[class]
	pool := &p.Pools[k]
	if taint, bad := taints.Untolerated(pool.Taints, c.Template.Spec.Tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute); bad {
		return Reason{Pool: pool.Name, Stage: StageTaint, Key: taint.Key, Detail: fmt.Sprintf("taint %s is not tolerated", taints.Text(taint))}
	}
	census := p.census(c, k, labelled)
	switch {
	case len(pool.Types) == 0:
		return Reason{Pool: pool.Name, Stage: StageOffering, Detail: "it has no instance types"}
	case census.offered == 0:
		return Reason{Pool: pool.Name, Stage: StageOffering, Detail: "no instance type meets the pool's own requirements: " + pool.Set.String()}
	case census.labelled == 0:
		return p.explainLabels(c, pool, census)
	case census.fitting == 0:
		return p.explainResources(pool, census)
	}
	if limit, ok := s.explainLimit(k, census); ok {
		return limit
	}
	return s.explainTopology(class, pool)
}

// census counts the types of a pool by the stages that a class passes.
type census struct {
	offered  int // meet the pool's requirements
	labelled int // and the pod's labels
	fitting  int // and hold the pod

	short   *Nearest // the labelled type that lacks the least
	shape   int      // the shape of short
	shapes  []int    // that hold the pod
	outside *Nearest // a type that is large enough, but excluded by labels
	allLack string
}

// labelSets are the distinct label sets of shapes with offerings, and which of them each shape has.
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
				set, err := shape.Labels.Intersect(o.Labels)
				if err != nil {
					set = requirements.Impossible()
				}
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
	out := census{shape: -1}
	pool := &p.Pools[k]
	seen := map[int]bool{}
	lacking := map[string]int{}
	best := 0.0
	for i := range p.Shapes {
		shape := &p.Shapes[i]
		if shape.Pool != k {
			continue
		}
		typ := p.InstanceType(i)
		first := !seen[shape.Type]
		seen[shape.Type] = true
		if first {
			out.offered++
		}
		if !labelled(i) {
			continue
		}
		if first {
			out.labelled++
		}
		short, worst := p.shortage(c, shape.Free)
		if short == nil {
			out.fitting++
			out.shapes = append(out.shapes, i)
			continue
		}
		for name := range short {
			if shape.Free[slices.Index(p.Resources, corev1.ResourceName(name))] <= 0 {
				lacking[name]++
			}
		}
		if out.short == nil || worst < best {
			out.short, out.shape, best = &Nearest{Type: typ.Name, Short: short}, i, worst
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lacking)) {
		if lacking[name] == out.labelled && out.fitting == 0 {
			out.allLack = name
		}
	}
	if out.fitting == 0 {
		out.outside = p.outside(c, pool, c.Required)
	}
	return out
}

// shortage is what a free capacity lacks for one pod, nil if nothing, and the sum of these as parts of the requests.
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

// outside is the type that is large enough and violates the fewest requirements: the pod's count before the pool's, then the price.
func (p *Problem) outside(c *Class, pool *PoolState, required requirements.Alternatives) *Nearest {
	type find struct {
		near      Nearest
		pod, pool int // requirements in the way
		price     float64
	}
	var best *find
	for i := range pool.Types {
		typ := &pool.Types[i]
		if short, _ := p.shortage(c, p.freeOf(pool, i)); short != nil {
			continue
		}
		f := find{near: Nearest{Type: typ.Name}}
		var ok bool
		if f.price, ok = typ.LeastPrice(requirements.Set{}); !ok {
			continue
		}
		var by []string
		for r := range pool.Set.All() {
			if typ.Requirements.Has(r.Key()) && !typ.Requirements.Get(r.Key()).Overlaps(r) {
				by = append(by, r.String())
			}
		}
		f.pool = len(by)
		node, err := pool.Set.Without(typ.Requirements.Keys()).Intersect(typ.Requirements)
		if err != nil {
			continue
		}
		blocked := fewestConflicts(required, node, node.Keys())
		f.pod = len(blocked)
		for _, e := range blocked {
			by = append(by, "the pod's "+e.Left.String())
		}
		if len(by) == 0 { // a combination excludes it, such as a zone that has it as spot only
			by = []string{"its offerings, none of which has all the labels"}
		}
		f.near.ShutOutBy = strings.Join(by, " and ")
		if best == nil || cmp.Or(cmp.Compare(f.pod, best.pod), cmp.Compare(f.pool, best.pool), cmp.Compare(f.price, best.price), strings.Compare(f.near.Type, best.near.Type)) < 0 {
			best = &f
		}
	}
	if best == nil {
		return nil
	}
	return &best.near
}

// freeOf is what nodes of a pool's type have for pods and daemons.
func (p *Problem) freeOf(pool *PoolState, typ int) []int64 {
	if pool.table == nil {
		return p.allocatable(&pool.Types[typ])
	}
	return pool.table.allocatable[typ]
}

// fewestConflicts are the conflicts on the given keys of the alternative that has the fewest.
func fewestConflicts(required requirements.Alternatives, labels requirements.Set, keys requirements.Keys) []*requirements.ConflictError {
	var best []*requirements.ConflictError
	first := true
	for alt := range required.All() {
		if conflicts := alt.Restrict(keys).Conflicts(labels, requirements.Keys{}); first || len(conflicts) < len(best) {
			best, first = conflicts, false
		}
	}
	return best
}

func (p *Problem) explainResources(pool *PoolState, n census) Reason {
	out := Reason{Pool: pool.Name, Stage: StageResource, Nearest: n.short}
	var text strings.Builder
	if n.allLack != "" {
		out.Resource = n.allLack
		fmt.Fprintf(&text, "%s: all lack %s", many(n.labelled, "type"), n.allLack)
	} else {
		names := slices.Sorted(maps.Keys(n.short.Short))
		out.Resource = names[0]
		var parts []string
		for _, name := range names {
			parts = append(parts, fmt.Sprintf("%s of %s", resources.Humane(corev1.ResourceName(name), n.short.Short[name]), name))
		}
		fmt.Fprintf(&text, "%s: none is large enough; nearest %s, short of %s", many(n.labelled, "type"), n.short.Type, strings.Join(parts, " and "))
		if names, _ := p.Daemons(n.shape); len(names) > 0 {
			fmt.Fprintf(&text, " after %s", many(len(names), "daemon"))
		}
	}
	if n.outside != nil {
		out.Nearest = n.outside
		fmt.Fprintf(&text, "; %s would do, shut out by %s", n.outside.Type, n.outside.ShutOutBy)
	} else if n.allLack != "" {
		text.WriteString("; no type of this catalogue has it in that amount")
	}
	out.Detail = text.String()
	return out
}

// explainLabels names the label key by which the pod and the pool contradict each other.
func (p *Problem) explainLabels(c *Class, pool *PoolState, n census) Reason {
	out := Reason{Pool: pool.Name, Stage: StageRequirement, Nearest: n.outside}
	known := pool.known()
	conflict := p.closest(c.Required, pool, known)
	if conflict == nil {
		if unavailable, ok := p.explainUnavailable(c, pool); ok {
			return unavailable
		}
		out.Detail = "no single type has all the labels that it asks: " + c.Required.String()
		return out
	}
	out.Key = conflict.Key
	values, offered := known[conflict.Key]
	switch {
	case !offered && !pool.Set.Has(conflict.Key):
		out.Detail = fmt.Sprintf("it asks %s, a label that nothing in the pool has%s", conflict.Left, nearest(conflict.Key, slices.Sorted(maps.Keys(known))))
	case pool.Set.Has(conflict.Key) && !conflict.Left.Overlaps(pool.Set.Get(conflict.Key)):
		out.Detail = fmt.Sprintf("it asks %s, the pool allows %s", conflict.Left, pool.Set.Get(conflict.Key))
	case n.outside != nil && !strings.Contains(n.outside.ShutOutBy, "the pod's"):
		out.Detail = fmt.Sprintf("it asks %s; %s would do, shut out by %s", conflict.Left, n.outside.Type, n.outside.ShutOutBy)
	default:
		out.Nearest = nil
		if name, by, lacks := p.shutOut(c, pool); name != "" {
			out.Detail = fmt.Sprintf("it asks %s; %s is shut out by %s%s", conflict.Left, name, by, lacks)
			break
		}
		out.Detail = fmt.Sprintf("it asks %s, which no type of the pool offers%s", conflict.Left, p.offeredInstead(conflict.Left, values))
	}
	return out
}

// explainUnavailable names an offering that suits the pod and is not available now; false if there is none.
func (p *Problem) explainUnavailable(c *Class, pool *PoolState) (Reason, bool) {
	required := c.Required.Intersect(requirements.AnyOf(pool.Set))
	name, count, key := "", 0, ""
	var example requirements.Set
	for i := range pool.Types {
		typ := &pool.Types[i]
		found := false
		for _, o := range typ.Offerings {
			node, err := typ.Requirements.Intersect(o.Requirements)
			if err != nil || o.Available {
				continue
			}
			if node, err = node.Intersect(pool.Set); err != nil || !required.Compatible(node, requirements.Keys{}) {
				continue
			}
			if found = true; name == "" {
				name, example = typ.Name, o.Requirements
			}
		}
		if found {
			count++
		}
	}
	if count == 0 {
		return Reason{}, false
	}
	for alt := range c.Required.All() {
		for r := range alt.All() {
			if key == "" && example.Has(r.Key()) {
				key = r.Key()
			}
		}
	}
	others := ""
	if count > 1 {
		others = fmt.Sprintf(", like %s", many(count-1, "other type"))
	}
	where := example.Restrict(requirements.KeysOf(corev1.LabelTopologyZone, instancetypes.LabelCapacityType))
	return Reason{
		Pool: pool.Name, Stage: StageOffering, Key: key, Nearest: &Nearest{Type: name, ShutOutBy: "not available now"},
		Detail: fmt.Sprintf("what it asks is not available now: %s has it as %s%s", name, where, others),
	}, true
}

// shutOut is a type with the labels that the pod asks, which the pool excludes, and what else it lacks.
func (p *Problem) shutOut(c *Class, pool *PoolState) (name, by, lacks string) {
	for i := range pool.Types {
		typ := &pool.Types[i]
		if len(fewestConflicts(c.Required, typ.Requirements, typ.Requirements.Keys())) > 0 {
			continue
		}
		for r := range pool.Set.All() {
			if !typ.Requirements.Has(r.Key()) || typ.Requirements.Get(r.Key()).Overlaps(r) {
				continue
			}
			free := p.freeOf(pool, i)
			for k, res := range p.Resources {
				if c.requests[k] > free[k] && !attachable(res) {
					lacks = fmt.Sprintf(", and has not enough %s", res)
				}
			}
			return typ.Name, r.String(), lacks
		}
	}
	return "", "", ""
}

// offeredInstead names the value that is spelt most like an asked one, or all values if they are few.
func (p *Problem) offeredInstead(asked requirements.Requirement, values map[string]bool) string {
	there := slices.Sorted(maps.Keys(values))
	if list, ok := asked.Values(); ok {
		for _, v := range list {
			if near, ok := requirements.Nearest(v, there); ok {
				return fmt.Sprintf(" (did you mean %q?)", near)
			}
		}
	}
	if len(there) > 0 && len(there) <= 12 {
		return ": there are " + strings.Join(there, ", ")
	}
	return ""
}

func nearest(word string, candidates []string) string {
	if near, ok := requirements.Nearest(word, candidates); ok {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// knownLabels is the values that the pool, its types and their offerings have, by key. Keys of unlisted values have none.
func knownLabels(pool *PoolState) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	see := func(s requirements.Set) {
		for r := range s.All() {
			if r.Key() == taints.Key || r.IsImpossible() {
				continue
			}
			if out[r.Key()] == nil {
				out[r.Key()] = map[string]bool{}
			}
			values, _ := r.Values()
			for _, v := range values {
				out[r.Key()][v] = true
			}
		}
	}
	see(pool.Set)
	for i := range pool.Types {
		if !pool.Types[i].Requirements.Overlaps(pool.Set) {
			continue
		}
		see(pool.Types[i].Requirements)
		for _, o := range pool.Types[i].Offerings {
			see(o.Requirements)
		}
	}
	return out
}

// closest is the first conflict with the pool and all values of its types, of the alternative that has the fewest.
func (p *Problem) closest(required requirements.Alternatives, pool *PoolState, known map[string]map[string]bool) *requirements.ConflictError {
	var b requirements.Builder
	var open []string
	for key, values := range known { // the builder sorts
		if len(values) == 0 {
			open = append(open, key)
			continue
		}
		have := requirements.In(key, slices.Sorted(maps.Keys(values))...)
		if pool.Set.Has(key) {
			have = have.Intersect(pool.Set.Get(key))
		}
		if have.IsImpossible() {
			have = pool.Set.Get(key)
		}
		b.Add(have)
	}
	node, err := b.Set()
	if err != nil {
		return nil
	}
	var best []*requirements.ConflictError
	for alt := range required.All() {
		conflicts := alt.Conflicts(node, requirements.KeysOf(open...))
		if len(conflicts) > 0 && (best == nil || len(conflicts) < len(best)) {
			best = conflicts
		}
	}
	if len(best) == 0 {
		return nil
	}
	return best[0]
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
