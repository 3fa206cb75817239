package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/budget"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// readRepairs finds the nodes with a condition that does not pass, by the policies of the provider,
// as package lifecycle decides. Nothing is planned onto such a node, whether it is to be repaired
// or not: kube-scheduler may still bind pods there, and they would not run.
func (o *Operator) readRepairs(v *view) {
	adviser, ok := o.options.Provider.(cloudprovider.RepairAdviser)
	if !ok {
		return
	}
	policies, nodeOf := adviser.RepairPolicies(), map[string]string{}
	var nodes []lifecycle.Node
	for i, n := range v.Nodes {
		claim := v.claims[n.Name]
		if claim == nil || !is(karpv1.ConditionTypeRegistered)(claim) { // it may never have been ready
			continue
		}
		nodeOf[claim.Name] = n.Name
		one := lifecycle.Node{
			Claim: claim.Name, Pool: claim.Labels[karpv1.NodePoolLabelKey], Conditions: n.Status.Conditions, Since: n.CreationTimestamp.Time, Annotations: n.Annotations,
		}
		if r := claim.StatusConditions().Get(karpv1.ConditionTypeRebooting); r.IsFalse() && r.LastTransitionTime.After(one.Since) {
			one.Since = r.LastTransitionTime.Time
		}
		nodes = append(nodes, one)
		if one.Broken(policies, v.now) && !is(karpv1.ConditionTypeRebooting)(claim) { // one that is rebooted comes back
			closed := *n // the cache owns n
			closed.Spec.Unschedulable, v.Nodes[i] = true, &closed
		}
	}
	for _, d := range lifecycle.Repairs(nodes, policies, v.now) {
		if name := nodeOf[d.Claim]; !is(karpv1.ConditionTypeRebooting)(v.claims[name]) {
			v.repairs[name] = d
			v.urgent = append(v.urgent, name)
		}
	}
}

// repairsOf tells the nodes of a cluster that are to be replaced what is wrong with them.
func (o *Operator) repairsOf(v *view, cluster *deprovision.Cluster) {
	for i := range cluster.Nodes {
		name := cluster.Nodes[i].Name()
		if d, broken := v.repairs[name]; broken && !o.reboots(v, name, d) {
			cluster.Nodes[i].Repair = &eligibility.Repair{Since: v.now.Add(-d.Urgency), Why: d.Detail, Grace: d.Grace}
		}
	}
}

// graces are the bounds that repairs put on the drains of a command, by name of the claim.
func (v *view) graces(c *giveback.Command) map[string]*time.Duration {
	out := map[string]*time.Duration{}
	for _, n := range c.Nodes {
		if claim := v.claims[n.Name]; claim != nil && c.Method == eligibility.Unhealthy {
			out[claim.Name] = v.repairs[n.Name].Grace
		}
	}
	return out
}

// sayBlocked writes events about nodes that are to be repaired and stay.
func (o *Operator) sayBlocked(v *view, verdicts []giveback.Verdict) {
	for _, x := range verdicts {
		if claim := v.claims[x.Node]; claim != nil && x.Method == eligibility.Unhealthy && x.Outcome != giveback.Chosen {
			o.events.Eventf(claim, nil, corev1.EventTypeWarning, "NodeRepairBlocked", "Repair", "%s", x.Detail)
		}
	}
}

// bound writes down until when the drain of a claim may last, before the claim is deleted. It
// shortens what its terminationGracePeriod allows, and never lengthens it, see [drainEnd].
func (o *Operator) bound(ctx context.Context, claim *karpv1.NodeClaim, grace time.Duration) error {
	var now karpv1.NodeClaim
	if err := o.api.Get(ctx, client.ObjectKeyFromObject(claim), &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	return o.write(ctx, &now, func() {
		if now.Annotations == nil {
			now.Annotations = map[string]string{}
		}
		now.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey] = time.Now().Add(grace).Format(time.RFC3339)
	})
}

// drainEnd is when the drain of a claim that is being deleted ends at the latest; the zero time if
// it has no bound.
func drainEnd(claim *karpv1.NodeClaim) time.Time {
	var end time.Time
	if grace := claim.Spec.TerminationGracePeriod; grace != nil {
		end = claim.DeletionTimestamp.Add(grace.Duration)
	}
	stamped, err := time.Parse(time.RFC3339, claim.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey])
	if err == nil && (end.IsZero() || stamped.Before(end)) {
		end = stamped
	}
	return end
}

