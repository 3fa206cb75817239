package pipeline

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// Buyer carries out plans: it asks a provider for the nodes of a plan, and plans again without what
// the provider refused, until every pod that can be placed has a node. Only Provider must be set;
// everything else has a default.
type Buyer struct {
	// Provider is asked for all nodes of a plan at once if it is a [cloudprovider.BatchCreator],
	// otherwise one by one.
	Provider cloudprovider.Creator
	// Plan plans a snapshot. It should be the function that made the first plan. nil is [plan.Make]
	// without options.
	Plan func(scheduling.Snapshot) (*plan.Plan, error)
	// Now returns the time, because a refusal counts only for a while. Wait waits before a call
	// that failed temporarily is repeated. It returns early with the context's error if the context
	// ends. nil means the functions of package time.
	Now  func() time.Time
	Wait func(context.Context, time.Duration) error
	// Token returns the token of a claim, which must never have been used before. It is called once
	// for each claim. The name is that of the node; a refused claim may have had the same name. nil
	// generates 128 random bits.
	Token func(node string) string
	// Written is called with every claim before the provider sees it, so that a caller that is
	// stopped in between can repeat the call. Its error stops the purchase. nil means that nothing
	// is recorded.
	Written func(cloudprovider.NodeClaim) error
	// Dearer limits the alternatives that a claim names: they may cost at most this fraction more
	// than the planned node (0.1 means 10%). If all of them are refused, the Buyer plans again.
	// With 0, a claim has only alternatives at the planned price. Those that the pool's minValues
	// need are named at any price.
	Dearer float64
	// Ledger is what is known to be unavailable at the start.
	Ledger availability.Ledger
	// Groups are the groups that Plan plans with. Their pods are not fixed to a node before all
	// pods of a group have one.
	Groups []gang.Group
}

// Purchase is the result of a [Buyer].
type Purchase struct {
	// Nodes are the nodes bought, in order.
	Nodes []Bought
	// Returned are the nodes that were bought and given back, because a plan made after a refusal
	// has no pod for them. An example is a group that could not become whole.
	Returned []Bought
	// Last is the last plan. It has the nodes bought before as existing nodes. It buys nothing
	// more, unless the purchase ended early.
	Last *plan.Plan
	// First is the first plan. Everything was available to it, so its bound holds for the whole
	// purchase.
	First *plan.Plan
	// Plans is how many plans were made.
	Plans int
	// Refused is what the provider refused and until when that counts, in the order in which it
	// became known.
	Refused []availability.Record
	// Ledger is what is known at the end.
	Ledger availability.Ledger
}

// Bought is a node that was launched, with the claim and the answer of the provider. Its pods are
// those of the last plan. Its type, zone and price are those of the instance, which may be an
// alternative of the plan.
type Bought struct {
	plan.NewNode
	Claim  cloudprovider.NodeClaim
	Launch cloudprovider.Launch

	kept bool // the pods stay, whatever else is planned
}

