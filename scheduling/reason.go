package scheduling

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/internal/admission"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/market"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
	"github.com/joinery-sdk/joinery/scheduling/internal/podfault"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
)

// Stage is the first test that a pod fails.
type Stage string

// The stages, in the order in which they are tested.
const (
	StagePod         Stage = "pod"         // no node can hold the pod, for example because of a volume claim or a rule of the caller
	StageTaint       Stage = "taint"       // a taint is not tolerated
	StageRequirement Stage = "requirement" // labels are not those that the pod asks for
	StageResource    Stage = "resource"    // no type is large enough or has the resource
	StageOffering    Stage = "offering"    // no offering of a type that fits is available
	StageLimit       Stage = "limit"       // the limits of the pool, or a CapacityQuota
	StageTopology    Stage = "topology"    // other pods: spread, affinity, anti-affinity, ports
	StageGroup       Stage = "group"       // too few pods of its group can be placed; see package gang
)

// Depth returns the position of the stage in the order of tests, from 0; -1 for an unknown stage.
func (s Stage) Depth() int {
	return slices.Index([]Stage{StagePod, StageTaint, StageRequirement, StageResource, StageOffering, StageLimit, StageTopology, StageGroup}, s)
}

// Reason says why a pool cannot hold a pod, or why no node can. [Reason.String] is its text.
type Reason struct {
	// Pool is the name of the pool. It is empty if the reason is about the pod or existing nodes.
	Pool  string
	Stage Stage
	// Quota is the CapacityQuota that allows no further node; empty for the limit of a pool.
	Quota string
	// Key and Resource are the label key and the resource that the stage is about, if any.
	Key      string
	Resource string
	// Detail is the text without the pool. Nearest is nil if the reason is not about one type.
	Detail  string
	Nearest *Nearest
}

// Nearest is the type that comes closest to holding a pod.
type Nearest struct {
	Type string
	// Short is what the type lacks of each resource, in units of package resources; nil if it is
	// large enough.
	Short map[string]int64
	// ShutOutBy says what excludes a type that is large enough, such as a requirement of the pool.
	// If requirements of the pod are part of that, PodKeys are their label keys.
	ShutOutBy string
	PodKeys   []string
}

// String returns the reason in one line.
func (r Reason) String() string {
	if r.Pool == "" {
		return r.Detail
	}
	return fmt.Sprintf("pool %q: %s", r.Pool, r.Detail)
}

// Unplaced returns the unplaced pods, grouped by class, in the order of the classes.
func (r *Result) Unplaced() []Unplaced {
	has := make(map[*corev1.Pod]bool, len(r.state.bound))
	for _, b := range r.state.bound {
		has[b.pod] = true
	}
	var out []Unplaced
	for c, class := range r.state.p.Classes {
		if r.state.placed[c] == len(class.Pods) {
			continue
		}
		u := Unplaced{Class: c, result: r}
		for _, pod := range class.Pods {
			if !has[pod] {
				u.Pods = append(u.Pods, pod)
			}
		}
		out = append(out, u)
	}
	return out
}

// Unplaced is the unplaced pods of one class.
type Unplaced struct {
	// Class is an index into Problem.Classes.
	Class int
	Pods  []*corev1.Pod

	result *Result
}

// Reasons says why the pods are unplaced. There is one reason for each pool, in the order of the
// pools, with the first stage that no type of the pool passes. Then comes one for all existing
// nodes. A refused class has only its refusal. The first call costs a pass over the types of all
// pools.
func (u Unplaced) Reasons() []Reason {
	r := u.result
	r.mu.Lock()
	defer r.mu.Unlock()
	out, known := r.reasons[u.Class]
	if !known {
		out = r.state.explain(u.Class)
		r.reasons[u.Class] = out
	}
	return slices.Clone(out)
}