// rebootsAnnotation has the times of the reboots of a claim that ended, separated by commas.
const rebootsAnnotation = "joinery-sdk.dev/reboots"

// The results of reboots, as Karpenter's metrics have them.
const (
	rebootSucceeded = "succeeded"
	rebootRefused   = "provider_error"
	rebootTooLong   = "recovery_timeout"
	rebootInvalid   = "invalid_request"
)

// rebootPause is the time between two looks at a node that is to come back. Changes of nodes
// reconcile their claims at once.
const rebootPause = 15 * time.Second

// reboots reports whether a broken node is rebooted rather than replaced: where the policy says so,
// the provider can, the node was ready once, and it was not rebooted twice today.
func (o *Operator) reboots(v *view, node string, d lifecycle.Decision) bool {
	_, can := o.options.Provider.(cloudprovider.Rebooter)
	return d.Reboot && can && is(karpv1.ConditionTypeInitialized)(v.claims[node]) && !lifecycle.RebootsEnough(rebootTimes(v.claims[node]), v.now)
}

func rebootTimes(claim *karpv1.NodeClaim) (out []time.Time) {
	for text := range strings.SplitSeq(claim.Annotations[rebootsAnnotation], ",") {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			out = append(out, at)
		}
	}
	return out
}

// requestReboots begins the reboots that are due, the most urgent first, where neither nodes, pods
// nor budgets forbid them, and marks the nodes.
func (o *Operator) requestReboots(ctx context.Context, v *view, cluster *deprovision.Cluster) error {
	ledger, budgets := budget.New(cluster.Pools, budget.Count(cluster.Nodes), v.now), eviction.NewBudgets(cluster.PodDisruptionBudgets)
	at := map[string]int{}
	for i := range cluster.Nodes {
		at[cluster.Nodes[i].Name()] = i
	}
	var errs []error
	for _, name := range v.urgent {
		i, known := at[name]
		d, claim := v.repairs[name], v.claims[name]
		if !known || !o.reboots(v, name, d) {
			continue
		}
		n := cluster.Nodes[i]
		n.Repair = &eligibility.Repair{Grace: d.Grace}
		why := ""
		if by := eligibility.Blockers(&n, eligibility.Unhealthy, budgets, v.now, o.options.Disruption.Rules); len(by) > 0 {
			why = by[0].String()
		} else if ledger.Left(n.PoolName(), nodepool.Unhealthy) == 0 {
			why = ledger.Why(n.PoolName(), nodepool.Unhealthy)
		}
		if why != "" {
			o.events.Eventf(claim, nil, corev1.EventTypeWarning, "NodeRepairBlocked", "Repair", "%s", why)
			continue
		}
		if err := o.requestReboot(ctx, claim.DeepCopy(), d); err != nil { // the cache owns it
			errs = append(errs, err)
			continue
		}
		cluster.Nodes[i].Claim.Rebooting = true
		ledger = ledger.Take(n.PoolName(), 1)
		disruptions.WithLabelValues(string(eligibility.Unhealthy), "reboot").Inc()
	}
	return errors.Join(errs...)
}

func (o *Operator) requestReboot(ctx context.Context, claim *karpv1.NodeClaim, d lifecycle.Decision) error {
	grace := d.Grace
	if own := claim.Spec.TerminationGracePeriod; own != nil && (grace == nil || own.Duration < *grace) {
		grace = &own.Duration
	}
	if err := o.write(ctx, claim, func() {
		delete(claim.Annotations, karpv1.RebootPreBootIDAnnotationKey)
		delete(claim.Annotations, karpv1.RebootTerminationGracePeriodAnnotationKey)
		if grace != nil {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.RebootTerminationGracePeriodAnnotationKey, grace.String())
		}
	}); err != nil {
		return err
	}
	if err := o.writeStatus(ctx, claim, func() {
		claim.StatusConditions().SetTrueWithReason(karpv1.ConditionTypeRebooting, karpv1.RebootReasonRequested, d.Detail)
	}); err != nil {
		return err
	}
	log.FromContext(ctx).Info("reboot requested", "claim", claim.Name, "why", d.Detail)
	o.events.Eventf(claim, nil, corev1.EventTypeNormal, "Disrupting", "Reboot", "%s: %s", eligibility.Unhealthy, d.Detail)
	return o.await(ctx, claim, is(karpv1.ConditionTypeRebooting))
}

