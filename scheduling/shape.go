package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/exclusion"
	"github.com/joinery-sdk/joinery/scheduling/internal/market"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodekind"
	"github.com/joinery-sdk/joinery/scheduling/internal/once"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/poolkeys"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// resourceNodes is the name of the limit on the number of nodes of a pool.
const resourceNodes corev1.ResourceName = "nodes"

func (p *Problem) compilePools() {
	pools := slices.Clone(p.snapshot.Pools)
	slices.SortStableFunc(pools, func(a, b Pool) int { return nodepool.Compare(a.NodePool, b.NodePool) })
	for _, pool := range pools {
		if pool.IsStatic() {
			p.Notes = append(p.Notes, fmt.Sprintf("pool %s keeps a fixed number of nodes (%d): none is bought for pods", pool.Name, *pool.Replicas))
		}
		if pool.IsStatic() || pool.Metadata.DeletionTimestamp != nil {
			continue
		}
		set, _ := p.asked(&pool) // with an error it is impossible
		for _, u := range poolkeys.Unknown(&pool.NodePool, pool.Types) {
			p.Notes = append(p.Notes, fmt.Sprintf("pool %s: %s", pool.Name, u.Text))
		}
		state := PoolState{Pool: pool, Set: set, MinValues: market.Demanded(pool.MinValues, pool.Types, set), NodesLeft: -1, taintSet: p.taints.Intern(pool.Taints), aliases: p.aliases, features: p.featuresOf(pool.Name), exclusions: &once.Map[string, *exclusion.Ranking]{}}
		for _, name := range resources.Names(pool.Limits) {
			left := resources.Capacity(name, pool.Limits[name])
			if name == resourceNodes {
				state.NodesLeft = int(min(left, 1<<31))
				continue
			}
			state.Limited = append(state.Limited, name)
			state.Left, state.Over = append(state.Left, left), append(state.Over, 0)
		}
		if most := int(min(pool.MaxNodes, 1<<31)); most > 0 && (state.NodesLeft < 0 || most < state.NodesLeft) {
			state.NodesLeft = most
		}
		for i := range p.members {
			if p.members[i].pool == pool.Name {
				state.take(p.members[i].capacity)
			}
		}
		p.Notes = append(p.Notes, p.assumedOf(pool.Name)...)
		k := len(p.Pools)
		state.known = sync.OnceValue(func() map[string]map[string]bool { return p.Pools[k].labelsKnown() })
		p.Pools = append(p.Pools, state)
	}
}

// asked returns what a pool asks of its nodes, with deprecated keys renamed.
func (p *Problem) asked(pool *Pool) (requirements.Set, error) {
	return requirements.KubernetesAliases().And(p.aliases).Set(pool.NodeRequirements())
}

// Registered returns all labels that a node of the pool has after the kubelet and other agents have
// added labels; s is the set of labels that type, offering and claim decide. The result has s and
// three additions: Karpenter's labels that say that the node is registered and initialized, and
// that name its class; the keys that [Options.Aliases] adds; and the features that the kubelet
// declares, under keys that are not valid label keys.
func (r *PoolState) Registered(s requirements.Set) requirements.Set {
	all, err := registered(&r.Pool, r.aliases, s).Intersect(requirements.FromLabels(r.features))
	if err != nil { // s is impossible
		return s
	}
	return all
}

func registered(pool *Pool, aliases requirements.Aliases, s requirements.Set) requirements.Set {
	agents := map[string]string{labelRegistered: "true", labelInitialized: "true"}
	if pool != nil {
		if key := classKey(pool.NodeClass); key != "" {
			agents[key] = pool.NodeClass.Name
		}
		if pool.Kind == "Provisioner" {
			agents[nodepool.ProvisionerLabelKey] = pool.Name
		}
	}
	for key := range agents {
		if s.Has(key) { // the claim says otherwise
			delete(agents, key)
		}
	}
	all, err := s.Intersect(requirements.FromLabels(agents))
	if err != nil { // s is impossible
		return s
	}
	return aliases.Both(all)
}