// explainLimit returns the limit that keeps the pool from buying another node for the pod beside
// those of the plan; false if there is none.
func (s *state) explainLimit(k int, shapes []int) (Reason, bool) {
	pool := &s.p.Pools[k]
	left, nodes := s.p.remaining(s.bought()).Left(k)
	if nodes == 0 {
		own, limited := pool.Limits[resourceNodes]
		text := many(int(own.Value()), "node")
		if pool.MaxNodes > 0 && (!limited || pool.MaxNodes < own.Value()) {
			text = fmt.Sprintf("%s (%s)", many(int(pool.MaxNodes), "node"), cmp.Or(pool.MaxNodesBy, "MaxNodes"))
		}
		detail := fmt.Sprintf("the limit of %s is reached", text) + s.stillCounted(pool)
		return Reason{Stage: StageLimit, Resource: string(resourceNodes), Detail: detail}, true
	}
	usage := func(shape int) []int64 { return s.p.Shapes[shape].Usage }
	for i, name := range pool.Limited {
		least := slices.MinFunc(shapes, func(a, b int) int {
			return cmp.Or(cmp.Compare(usage(a)[i], usage(b)[i]), slices.Compare(s.p.Shapes[a].Free, s.p.Shapes[b].Free), strings.Compare(s.p.InstanceType(a).Name, s.p.InstanceType(b).Name))
		})
		typ, need := s.p.InstanceType(least).Name, usage(least)[i]
		if need <= left[i] {
			continue
		}
		return Reason{
			Stage: StageLimit, Resource: string(name),
			Nearest: &Nearest{Type: typ, Short: map[string]int64{string(name): need - max(0, left[i])}},
			Detail: fmt.Sprintf("the limit of %s %s leaves %s; the smallest type that holds it, %s, counts %s", humane(pool, name), name,
				resources.Humane(name, max(0, left[i])), typ, resources.Humane(name, need)) + s.stillCounted(pool),
		}, true
	}
	if slices.ContainsFunc(shapes, func(shape int) bool { return bind.Fits(usage(shape), left) }) {
		return Reason{}, false
	}
	return Reason{Stage: StageLimit, Resource: string(pool.Limited[0]), Detail: "no type that holds it is within all of the pool's limits at once" + s.stillCounted(pool)}, true
}

// stillCounted names the pool's leaving nodes, which count against its limits until they are gone.
// It is empty if there are none.
func (s *state) stillCounted(pool *PoolState) string {
	return s.p.leavingOf(func(m *member) bool { return m.pool == pool.Name })
}

// leavingOf names the leaving nodes for which counts is true.
func (p *Problem) leavingOf(counts func(*member) bool) string {
	var names []string
	for i := range p.members {
		if m := &p.members[i]; m.leaving && counts(m) {
			names = append(names, m.node.Name)
		}
	}
	switch slices.Sort(names); len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; node %s, which is being removed, counts until it is gone", names[0])
	}
	return fmt.Sprintf("; node %s and %s that are being removed count until they are gone", names[0], many(len(names)-1, "other"))
}

func humane(pool *PoolState, name corev1.ResourceName) string {
	q := pool.Limits[name]
	return q.String()
}

// explainTopology names the constraints between pods that may exclude the pod.
func (s *state) explainTopology(class int) Reason {
	out := Reason{Stage: StageTopology}
	var parts []string
	for _, o := range s.p.topology.Obstacles(class) {
		standing, sold := s.p.nodesHave(o.Key)
		if o.NeedsKey && !standing && !sold {
			return Reason{Stage: StageTopology, Key: o.Key, Detail: fmt.Sprintf("no node has the label %s, which its %s needs", o.Key, o.Text)}
		}
		if out.Key = cmp.Or(out.Key, o.Key); (!o.Idle || !sold) && !slices.Contains(parts, o.Text) { // two selectors may mean the same pods
			parts = append(parts, o.Text)
		}
	}
	for _, p := range s.p.Classes[class].ports {
		parts = append(parts, p.String())
	}
	if why := s.p.verifier.cluster.Words(s.refused[class], s.p.Resources); why != "" && len(parts) == 0 {
		parts = append(parts, why)
	}
	out.Detail = "other pods stand in the way: " + strings.Join(parts, ", ")
	if len(parts) == 0 {
		out.Detail = "it would fit alone; the plan found no place for it beside the other pods"
		if len(s.p.Pools) > 1 {
			out.Detail += ", or the limit of another pool decides"
		}
	}
	return out
}

