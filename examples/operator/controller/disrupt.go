package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/deletioncost"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// disruptLoop plans disruption every Options.Poll, or earlier if a saving is due.
func (o *Operator) disruptLoop(ctx context.Context) error {
	var seen giveback.Sightings
	for ctx.Err() == nil {
		next, err := o.disrupt(ctx, &seen)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "disruption")
		}
		pause(ctx, next)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// disrupt plans once and starts the commands that are due. A saving is due if it has lasted for
// Options.Validate; interruptions, expiration, repairs and drift are due at once.
func (o *Operator) disrupt(ctx context.Context, seen *giveback.Sightings) (next time.Duration, err error) {
	v, problems := o.read(ctx)
	if v == nil {
		return o.options.Poll, problems
	}
	err = o.reopen(ctx, v) // if it fails for one node, the rest goes on
	result, failed := o.planDisruption(ctx, v)
	if failed != nil {
		return o.options.Poll, errors.Join(err, failed)
	}
	measure(v.pools)
	clusterCost.Set(result.PricePerHour.Dollars())
	for _, x := range result.Verdicts { // these nodes go even if no command was found for them
		claim := v.claims[x.Node]
		if claim != nil && x.Outcome == giveback.WouldNotFit && (x.Method == eligibility.Interruption || x.Method == eligibility.Expiration) {
			err = errors.Join(err, o.giveUp(ctx, claim, string(x.Method), x.Detail))
		}
	}
	o.sayBlocked(v, result.Verdicts)
	now, ready, due := seen.Look(result.Commands, v.now, o.options.Validate)
	*seen = now
	for _, c := range v.apart(ready) {
		o.start(ctx, v, c)
	}
	if due.IsZero() {
		return o.options.Poll, err
	}
	return min(o.options.Poll, due.Sub(v.now)), err
}

// apart are the commands that may run at the same time. Of those that move pods of one group it
// leaves out all but the first: each is right only when the pods of the one before run again. What
// the cloud takes goes in any case.
func (v *view) apart(commands []giveback.Command) []*giveback.Command {
	var out []*giveback.Command
	moves := map[string]bool{} // by group
	for i := range commands {
		c := &commands[i]
		var groups []string
		for _, g := range v.objects.Groups {
			if slices.ContainsFunc(c.Pods(), g.Member) || slices.ContainsFunc(c.Stranded, g.Member) {
				groups = append(groups, g.Name)
			}
		}
		waits := c.Method != eligibility.Interruption && c.Method != eligibility.Expiration
		if waits && slices.ContainsFunc(groups, func(name string) bool { return moves[name] }) {
			continue
		}
		for _, name := range groups {
			moves[name] = true
		}
		out = append(out, c)
	}
	return out
}

// planDisruption begins the reboots that are due, calls package deprovision on the view, and
// remembers the prices of all nodes.
func (o *Operator) planDisruption(ctx context.Context, v *view) (giveback.Result, error) {
	start := time.Now()
	if err := o.fill(ctx, v); err != nil {
		return giveback.Result{}, err
	}
	sim, nominated, err := simulate.NewFor(v.Snapshot, &plan.Options{Groups: v.objects.Groups})
	if err != nil {
		return giveback.Result{}, err
	}
	for node, claim := range v.claims {
		if v.busy[claim.Name] || v.awaited[claim.Name] { // kube-scheduler may bind a pod there at any moment, even if it fits elsewhere
			nominated = append(nominated, node)
		}
	}
	cluster := v.objects.Cluster(v.Snapshot, nominated, v.now)
	if err := o.requestReboots(ctx, v, &cluster); err != nil { // they are tried again, and the rest goes on
		log.FromContext(ctx).Info("reboots", "problems", err.Error())
	}
	o.repairsOf(v, &cluster)
	prices := map[string]float64{}
	for i := range cluster.Nodes {
		name := cluster.Nodes[i].Name()
		prices[name] = cluster.Nodes[i].PricePerHour.Dollars()
		if claim := v.claims[name]; claim != nil {
			if n, ok := noticeOf(name, claim); ok {
				cluster.Interruptions = append(cluster.Interruptions, n)
			}
		}
	}
	o.locked(func(time.Time) { o.prices = prices })
	options := o.options.Disruption
	options.Rules.Placeable = sim.Placeable
	result, err := giveback.Make(ctx, cluster, sim, &options)
	planSeconds.WithLabelValues("disruption").Observe(time.Since(start).Seconds())
	if err == nil && o.options.DeletionCosts {
		if failed := o.writeDeletionCosts(ctx, v, cluster, &result); failed != nil { // it is tried again in the next pass
			log.FromContext(ctx).Info("deletion costs of pods", "problems", failed.Error())
		}
	}
	return result, err
}