// classKey returns the label key of nodes of a class, such as karpenter.k8s.aws/ec2nodeclass; empty
// for none.
func classKey(c nodepool.NodeClassRef) string {
	if c.Group == "" || c.Kind == "" || c.Name == "" {
		return ""
	}
	return c.Group + "/" + strings.ToLower(c.Kind)
}

// typeRow is what shapes need of a type. It is computed once for all pools that share a slice of
// types.
type typeRow struct {
	allocatable []int64            // by Problem.Resources
	labels      requirements.Set   // those that some pod asks about
	offerings   []requirements.Set // labels of the offerings that some pod asks about
}

func (p *Problem) tabulate(types []instancetypes.InstanceType, keys requirements.Keys) []typeRow {
	table := make([]typeRow, len(types))
	aliases := p.aliases.Among(keys)
	inParallel(len(types), func(i int) {
		offerings := make([]requirements.Set, len(types[i].Offerings))
		for j, o := range types[i].Offerings {
			offerings[j] = aliases.Both(o.Requirements).Restrict(keys)
		}
		table[i] = typeRow{p.allocatable(&types[i]), aliases.Both(types[i].Requirements).Restrict(keys), offerings}
	})
	return table
}

// allocatable returns what a type's nodes have for pods and daemons, by Problem.Resources.
func (p *Problem) allocatable(typ *instancetypes.InstanceType) []int64 {
	out := make([]int64, len(p.Resources))
	for k, name := range p.Resources {
		if _, limited := typ.Capacity[name]; !limited && attachable(name) {
			out[k] = volume.Unlimited
		}
	}
	for _, step := range typ.Breakdown() {
		if k := slices.Index(p.Resources, step.Resource); k >= 0 {
			out[k] = step.Allocatable
		}
	}
	return out
}

// inParallel calls f for every i below n, from several goroutines if n is large.
func inParallel(n int, f func(i int)) {
	const alone = 100 // calls that cost less than starting a goroutine
	count := min(runtime.GOMAXPROCS(0), 1+n/alone)
	var all sync.WaitGroup
	for part := range count {
		all.Go(func() {
			for i := part * n / count; i < (part+1)*n/count; i++ {
				f(i)
			}
		})
	}
	all.Wait()
}

// attachable reports whether the resource counts attached volumes. Nodes without a limit take any
// number of them.
func attachable(name corev1.ResourceName) bool {
	_, ok := volume.Driver(name)
	return ok
}

func (p *Problem) compileShapes(keys requirements.Keys) error {
	tables := map[*instancetypes.InstanceType][]typeRow{}
	for k := range p.Pools {
		pool := &p.Pools[k]
		if len(pool.Types) == 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("pool %s has no instance types and can buy nothing; give it those that its cloud offers", pool.Name))
			continue
		}
		table := tables[&pool.Types[0]]
		if len(table) != len(pool.Types) {
			table = p.tabulate(pool.Types, keys)
			p.noteUnsold(pool.Types)
			tables[&pool.Types[0]] = table
		}
		pool.table = table
		if !pool.Set.IsImpossible() {
			p.shapesOf(k, keys)
		}
	}
	for i := range p.Shapes {
		for j := range p.Shapes[i].Offerings {
			o := &p.Shapes[i].Offerings[j]
			if o.Cost = o.Price; p.options.Cost == nil {
				continue
			}
			if labels, err := p.NodeLabels(i, j); err == nil {
				o.Cost = p.options.Cost(labels, o.Price)
			}
			if !priced(o.Cost) {
				return fmt.Errorf("scheduling: Options.Cost is %v for type %s in pool %s: want a finite number, 0 or more", o.Cost, p.InstanceType(i).Name, p.Pools[p.Shapes[i].Pool].Name)
			}
		}
	}
	return nil
}

// priced reports whether a price is a finite number of dollars, 0 or more.
func priced(price float64) bool { return price >= 0 && !math.IsInf(price, 1) }