// Buy plans the snapshot, buys, and plans again without what was refused, until a plan has nothing
// more to buy. Nodes that were bought are existing nodes in later plans. Their pods may still move
// between them, because nothing runs there yet. If a plan no longer has a pod for a node, the node
// is given back at once, provided that the provider is a [cloudprovider.Deleter]. A new node is
// named after its pool, with a number that no node of the snapshot has. No node or claim of the
// snapshot may have the id of an instance that the provider makes.
//
// The error is one of the provider that planning again cannot fix, or that of the context. The
// purchase is never nil and has what was bought until then.
func (b *Buyer) Buy(ctx context.Context, s scheduling.Snapshot) (*Purchase, error) {
	b = b.withDefaults()
	out := &Purchase{Ledger: b.Ledger}
	if b.Provider == nil {
		return out, errors.New("pipeline: the buyer has no provider to ask")
	}
	names := map[string]bool{}
	for _, n := range s.Nodes {
		names[n.Name] = true
	}
	for i := range s.NodeClaims {
		names[s.NodeClaims[i].Name] = true
	}
	for {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		packed, err := b.plan(s, out)
		if err != nil {
			return out, err
		}
		if out.First == nil {
			out.First = packed
		}
		out.Last = packed
		out.seat(packed, b.member)
		if returned, err := b.giveBack(ctx, out); err != nil {
			return out, err
		} else if returned { // they no longer count against limits
			continue
		}
		planned := packed.NewNodes()
		if len(planned) == 0 {
			return out, nil
		}
		claims := make([]cloudprovider.NodeClaim, len(planned))
		for i := range planned {
			n := &planned[i]
			n.Name = free(names, n.Pool.Name)
			claims[i] = Claim(n, b.Token(n.Name))
			claims[i].Candidates = claims[i].Candidates[:1+b.near(n)]
		}
		bought := len(out.Nodes)
		err = b.launch(ctx, s, out, planned, claims)
		for i := range planned { // names of nodes that were not bought are free again
			delete(names, planned[i].Name)
		}
		for i := range out.Nodes[bought:] {
			names[out.Nodes[bought+i].Name] = true
		}
		if err != nil {
			return out, err
		}
	}
}

// withDefaults returns the buyer with all defaults filled in.
func (b *Buyer) withDefaults() *Buyer {
	out := *b
	if out.Plan == nil {
		out.Plan = func(s scheduling.Snapshot) (*plan.Plan, error) { return plan.Make(context.Background(), s, nil) }
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	if out.Wait == nil {
		out.Wait = func(ctx context.Context, d time.Duration) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d):
				return nil
			}
		}
	}
	if out.Token == nil {
		out.Token = func(string) string { return rand.Text() }
	}
	return &out
}

// near returns how many of the node's alternatives are within the allowed extra cost, or are needed
// for minValues.
func (b *Buyer) near(n *plan.NewNode) int {
	k := slices.IndexFunc(n.Alternatives, func(a plan.Alternative) bool { return a.PricePerHour > n.PricePerHour*(1+b.Dearer) })
	if k < 0 {
		return len(n.Alternatives)
	}
	return max(k, n.Valued())
}

func free(taken map[string]bool, pool string) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s-%d", pool, i)
		if !taken[name] {
			taken[name] = true
			return name
		}
	}
}

// plan plans the current cluster. Pods of the nodes bought may move between them. But if the plan
// then buys nodes, they stay if a plan in which they stay is cheaper and leaves no more pods
// without a place.
func (b *Buyer) plan(s scheduling.Snapshot, out *Purchase) (*plan.Plan, error) {
	moving, err := b.Plan(b.now(s, out, false))
	out.Plans++
	if err != nil || len(moving.NewNodes()) == 0 || len(out.Nodes) == 0 {
		return moving, err
	}
	staying, err := b.Plan(b.now(s, out, true))
	if err != nil {
		return nil, err
	}
	if len(staying.Unplaced()) > len(moving.Unplaced()) || staying.Cost() >= moving.Cost() {
		return moving, nil
	}
	for i := range out.Nodes {
		out.Nodes[i].kept = true
	}
	return staying, nil
}

// now returns the snapshot with what was bought and without what is withheld.
func (b *Buyer) now(s scheduling.Snapshot, out *Purchase, stay bool) scheduling.Snapshot {
	s.Nodes = slices.Clone(s.Nodes)
	home := map[types.NamespacedName]string{} // by name, because a planned pod may be a copy with defaults
	for i := range out.Nodes {
		n := &out.Nodes[i]
		s.Nodes = append(s.Nodes, n.Node())
		for _, p := range n.Pods {
			if (stay || n.kept) && !b.member(p) {
				home[nameOf(p)] = n.Name
			}
		}
	}
	if len(home) > 0 {
		pods := slices.Clone(s.Pods)
		for i, p := range pods {
			if name, ok := home[nameOf(p)]; ok {
				bound := *p // replicas keep sharing what they share
				bound.Spec.NodeName = name
				pods[i] = &bound
			}
		}
		s.Pods = pods
	}
	now := b.Now()
	if len(out.Ledger.Active(now)) > 0 {
		s.Pools = slices.Clone(s.Pools)
		withheld := map[*instancetypes.InstanceType][]instancetypes.InstanceType{} // pools that share types go on sharing them
		for i := range s.Pools {
			all := s.Pools[i].Types
			if len(all) == 0 {
				continue
			}
			if withheld[&all[0]] == nil {
				withheld[&all[0]] = out.Ledger.Apply(all, now)
			}
			s.Pools[i].Types = withheld[&all[0]]
		}
	}
	return s
}