// nodesHave reports whether an existing node has the label, and whether one that can be bought has
// it. If a pool only excludes values, its nodes have the label if some pod requires it.
func (p *Problem) nodesHave(key string) (standing, sold bool) {
	asked := slices.ContainsFunc(p.Classes, func(c *Class) bool { return c.Required.Keys().Contains(key) })
	has := func(s requirements.Set) bool {
		return s.Has(key) && (asked && !s.Get(key).Subset(requirements.DoesNotExist(key)) || !s.Get(key).AllowsAbsent())
	}
	return slices.ContainsFunc(p.Existing, func(n ExistingNode) bool { return has(n.Labels) }),
		slices.ContainsFunc(p.shapeLabels().sets, func(s requirements.Set) bool { return key == corev1.LabelHostname || has(s) })
}

// explainStock says that the plan has used up the counts of all offerings that would hold the pod;
// false if a machine remains.
func (s *state) explainStock(c *Class, shapes []int) (Reason, bool) {
	remaining, sold := s.p.remaining(s.bought()), market.UsedUp{}
	for _, shape := range shapes {
		sh := &s.p.Shapes[shape]
		for i := range sh.Offerings {
			o := &sh.Offerings[i]
			node, err := sh.Labels.Intersect(o.Labels)
			if err != nil || !c.Required.Compatible(node, requirements.Keys{}) {
				continue
			}
			offer := s.p.market().Offer(shape, i)
			if remaining.Stocks(offer) {
				return Reason{}, false
			}
			typ := s.p.InstanceType(shape)
			where := typ.Offerings[o.Index].Requirements.Restrict(requirements.KeysOf(corev1.LabelTopologyZone, instancetypes.LabelCapacityType))
			sold.Add(offer, fmt.Sprintf("%s as %s", typ.Name, where), strings.TrimPrefix(o.Reservation, market.ByCommitment)) // a Stock is no commitment
		}
	}
	text := sold.String()
	return Reason{Stage: StageOffering, Detail: "the plan takes " + text + ", and there are no more"}, text != ""
}

// explainMinValues explains a failure of minValues: the types that hold the pod have too few values
// of a key, or a constraint between pods leaves a node only one value of it.
func (s *state) explainMinValues(class int, c *Class, k int, shapes []int) (Reason, bool) {
	pool := &s.p.Pools[k]
	if len(pool.MinValues) == 0 {
		return Reason{}, false
	}
	remaining := s.p.remaining(s.bought())
	for _, within := range []bool{false, true} {
		types, beyond := []instancetypes.InstanceType(nil), []*market.Offer(nil)
		for _, shape := range shapes {
			typ, all := *s.p.InstanceType(shape), s.p.InstanceType(shape).Offerings
			typ.Offerings = nil
			for i, o := range s.p.Shapes[shape].Offerings {
				if offer := s.p.market().Offer(shape, i); offer != nil && within && !remaining.Within(offer) {
					beyond = append(beyond, offer)
				} else if offer != nil {
					typ.Offerings = append(typ.Offerings, all[o.Index])
				}
			}
			if len(typ.Offerings) > 0 {
				types = append(types, typ)
			}
		}
		var worst *instancetypes.MinValuesError
		for alt := range s.p.inUse(c).All() {
			ask, err := pool.Set.Intersect(alt)
			if err != nil {
				continue
			}
			if _, err = instancetypes.MinValues(types, ask, pool.MinValues); err == nil {
				worst = nil
				break
			}
			errors.As(err, &worst)
		}
		if worst != nil {
			out := Reason{Stage: StageOffering, Key: worst.Key, Detail: fmt.Sprintf("minValues of %s: the pool requires %d values, but the types that hold the pod%s have %d",
				worst.Key, worst.Want, map[bool]string{true: " and that the limits still allow"}[within], worst.Have)}
			if i := remaining.Scarce(k, beyond); i >= 0 {
				out.Stage, out.Resource = StageLimit, string(pool.Limited[i])
			}
			return out, true
		}
	}
	for _, o := range s.p.topology.Obstacles(class) {
		if want := pool.MinValues[o.Key]; want > 1 && !o.Others {
			return Reason{Stage: StageOffering, Key: o.Key, Detail: fmt.Sprintf("minValues of %s: the pool requires %d values, but the %s leaves a node only one", o.Key, want, o.Text)}, true
		}
	}
	return Reason{}, false
}