// writeDeletionCosts tells ReplicaSets which pods to shed: first those on nodes that the plan gives
// back.
func (o *Operator) writeDeletionCosts(ctx context.Context, v *view, cluster deprovision.Cluster, result *giveback.Result) error {
	options := deletioncost.Options{Ranker: o.options.Disruption.Ranker, Rules: o.options.Disruption.Rules}
	for i := range result.Commands {
		for _, n := range result.Commands[i].Nodes {
			options.Planned = append(options.Planned, n.Name)
		}
	}
	costs, err := deletioncost.Of(cluster, &options)
	if err != nil {
		return err
	}
	return v.costs.Write(ctx, o.client, costs)
}

// start carries out a command in the background. Until it ends, the claims of its old and new nodes
// are busy, and no other command uses them. A saving is dropped if pods were planned after its view
// was read, because they may need the nodes that it removes.
func (o *Operator) start(ctx context.Context, v *view, c *giveback.Command) {
	o.deciding.Lock()
	defer o.deciding.Unlock()
	stale := false
	o.locked(func(time.Time) { stale = c.Saves() && o.provisioned.After(v.now) })
	if stale {
		return
	}
	logger := log.FromContext(ctx).WithValues("method", c.Method, "kind", c.Kind, "nodes", len(c.Nodes), "replacements", len(c.NewNodes), "pods", len(c.Placements))
	old, bought, err := o.begin(ctx, v, c)
	if err == nil {
		logger.Info("command started", "savings-per-hour", c.SavingsPerHour, "why", c.Why)
		decision := string(c.Kind)
		if c.TerminateFirst {
			decision = "terminate-first"
		}
		disruptions.WithLabelValues(string(c.Method), decision).Inc()
	}
	go func() {
		if err == nil {
			err = o.finish(ctx, v.waves(c, old), slices.Concat(bought, v.coming(c)), c.AtOnce, v.graces(c))
		}
		if err != nil && ctx.Err() == nil {
			logger.Info("command given up", "reason", err.Error()) // reopen removes the taint of its nodes before the next plan
		}
		o.locked(func(time.Time) {
			for _, claim := range append(old, bought...) {
				delete(o.busy, claim.Name)
			}
		})
	}()
}

// begin taints the nodes of a command and creates the claims of its replacements, unless its node
// goes first. It returns the claims for which that was tried.
func (o *Operator) begin(ctx context.Context, v *view, c *giveback.Command) (old, bought []*karpv1.NodeClaim, err error) {
	for _, n := range c.Nodes {
		claim := v.claims[n.Name]
		if claim == nil {
			return old, nil, fmt.Errorf("node %s has no claim", n.Name)
		}
		old = append(old, claim)
		o.locked(func(time.Time) { o.busy[claim.Name] = true })
		var node corev1.Node
		if err := o.api.Get(ctx, client.ObjectKey{Name: n.Name}, &node); err != nil { // the cache is often behind a kubelet that reports
			return old, nil, err
		}
		if err := o.close(ctx, &node, false); err != nil {
			return old, nil, err
		}
		o.events.Eventf(claim, nil, corev1.EventTypeNormal, "Disrupting", "Disrupt", "%s: %s", c.Method, c.Why)
	}
	if c.TerminateFirst { // provisioning buys the successor when the claim is gone, also after a restart; if it cannot, the pods wait like any others
		return old, nil, nil
	}
	for i := range c.NewNodes {
		ask, err := simulate.Claim(v.Snapshot, &c.NewNodes[i], "planned")
		if err != nil {
			return old, bought, err
		}
		claim, err := o.createClaim(ctx, v, ask, "", "for "+string(c.Method))
		if err != nil {
			return old, bought, err
		}
		bought = append(bought, claim)
		o.locked(func(time.Time) { o.busy[claim.Name] = true })
	}
	return old, bought, nil
}