func nameOf(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(p.Namespace, corev1.NamespaceDefault), Name: p.Name}
}

// seat gives the bought nodes the pods that a plan has for them. Pods of groups stay only if a plan
// says so.
func (out *Purchase) seat(packed *plan.Plan, member func(*corev1.Pod) bool) {
	coming := map[string][]*corev1.Pod{}
	for _, b := range packed.Bindings() {
		coming[b.Node] = append(coming[b.Node], b.Pod)
	}
	requests := map[*corev1.Pod]corev1.ResourceList{}
	for _, c := range packed.Problem.Classes {
		for _, pod := range c.Pods {
			requests[pod] = c.Requests
		}
	}
	for i := range out.Nodes {
		n := &out.Nodes[i]
		if !n.kept {
			n.Pods, n.Requests = nil, nil
		} else if slices.ContainsFunc(n.Pods, member) {
			n.Pods = slices.DeleteFunc(slices.Clone(n.Pods), member)
			n.Requests = nil
			for _, pod := range n.Pods {
				n.Requests = resources.Add(n.Requests, resources.OfPod(pod, false))
			}
		}
		slices.SortFunc(coming[n.Name], scheduling.ComparePods)
		n.Pods = slices.Concat(n.Pods, coming[n.Name])
		for _, pod := range coming[n.Name] {
			n.Requests = resources.Add(n.Requests, requests[pod])
		}
	}
}

// launch asks for the claims and learns from the answers.
func (b *Buyer) launch(ctx context.Context, s scheduling.Snapshot, out *Purchase, planned []plan.NewNode, claims []cloudprovider.NodeClaim) error {
	var failed error
	learnt := len(out.Refused)
	bought := len(out.Nodes)
	settle := func(i int, r cloudprovider.Result) {
		now := b.Now()
		if r.Err != nil {
			out.Ledger = out.Ledger.Learn(r.Err, now)
			if cloudprovider.Advise(r.Err).Retry != cloudprovider.RetryElsewhere {
				failed = errors.Join(failed, fmt.Errorf("pipeline: node %s: %w", claims[i].Name, r.Err))
			}
		} else {
			out.Ledger = out.Ledger.Launched(r.Launch, now)
			n := Bought{NewNode: planned[i], Claim: claims[i], Launch: r.Launch}
			n.become(s, r.Launch)
			out.Nodes = append(out.Nodes, n)
		}
		out.remember(now)
	}
	if _, ok := b.Provider.(cloudprovider.BatchCreator); ok {
		if err := b.write(claims); err != nil {
			return err
		}
		for i, r := range cloudprovider.CreateAll(ctx, b.Provider, claims) {
			settle(i, b.again(ctx, claims[i], r))
		}
	} else {
		for i, c := range claims {
			if c.Candidates = out.open(c.Candidates, s, planned[i].Pool.Name, b.Now()); len(c.Candidates) == 0 {
				continue // already refused to an earlier node
			}
			claims[i] = c
			if err := b.write(claims[i : i+1]); err != nil {
				return err
			}
			launch, err := b.Provider.Create(ctx, c)
			settle(i, b.again(ctx, c, cloudprovider.Result{Launch: launch, Err: err}))
			if failed != nil {
				break
			}
		}
	}
	if failed == nil && len(out.Nodes) == bought && len(out.Refused) == learnt {
		return errors.New("pipeline: the provider refused every node without saying what is unavailable")
	}
	return failed
}