// noteUnsold adds a note for each offering that is not for sale, because its price is invalid or
// because its labels contradict those of its type. [instancetypes.Validate] rejects both.
func (p *Problem) noteUnsold(types []instancetypes.InstanceType) {
	for i := range types {
		t := &types[i]
		for k := range t.Offerings {
			o := &t.Offerings[k]
			if !priced(o.Price) {
				p.Notes = append(p.Notes, fmt.Sprintf("instance type %s: offering %d costs %v an hour, which is not a valid price, so it is not for sale", t.Name, k, o.Price))
			}
			if !t.Requirements.Overlaps(o.Requirements) {
				_, err := t.Requirements.Intersect(o.Requirements)
				p.Notes = append(p.Notes, fmt.Sprintf("instance type %s: offering %d contradicts the type and is not for sale: %v", t.Name, k, err))
			}
		}
	}
}

func (p *Problem) shapesOf(k int, keys requirements.Keys) {
	pool := &p.Pools[k]
	tainted := requirements.MustOf(requirements.In(taints.Key, taints.Value(pool.taintSet)))
	poolLabels, _ := pool.Registered(pool.Set).Restrict(keys).Intersect(tainted) // a key that no pool can constrain
	parts := p.parts(pool, poolLabels)
	lists := make([][]Shape, len(pool.Types)) // for each type, a shape for each set of daemons in each part
	kinds, charges := p.kinds(pool), p.charges(pool)
	inParallel(len(lists), func(i int) {
		typ, row := &pool.Types[i], &pool.table[i]
		inPool, err := pool.Set.Intersect(typ.Requirements)
		if err != nil {
			return
		}
		var usage []int64
		for _, name := range pool.Limited {
			usage = append(usage, resources.Capacity(name, typ.Capacity[name]))
		}
		for _, part := range parts {
			labels, err := row.labels.Intersect(part)
			if err != nil {
				continue
			}
			all, err := inPool.Intersect(part.Restrict(pool.Set.Keys()))
			if err != nil {
				continue
			}
			first := len(lists[i])
			for j := range typ.Offerings {
				o := &typ.Offerings[j]
				if !o.Available || !priced(o.Price) || !o.Requirements.Overlaps(all) {
					continue
				}
				kind := kinds.Of(labels, row.offerings[j])
				at := slices.IndexFunc(lists[i][first:], func(s Shape) bool { return slices.Equal(s.daemons, kind.Daemons) })
				if at < 0 {
					at = len(lists[i]) - first
					s := Shape{Pool: k, Type: i, Free: slices.Clone(row.allocatable), Usage: usage, Labels: labels, daemons: kind.Daemons}
					if len(parts) > 1 {
						s.part = part
					}
					p.chargeDaemons(&s)
					lists[i] = append(lists[i], s)
				}
				to, next := &lists[i][first+at].Offerings, ShapeOffering{
					Index: j, Labels: with(row.offerings[j], kind.Sides), Price: o.Price, Count: o.ReservationCount, Reservation: market.Reservation(o),
					Usage: charges(part, typ, o),
				}
				next.Takes, next.Committed = market.Money(o)
				*to = append(*to, next)
			}
		}
	})
	for _, list := range lists {
		p.Shapes = append(p.Shapes, list...)
	}
}

// kinds returns the kinds of the pool's nodes.
func (p *Problem) kinds(pool *PoolState) *nodekind.Kinds {
	var daemons []nodekind.Daemon
	for i, d := range p.daemons {
		if taints.Tolerates(d.pod.Spec.Tolerations, pool.Taints) {
			daemons = append(daemons, nodekind.Daemon{Number: i, Required: d.required})
		}
	}
	return nodekind.New(daemons, p.topology)
}

// parts divides the labels of a pool's nodes, so that each DaemonSet runs on all nodes of a part or
// on none, and a CapacityQuota counts all or none; see [nodekind.Parts]. What may apply to some nodes
// of a part applies to all of them.
func (p *Problem) parts(pool *PoolState, labels requirements.Set) []requirements.Set {
	var by []requirements.Set
	for _, d := range p.daemons {
		if taints.Tolerates(d.pod.Spec.Tolerations, pool.Taints) {
			by = slices.AppendSeq(by, d.required.All())
		}
	}
	for _, q := range p.quotas.Quotas() {
		by = append(by, q.Requirements())
	}
	isOpen := func(key string) bool { return !poolkeys.Known(pool.Types, key) && key != nodepool.LabelKey }
	return nodekind.Parts(labels, pool.Set, isOpen, by)
}