// rebootOf is what a claim says of its reboot. The error says that the bound of the drain cannot be
// read.
func (o *Operator) rebootOf(claim *karpv1.NodeClaim) (lifecycle.Reboot, error) {
	condition := claim.StatusConditions().Get(karpv1.ConditionTypeRebooting)
	r := lifecycle.Reboot{Requested: condition.LastTransitionTime.Time}
	if condition.Reason == karpv1.RebootReasonIssued { // since then it counts as not initialized
		r.Issued = claim.StatusConditions().Get(karpv1.ConditionTypeInitialized).LastTransitionTime.Time
	}
	r.BootID, r.Noted = claim.Annotations[karpv1.RebootPreBootIDAnnotationKey]
	if asked, ok := o.asked.Load(claim.UID); ok {
		r.Asked = asked.(time.Time)
	}
	if text, ok := claim.Annotations[karpv1.RebootTerminationGracePeriodAnnotationKey]; ok {
		grace, err := time.ParseDuration(text)
		if err != nil || grace < 0 {
			return r, fmt.Errorf("annotation %s: %q is not a duration of 0 or more", karpv1.RebootTerminationGracePeriodAnnotationKey, text)
		}
		r.Grace = &grace
	}
	return r, nil
}

// reboot takes the reboot of a claim one step further, as package lifecycle says. Every step may be
// taken twice, so it continues wherever it was interrupted.
func (o *Operator) reboot(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) (reconcile.Result, error) {
	r, err := o.rebootOf(claim)
	if err != nil {
		return reconcile.Result{}, o.endReboot(ctx, claim, node, r, rebootInvalid, err.Error())
	}
	if ended := !r.Issued.IsZero() && !r.Noted; ended { // all is written but that
		return reconcile.Result{}, o.endReboot(ctx, claim, node, r, rebootSucceeded, "the node is back")
	}
	if node != nil && r.Issued.IsZero() {
		if err := o.write(ctx, node, func() {
			if !hasTaint(node, karpv1.RebootingTaintKey) {
				node.Spec.Taints = append(node.Spec.Taints, karpv1.RebootingNoScheduleTaint)
			}
		}); err != nil {
			return reconcile.Result{}, err
		}
	}
	step := r.Next(node, false, time.Now())
	if step == lifecycle.StepDrain {
		_, done, err := o.drain(ctx, claim, node, time.Time{}, "it is rebooted")
		if err != nil {
			return reconcile.Result{}, err
		}
		step = r.Next(node, done, time.Now())
	}
	switch step {
	case lifecycle.StepDrain:
		return reconcile.Result{RequeueAfter: drainPause}, nil
	case lifecycle.StepNote:
		return reconcile.Result{RequeueAfter: time.Millisecond}, o.write(ctx, claim, func() {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.RebootPreBootIDAnnotationKey, node.Status.NodeInfo.BootID)
		})
	case lifecycle.StepAsk:
		return o.askReboot(ctx, claim, node, r)
	case lifecycle.StepIssued:
		return reconcile.Result{RequeueAfter: drainPause}, o.issued(ctx, claim)
	case lifecycle.StepOpen:
		return reconcile.Result{RequeueAfter: rebootPause}, o.untaint(ctx, node, karpv1.RebootingTaintKey)
	case lifecycle.StepSucceeded:
		return reconcile.Result{}, o.endReboot(ctx, claim, node, r, rebootSucceeded, "the node is back")
	case lifecycle.StepFailed:
		if r.Issued.IsZero() {
			return reconcile.Result{}, o.endReboot(ctx, claim, node, r, rebootRefused, "the cloud did not accept the reboot in time")
		}
		return reconcile.Result{}, o.endReboot(ctx, claim, node, r, rebootTooLong, "the node did not come back in time")
	case lifecycle.StepWait:
	}
	if node != nil && !r.Issued.IsZero() { // it has to be initialized anew
		err = o.write(ctx, node, func() { delete(node.Labels, karpv1.NodeInitializedLabelKey) })
	}
	return reconcile.Result{RequeueAfter: rebootPause}, err
}