// explainExisting counts the existing nodes by what excludes the pod; false if there are no nodes.
func (s *state) explainExisting(c *Class) (Reason, bool) {
	if len(s.p.Existing) == 0 {
		return Reason{}, false
	}
	const tainted, labels, ports, full, kept, other = 0, 1, 2, 3, 4, 5
	var counts [6]int
	short, by, taken, daemons, inUse := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, s.portsInUse(c)
	for i := range s.p.Existing {
		r := &s.p.Existing[i]
		left := s.freeLeft(i)
		lacks, _ := s.p.shortage(c, s.p.spare(c, r, left))
		taint, bad := taints.Untolerated(r.Taints, c.Template.Spec.Tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
		at := other
		switch {
		case bad:
			at, by[taint.Key] = tainted, true
		case !c.Required.Compatible(r.Labels, requirements.Keys{}):
			at = labels
		case lacks != nil && s.p.holdsBesideDaemons(c, r, left):
			at = kept
			for _, name := range r.DaemonSets {
				daemons[name] = true
			}
		case lacks != nil:
			at = full
			for name := range lacks {
				short[name] = true
			}
		case inUse[i] != "":
			at, taken[inUse[i]] = ports, true
		}
		counts[at]++
	}
	asks := "labels"
	if len(nodefeature.Needed(&c.Template.Spec)) > 0 {
		asks = "labels or node features"
	}
	list := func(names map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(names)), ", ") }
	var parts []string
	for at, text := range [...]string{
		"tainted (" + list(by) + ")", "without the " + asks + " it requires", "with " + list(taken) + " in use",
		"short of " + strings.ReplaceAll(list(short), ", ", " or "), "with room that is kept for DaemonSets (" + list(daemons) + ")", "excluded by other pods' constraints or by node limits",
	} {
		if counts[at] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[at], text))
		}
	}
	stage := StageResource
	switch {
	case counts[full]+counts[kept] > 0:
	case counts[ports]+counts[other] > 0:
		stage = StageTopology
	case counts[labels] > 0:
		stage = StageRequirement
	default:
		stage = StageTaint
	}
	return Reason{Stage: stage, Detail: fmt.Sprintf("existing nodes (%d): %s", len(s.p.Existing), strings.Join(parts, ", "))}, true
}

// freeLeft returns the free capacity of an existing node after the last outcome.
func (s *state) freeLeft(node int) []int64 {
	left := slices.Clone(s.p.Existing[node].Free)
	if node < len(s.last.Existing) {
		for _, sh := range s.last.Existing[node] {
			for range sh.Count {
				subtract(left, s.items[sh.Item].Requests)
			}
		}
	}
	return left
}

// subtract subtracts b from a and saturates. A nil b is nothing.
func subtract(a, b []int64) {
	for i := range b {
		d := a[i] - b[i]
		switch {
		case b[i] > 0 && d > a[i]:
			d = -1 << 63
		case b[i] < 0 && d < a[i]:
			d = 1<<63 - 1
		}
		a[i] = d
	}
}