// waves are the claims of the nodes that a command gives back, by the waves in which they leave.
func (v *view) waves(c *giveback.Command, old []*karpv1.NodeClaim) [][]*karpv1.NodeClaim {
	if len(c.Waves) == 0 {
		return [][]*karpv1.NodeClaim{old}
	}
	var out [][]*karpv1.NodeClaim
	for _, names := range c.Waves {
		var wave []*karpv1.NodeClaim
		for _, name := range names {
			wave = append(wave, v.claims[name])
		}
		out = append(out, wave)
	}
	return out
}

// coming returns the claims of in-flight nodes that are to take pods of a command.
func (v *view) coming(c *giveback.Command) (out []*karpv1.NodeClaim) {
	for _, p := range c.Placements {
		if to := v.claims[p.Node]; to != nil && !is(karpv1.ConditionTypeInitialized)(to) && !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// finish waits until every target node is initialized and then deletes the old claims, which drains
// their nodes, each wave once the one before it has gone. It stops waiting when the cloud is about
// to reclaim one of the old machines. Graces bound drains, by name of the claim.
func (o *Operator) finish(ctx context.Context, waves [][]*karpv1.NodeClaim, to []*karpv1.NodeClaim, atOnce bool, graces map[string]*time.Duration) error {
	old := slices.Concat(waves...)
	waiting, cancel := context.WithTimeout(ctx, o.options.Timeouts.WithDefaults().Register) // a node may join and never become ready
	defer cancel()
	for _, b := range to {
		dying := false
		err := o.await(waiting, b, func(now *karpv1.NodeClaim) bool {
			dying, atOnce = now.DeletionTimestamp != nil, atOnce || o.urgent(ctx, old)
			return atOnce || dying || now.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized)
		})
		if dying {
			err = errors.New("it was deleted")
		}
		if err != nil && !atOnce {
			return fmt.Errorf("replacement %s did not come up: %w", b.Name, err)
		}
	}
	for i, wave := range waves {
		for _, c := range wave {
			if grace := graces[c.Name]; grace != nil {
				if err := o.bound(ctx, c, *grace); err != nil {
					return err
				}
			}
			if err := o.client.Delete(ctx, c); client.IgnoreNotFound(err) != nil {
				return err
			}
			// Until the cache shows the deletion, reopen would take the node for one of an
			// abandoned command.
			if err := o.await(ctx, c, func(now *karpv1.NodeClaim) bool { return now.DeletionTimestamp != nil }); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		for _, c := range wave {
			if i == len(waves)-1 {
				break
			}
			if err := o.await(ctx, c, func(*karpv1.NodeClaim) bool { return false }); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

// urgent reports whether the cloud reclaims one of the machines before a drain may have ended.
func (o *Operator) urgent(ctx context.Context, claims []*karpv1.NodeClaim) bool {
	const drainTime = 30 * time.Second
	return slices.ContainsFunc(claims, func(c *karpv1.NodeClaim) bool {
		var now karpv1.NodeClaim
		err := o.client.Get(ctx, client.ObjectKeyFromObject(c), &now)
		notice, ok := noticeOf("", &now)
		return err == nil && ok && (notice.Force || time.Until(notice.Deadline) < drainTime)
	})
}

// await waits until the cache shows a claim for which wanted is true. A claim that no longer exists
// is an error.
func (o *Operator) await(ctx context.Context, claim *karpv1.NodeClaim, wanted func(*karpv1.NodeClaim) bool) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var now karpv1.NodeClaim
		err := o.client.Get(ctx, client.ObjectKeyFromObject(claim), &now)
		return err == nil && wanted(&now), err
	})
}

func is(condition string) func(*karpv1.NodeClaim) bool {
	return func(c *karpv1.NodeClaim) bool { return c.StatusConditions().IsTrue(condition) }
}

// reopen removes the disruption taint from nodes of abandoned commands, perhaps of an earlier
// process: nodes that no running command uses and whose claims are not being deleted.
func (o *Operator) reopen(ctx context.Context, v *view) error {
	var errs []error
	for _, n := range v.Nodes {
		claim := v.claims[n.Name]
		if !hasTaint(n, karpv1.DisruptedTaintKey) || claim == nil || claim.DeletionTimestamp != nil || n.DeletionTimestamp != nil || v.busy[claim.Name] {
			continue
		}
		errs = append(errs, client.IgnoreNotFound(o.untaint(ctx, n.DeepCopy(), karpv1.DisruptedTaintKey))) // the cache owns n
	}
	return errors.Join(errs...)
}