// askReboot asks the provider, with the same operation whenever the same reboot is asked for.
func (o *Operator) askReboot(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node, r lifecycle.Reboot) (reconcile.Result, error) {
	o.asked.LoadOrStore(claim.UID, time.Now())
	err := error(&cloudprovider.Error{Code: cloudprovider.ErrUnsupported, Op: "reboot", Subject: claim.Status.ProviderID})
	if rebooter, ok := o.options.Provider.(cloudprovider.Rebooter); ok {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s", claim.UID, r.Requested.Unix(), r.BootID))
		err = rebooter.Reboot(ctx, claim.Status.ProviderID, hex.EncodeToString(sum[:16]))
	}
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: drainPause}, o.issued(ctx, claim)
	case cloudprovider.Advise(err).Retry == cloudprovider.RetryNever:
		return reconcile.Result{}, o.endReboot(ctx, claim, node, r, rebootRefused, err.Error())
	}
	return reconcile.Result{}, err // the queue retries with backoff
}

// issued writes down that the cloud has accepted the reboot. From then on the node counts as one
// that was never ready.
func (o *Operator) issued(ctx context.Context, claim *karpv1.NodeClaim) error {
	return o.writeStatus(ctx, claim, func() {
		why := claim.StatusConditions().Get(karpv1.ConditionTypeRebooting).Message
		claim.StatusConditions().SetTrueWithReason(karpv1.ConditionTypeRebooting, karpv1.RebootReasonIssued, why)
		claim.StatusConditions().SetUnknownWithReason(karpv1.ConditionTypeInitialized, karpv1.RebootReasonRebooting, "the node is being rebooted")
	})
}

// endReboot ends a reboot. If it failed, the claim is deleted, with the bound that its drain had,
// and its pods find another node; but not where what was asked for made no sense.
func (o *Operator) endReboot(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node, r lifecycle.Reboot, result, detail string) error {
	if node != nil {
		if err := o.untaint(ctx, node, karpv1.RebootingTaintKey); err != nil {
			return err
		}
	}
	reason := karpv1.RebootReasonSucceeded
	switch result {
	case rebootRefused, rebootTooLong:
		if r.Grace != nil {
			if err := o.bound(ctx, claim, *r.Grace); err != nil {
				return err
			}
		}
		if err := o.giveUp(ctx, claim, karpv1.RebootReasonFailed, detail); err != nil {
			return err
		}
		o.countReboot(claim, r, result)
		return nil
	case rebootInvalid:
		reason = karpv1.RebootReasonFailed
		o.events.Eventf(claim, nil, corev1.EventTypeWarning, reason, "Reboot", "%s", detail)
	default:
		o.events.Eventf(claim, nil, corev1.EventTypeNormal, "RebootObserved", "Reboot", "%s", detail)
	}
	if err := o.write(ctx, claim, func() { // in one write, so that a restart does not count twice
		if result == rebootSucceeded && r.Noted {
			times := append(rebootTimes(claim), time.Now())
			texts := make([]string, 0, len(times))
			for _, at := range times[max(0, len(times)-2):] {
				texts = append(texts, at.Format(time.RFC3339))
			}
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, rebootsAnnotation, strings.Join(texts, ","))
		}
		delete(claim.Annotations, karpv1.RebootPreBootIDAnnotationKey)
		delete(claim.Annotations, karpv1.RebootTerminationGracePeriodAnnotationKey)
	}); err != nil {
		return err
	}
	if err := o.writeStatus(ctx, claim, func() { claim.StatusConditions().SetFalse(karpv1.ConditionTypeRebooting, reason, detail) }); err != nil {
		return err
	}
	o.countReboot(claim, r, result)
	return o.await(ctx, claim, func(now *karpv1.NodeClaim) bool { return !is(karpv1.ConditionTypeRebooting)(now) })
}

func (o *Operator) countReboot(claim *karpv1.NodeClaim, r lifecycle.Reboot, result string) {
	o.asked.Delete(claim.UID)
	rebootsTotal.WithLabelValues(result).Inc()
	rebootSeconds.WithLabelValues(result).Observe(time.Since(r.Requested).Seconds())
	if result == rebootSucceeded && !r.Issued.IsZero() {
		rebootRecoverySeconds.Observe(time.Since(r.Issued).Seconds())
	}
}