// explainQuota returns the quota that keeps the shapes from being bought for a pod of the class
// beside the plan; false if there is none. If several quotas each exclude all shapes, it returns
// the first by name. If only several together exclude all shapes, it names all of them.
func (s *state) explainQuota(c *Class, shapes []int) (Reason, bool) {
	limits := s.p.remaining(s.bought())
	left := limits.Quotas()
	blocks, least, all := make([]int, len(left)), slices.Repeat([]int64{math.MaxInt64}, len(left)), 0
	for _, shape := range shapes {
		sh := &s.p.Shapes[shape]
		for j := range sh.Offerings {
			o := &sh.Offerings[j]
			node, err := sh.Labels.Intersect(o.Labels)
			if err != nil || !c.Required.Compatible(node, requirements.Keys{}) || !limits.InPool(s.p.market().Offer(shape, j)) {
				continue
			}
			if market.Fits(o.Usage, left) {
				return Reason{}, false
			}
			all++
			for i, u := range o.Usage {
				if u > max(0, left[i]) {
					blocks[i]++
					least[i] = min(least[i], u)
				}
			}
		}
	}
	if all == 0 {
		return Reason{}, false
	}
	var texts []string
	out := Reason{Stage: StageLimit}
	for i, n := range blocks {
		b := &s.p.Budgets[i]
		text := b.Text(b.Left - left[i])
		if b.Resource != capacityquota.Nodes {
			text += fmt.Sprintf(", and the smallest node that holds it counts %s", resources.Humane(b.Resource, least[i]))
		}
		if n == all {
			out.Quota, out.Resource, out.Detail = b.Quota, string(b.Resource), text+s.stillCountedBy(b.Quota)
			return out, true
		}
		if n > 0 {
			out.Quota, out.Resource = cmp.Or(out.Quota, b.Quota), cmp.Or(out.Resource, string(b.Resource))
			texts = append(texts, text)
		}
	}
	out.Detail = "no node that holds it is within all quotas at once: " + strings.Join(texts, "; ")
	return out, true
}

// stillCountedBy names the leaving nodes that count against a quota.
func (s *state) stillCountedBy(quota string) string {
	all := s.p.quotas.Quotas()
	at := slices.IndexFunc(all, func(q capacityquota.Quota) bool { return q.Name == quota })
	return s.p.leavingOf(func(m *member) bool { return all[at].Matches(m.labels) })
}

// offer returns what a bin is bought as, which counts the most of what it may become.
func (p *Problem) offer(b *OutcomeBin) *market.Offer {
	return p.market().AnyOf(b.Shape, b.Offering, b.Needed)
}

// areGone returns the names of nodes and "is" or "are".
func areGone(nodes []string) string {
	switch n := len(nodes); {
	case n == 1:
		return "node " + nodes[0] + " is"
	case n <= 3:
		return "nodes " + strings.Join(nodes[:n-1], ", ") + " and " + nodes[n-1] + " are"
	}
	return fmt.Sprintf("node %s and %d others are", nodes[0], len(nodes)-1)
}

// refusalOf returns why a pod is refused by itself; nil if it is not. template is as it is stored.
func (p *Problem) refusalOf(pod, template *corev1.Pod, nodes *corev1.NodeAffinity) *Reason {
	why := podfault.Unmatched(nodes)
	if forbidden := p.admission.Forbidden(pod); forbidden != "" {
		why = "an API server refuses it: " + forbidden
	} else if faults := podfault.Of(template, "", nodes); len(faults) > 0 {
		why = "it cannot be read: " + podfault.Text(faults)
	} else if faults := podfault.Refused(pod, template); why == "" && !admission.Stored(pod) && len(faults) > 0 {
		why = "an API server refuses it: " + podfault.Text(faults)
	}
	if why != "" {
		return &Reason{Stage: StagePod, Detail: why}
	}
	return nil
}

func budgetsOf(quotas capacityquota.Set, members []member) []capacityquota.Budget {
	return quotas.Budgets(len(members), func(i int) (map[string]string, corev1.ResourceList) { return members[i].labels, members[i].capacity })
}

// index returns i, or panics with a sentence if there are not that many.
func index(what string, i, n int) int {
	if i >= 0 && i < n {
		return i
	}
	panic(fmt.Sprintf("scheduling: there is no %s %d; there are %d", what, i, n))
}