func (b *Buyer) write(claims []cloudprovider.NodeClaim) error {
	if b.Written == nil {
		return nil
	}
	for _, c := range claims {
		if err := b.Written(c); err != nil {
			return fmt.Errorf("pipeline: claim %s is not recorded: %w", c.Name, err)
		}
	}
	return nil
}

// open returns the candidates that are not withheld.
func (out *Purchase) open(candidates []cloudprovider.Candidate, s scheduling.Snapshot, pool string, now time.Time) []cloudprovider.Candidate {
	active := out.Ledger.Active(now)
	if len(active) == 0 {
		return candidates
	}
	var left []cloudprovider.Candidate
	for _, c := range candidates {
		t, o := typeOf(s, pool, c.Type), instancetypes.Offering{Requirements: c.Offering}
		if t == nil || !slices.ContainsFunc(active, func(r availability.Record) bool { return r.Covers(*t, o) }) {
			left = append(left, c)
		}
	}
	return left
}

// typeOf returns the type as a pool has it.
func typeOf(s scheduling.Snapshot, pool, name string) *instancetypes.InstanceType {
	for i := range s.Pools {
		if s.Pools[i].Name != pool {
			continue
		}
		for k := range s.Pools[i].Types {
			if t := &s.Pools[i].Types[k]; t.Name == name {
				return t
			}
		}
	}
	return nil
}

// tries is how often a temporarily failing call is made before it counts as failed.
const tries = 8

// again repeats a call that failed temporarily, or whose answer was lost, with the same token.
func (b *Buyer) again(ctx context.Context, claim cloudprovider.NodeClaim, r cloudprovider.Result) cloudprovider.Result {
	asked := false
	r.Err = b.until(ctx, func() error {
		if asked {
			r.Launch, r.Err = b.Provider.Create(ctx, claim)
		}
		asked = true
		return r.Err
	})
	return r
}

// until repeats a call that fails temporarily, or whose answer is lost, with waits that double. It
// returns the last error.
func (b *Buyer) until(ctx context.Context, call func() error) error {
	wait := time.Second
	for try := 0; ; try++ {
		err := call()
		advice := cloudprovider.Advise(err)
		if err == nil || try == tries || advice.Retry != cloudprovider.RetrySame && !advice.Unknown {
			return err
		}
		if detail, ok := errors.AsType[*cloudprovider.Error](err); ok {
			wait = max(wait, detail.RetryAfter)
		}
		if stopped := b.Wait(ctx, wait); stopped != nil {
			return errors.Join(err, stopped)
		}
		wait *= 2
	}
}

// remember adds the records of the ledger to what was refused: each record once, with its latest
// end.
func (out *Purchase) remember(now time.Time) {
	for _, r := range out.Ledger.Active(now) {
		i := slices.IndexFunc(out.Refused, func(o availability.Record) bool {
			return o.Scope == r.Scope && o.Name == r.Name && o.Where.Equal(r.Where)
		})
		if i < 0 {
			out.Refused = append(out.Refused, r)
		} else {
			out.Refused[i] = r
		}
	}
}

// become turns the planned node into the one that was launched, which may be one of its
// alternatives.
func (n *Bought) become(s scheduling.Snapshot, launch cloudprovider.Launch) {
	n.Offering = instancetypes.Offering{Requirements: launch.Offering}
	if t := typeOf(s, n.Pool.Name, launch.Type); t != nil {
		n.InstanceType = t
		for _, o := range t.Offerings {
			if o.Requirements.Equal(launch.Offering) {
				n.Offering, n.PricePerHour = o, o.Price
			}
		}
	}
	labels := maps.Clone(n.Labels)
	maps.Copy(labels, launch.Labels)
	n.Labels = labels
	n.Zone, n.CapacityType = labels[corev1.LabelTopologyZone], labels[instancetypes.LabelCapacityType]
	n.Alternatives = slices.DeleteFunc(slices.Clone(n.Alternatives), func(a plan.Alternative) bool {
		return a.InstanceType == launch.Type && a.Offering.Equal(launch.Offering)
	})
}