// charges returns a function for what a node counts against each of Problem.Budgets, by its part of
// the pool, its type and its offering. The function is safe for concurrent use.
func (p *Problem) charges(pool *PoolState) func(part requirements.Set, typ *instancetypes.InstanceType, o *instancetypes.Offering) []int64 {
	counter, keys := p.quotas.Counter(), p.quotas.Keys()
	aliases := p.aliases.Among(keys)
	all, err := pool.Registered(pool.Set).Restrict(keys).Intersect(nodekind.SomeHost().Restrict(keys))
	return func(part requirements.Set, typ *instancetypes.InstanceType, o *instancetypes.Offering) []int64 {
		if err != nil || len(p.Budgets) == 0 {
			return nil
		}
		set := all
		for _, more := range []requirements.Set{part, aliases.Both(typ.Requirements), aliases.Both(o.Requirements)} {
			var impossible error
			if set, impossible = set.Intersect(more.Restrict(keys)); impossible != nil {
				return nil // there is no such node
			}
		}
		return counter.Of(set, typ.Capacity)
	}
}

// Charges returns what an existing node counts against each of Problem.Budgets; nil if that is
// nothing.
func (p *Problem) Charges(node map[string]string, capacity corev1.ResourceList) []int64 {
	return p.quotas.Of(node, capacity)
}

// chargeDaemons subtracts what the daemons of the shape take.
func (p *Problem) chargeDaemons(s *Shape) {
	for _, i := range s.daemons {
		subtract(s.Free, p.daemons[i].vector)
		ports, portLimits := topology.PortTags(p.daemons[i].ports)
		tags, limits := p.topology.Daemon(i)
		s.Tags = slices.Concat(s.Tags, ports, tags)
		s.Limits = slices.Concat(s.Limits, portLimits, limits)
	}
}

// InstanceType returns the instance type of the shape. It panics if there is no such shape.
func (p *Problem) InstanceType(shape int) *instancetypes.InstanceType {
	s := &p.Shapes[index("shape", shape, len(p.Shapes))]
	return &p.Pools[s.Pool].Types[s.Type]
}

// vector returns a resource list by Problem.Resources, rounded up.
func (p *Problem) vector(list corev1.ResourceList) []int64 {
	out := make([]int64, len(p.Resources))
	for i, name := range p.Resources {
		if q, ok := list[name]; ok {
			out[i] = resources.Request(name, q)
		}
	}
	return out
}

// requestsOf returns the requests of each of the pods.
func (p *Problem) requestsOf(pods []*corev1.Pod, totals *podclass.Totals[[]int64]) [][]int64 {
	out := make([][]int64, len(pods))
	var last []int64
	var of *corev1.Pod // the pod whose requests last has
	for i, pod := range pods {
		now := func() []int64 { return p.vector(resources.OfPod(p.admission.Pod(pod), true)) }
		switch {
		case resources.InStatus(pod): // granted by a kubelet, to this pod alone
			last, of = now(), nil
		case of == nil || !podclass.SameTemplate(of, pod):
			last, of = totals.Of(pod, now, p.scope(pod)...), pod
		}
		out[i] = last
	}
	return out
}

// remaining returns what the pools may buy beside these bins.
func (p *Problem) remaining(bins []OutcomeBin) *market.Remaining {
	quotas := make([]int64, len(p.Budgets))
	for i := range p.Budgets {
		quotas[i] = p.Budgets[i].Left
	}
	out := p.market().Remaining(quotas)
	for b := range bins {
		out.Buy(p.offer(&bins[b]), 1)
	}
	return out
}

// soldOut reports whether no pool may buy a further node for a pod of the class.
func (s *state) soldOut(class int) bool {
	c, left := s.p.Classes[class], s.p.remaining(s.bought())
	return len(left.Kinds(s.p.sales[class](), c.bound, c.requests, func(market.Kind) bool { return true })) == 0
}

// hosts lets nodes have more pods of a spread by hostname than its skew allows beside an empty node,
// if that places more: where a limit leaves no further node, the least count rises.
func (d *decisions) hosts() {
	p, c := d.best.p, d.best.p.topology.Choice()
	limited := func(i int) bool { return p.topology.SpreadsOverHosts(i) && d.best.soldOut(i) }
	for c.LeastOnHosts = 1; c.LeastOnHosts < 2*p.pending() && d.pods < d.until && slices.ContainsFunc(d.best.unplaced(), limited); c.LeastOnHosts *= 2 {
		d.place(c)
	}
}

func (p *Problem) newMarket() *market.Market {
	pools := make([]market.Pool, len(p.Pools))
	for i := range p.Pools {
		pool := &p.Pools[i]
		pools[i] = market.Pool{Weight: pool.Weight, Left: pool.Left, Nodes: pool.NodesLeft, Closed: len(pool.MinValues) > 0}
	}
	return market.New(pools, p.offers, p.newSite)
}

// offers yields all that is for sale, with the labels of its nodes.
func (p *Problem) offers(yield func(*market.Offer, requirements.Set) bool) {
	for i := range p.Shapes {
		s := &p.Shapes[i]
		for j, o := range s.Offerings {
			labels, err := s.Labels.Intersect(o.Labels)
			if err != nil {
				continue
			}
			stock := cmp.Or(o.Reservation, fmt.Sprint(i, " ", j))
			if !yield(&market.Offer{Shape: i, Offering: j, Pool: s.Pool, Free: s.Free, Usage: s.Usage, Quota: o.Usage, Price: o.Cost, Count: cmp.Or(o.Committed, o.Count), Takes: o.Takes, Stock: stock}, labels) {
				return
			}
		}
	}
}

func (p *Problem) newSite(allowed requirements.Set) market.Site {
	labels, counts := nodekind.Chosen(allowed), p.verifier.cluster
	labels[corev1.LabelHostname] = "new node" // no node has this name
	return market.Site{Allowed: allowed, Labels: labels, Values: counts.Values.At(counts.Index, labels)}
}

// PodPrice estimates a pod's share of a node, in dollars an hour. For each node for sale that can
// hold the pod, take its [ShapeOffering.Cost] times the pod's largest share of a resource. PodPrice
// is the least of these, and 0 if there is no such node. It panics for an unknown class.
func (p *Problem) PodPrice(class int) float64 { return p.own[index("class", class, len(p.own))]() }

// forTopology yields the shapes as package topology reads them.
func (p *Problem) forTopology(yield func(topology.Shape) bool) {
	var offerings []topology.Offering // reused, since the callee does not keep it
	for i := range p.Shapes {
		s := &p.Shapes[i]
		offerings = offerings[:0]
		for _, o := range s.Offerings {
			offerings = append(offerings, topology.Offering{Labels: o.Labels, Price: o.Cost})
		}
		if !yield(topology.Shape{Labels: s.Labels, Free: s.Free, Offerings: offerings}) {
			return
		}
	}
}

// labels returns the labels that the node will have.
func (b *OutcomeBin) labels(p *Problem) map[string]string {
	var all requirements.Builder
	all.AddSet(p.Shapes[b.Shape].Labels)
	all.AddSet(p.Shapes[b.Shape].Offerings[b.Offering].Labels)
	all.AddSet(b.Labels)
	set, _ := all.Set() // an impossible set has no labels
	return nodekind.Chosen(set)
}

// ChosenLabels chooses one value for each label that set requires of a node, always the same. Of
// several allowed values it chooses "default", which clouds use by default, or else the first.
// Pseudo-labels and labels that agents set are left out, as in [NewNode.Labels].
func (p *Problem) ChosenLabels(set requirements.Set) map[string]string {
	out := nodekind.Chosen(set)
	maps.DeleteFunc(out, func(key, _ string) bool {
		_, feature := nodefeature.Name(key)
		return feature || key == labelRegistered || key == labelInitialized || p.aliases.Key(key) != key ||
			slices.ContainsFunc(p.Pools, func(pool PoolState) bool { return key == classKey(pool.NodeClass) && !pool.Set.Has(key) })
	})
	return out
}
