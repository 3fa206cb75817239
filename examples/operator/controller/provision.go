package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// Wake makes the operator plan pending pods soon.
func (o *Operator) Wake() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// reconcilePod wakes the provisioner for an unschedulable pod, and records when pods start and
// leave.
func (o *Operator) reconcilePod(ctx context.Context, pod *corev1.Pod) (reconcile.Result, error) {
	if !unschedulable(pod) {
		return reconcile.Result{}, o.podMoved(ctx, pod)
	}
	if claim := o.place(ctx, pod); claim != nil {
		if claim.Status.NodeName != "" && pod.Status.NominatedNodeName == "" { // kube-scheduler has tried it before the node was open
			o.hint(ctx, client.ObjectKeyFromObject(pod), claim.Status.NodeName)
		}
		if !is(karpv1.ConditionTypeInitialized)(claim) { // if the pod is still unschedulable afterwards, its place is taken
			return reconcile.Result{RequeueAfter: o.options.Poll}, nil
		}
	}
	o.Wake()
	return reconcile.Result{}, nil
}

// unschedulable reports whether kube-scheduler has found no node for a pod.
func unschedulable(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// lastPodEventPause is the least time between two writes of a claim's lastPodEventTime, which is
// compared with minutes.
const lastPodEventPause = 10 * time.Second

// podMoved writes the lastPodEventTime of the claim of a pod's node.
func (o *Operator) podMoved(ctx context.Context, pod *corev1.Pod) error {
	var node corev1.Node
	if pod.Spec.NodeName == "" || eviction.Daemon(pod) || o.client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node) != nil {
		return nil
	}
	claim, err := o.claimOf(ctx, &node)
	if err != nil || claim == nil {
		return err
	}
	o.locked(func(now time.Time) {
		if _, ok := o.planned[pod.UID]; ok && pod.Status.Phase == corev1.PodRunning { // once a pod
			delete(o.planned, pod.UID)
			podStartSeconds.WithLabelValues(claim.Labels[karpv1.NodePoolLabelKey]).Observe(now.Sub(pod.CreationTimestamp.Time).Seconds())
		}
	})
	at := eligibility.LastPodEvent(pod, time.Now())
	if !at.After(claim.Status.LastPodEventTime.Add(lastPodEventPause)) && !claim.Status.LastPodEventTime.IsZero() {
		return nil
	}
	err = o.writeStatus(ctx, claim, func() { claim.Status.LastPodEventTime.Time = at })
	return client.IgnoreNotFound(err)
}

// provisionLoop plans batches of pods, and plans again when refused capacity may be available.
func (o *Operator) provisionLoop(ctx context.Context) error {
	retry := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-retry.C:
		case <-o.wake:
			o.batch(ctx)
		}
		again, err := o.provision(ctx)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "provisioning")
			again = o.options.Poll
		}
		retry.Reset(again)
	}
}

// batch waits for the end of a batch: see Options.BatchIdle.
func (o *Operator) batch(ctx context.Context) {
	end := time.After(o.options.BatchMax)
	for {
		select {
		case <-ctx.Done():
			return
		case <-end:
			return
		case <-time.After(o.options.BatchIdle):
			return
		case <-o.wake:
		}
	}
}

// provision plans the pending pods once and creates a NodeClaim for each new node. It returns the
// time until the next plan without a wake.
func (o *Operator) provision(ctx context.Context) (again time.Duration, err error) {
	o.deciding.Lock()
	defer o.deciding.Unlock()
	v, problems := o.read(ctx)
	if v == nil {
		return 0, problems
	}
	if problems != nil {
		log.FromContext(ctx).Info("left out of the plan", "problems", problems.Error())
	}
	again = 6 * o.options.Poll
	created, err := o.keepReplicas(ctx, v)
	if err != nil {
		log.FromContext(ctx).Info("static pools", "problems", err.Error())
	}
	if created > 0 { // they take pods before anything is bought
		if v, problems = o.read(ctx); v == nil {
			return 0, problems
		}
	}
	waits := slices.ContainsFunc(v.Pods, func(p *corev1.Pod) bool { return unschedulable(p) || v.moving[p.UID] }) && len(v.Pools) > 0
	if !waits && len(v.buffers) == 0 {
		podsUnplaced.Set(0)
		return again, nil
	}
	start := time.Now()
	p, err := plan.Make(ctx, v.Snapshot, &plan.Options{Groups: v.objects.Groups})
	if err != nil {
		return 0, err
	}
	planSeconds.WithLabelValues("provision").Observe(time.Since(start).Seconds())
	nodes := p.NewNodes()
	if len(nodes) > 0 {
		bound := p.Bound.Price.Dollars()
		log.FromContext(ctx).Info("planned", "pods", len(p.Bindings()), "new-nodes", len(nodes),
			"price-per-hour", p.Cost().Dollars(), "bound-per-hour", bound, "seconds", time.Since(start).Seconds())
		planGap.Set((p.Cost().Dollars() - bound) / max(bound, 1e-9))
	}
	if o.options.Confirm != nil && len(nodes) > 0 {
		if err := o.options.Confirm(ctx, p); err != nil {
			return 0, err
		}
	}
	groups := v.groupsOf(nodes)
	bought, errs := make([]*karpv1.NodeClaim, len(nodes)), make([]error, len(nodes))
	workqueue.ParallelizeUntil(ctx, workers, len(nodes), func(i int) {
		bought[i], errs[i] = o.createClaim(ctx, v, pipeline.Claim(&nodes[i], "planned"), groups, fmt.Sprintf("for its pods (%d)", len(nodes[i].Pods)))
	})
	for i := range nodes {
		v.claims[nodes[i].Name] = bought[i]
	}
	o.nominate(v, p)
	o.refuse(v, p)
	errs = append(errs, o.dropParts(ctx, v, p), o.buyRooms(ctx, v, p))
	o.locked(func(now time.Time) {
		if len(p.Bindings()) > 0 {
			o.provisioned = now
		}
		if next, ok := o.ledger.Next(v.now); ok && len(p.Unplaced()) > 0 {
			again = min(again, max(time.Second, next.Sub(v.now)))
		}
	})
	return again, errors.Join(errs...)
}

// createClaim creates a NodeClaim and returns when the cache has it, so that the next plan counts
// it.
func (o *Operator) createClaim(ctx context.Context, v *view, ask cloudprovider.NodeClaim, groups, why string) (*karpv1.NodeClaim, error) {
	claim, err := v.newClaim(ask, groups)
	if err != nil {
		return nil, err
	}
	if err := o.client.Create(ctx, claim); err != nil {
		return nil, err
	}
	o.events.Eventf(claim, nil, corev1.EventTypeNormal, "Created", "Create", "%s", why)
	tries := 0
	return claim, wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := o.client.Get(ctx, client.ObjectKeyFromObject(claim), &karpv1.NodeClaim{})
		if tries++; apierrors.IsNotFound(err) && tries%100 == 0 { // it may have been refused and deleted before the cache had it
			gone := o.api.Get(ctx, client.ObjectKeyFromObject(claim), &karpv1.NodeClaim{})
			return apierrors.IsNotFound(gone), nil
		}
		return err == nil, client.IgnoreNotFound(err)
	})
}

// dropParts deletes claims of plans with groups that are on their way and have no pod any more: a
// group cannot become whole.
func (o *Operator) dropParts(ctx context.Context, v *view, p *plan.Plan) error {
	used := map[string]bool{} // by node or claim
	for _, b := range p.Bindings() {
		used[b.Node] = true
	}
	for _, pod := range v.Pods {
		used[pod.Spec.NodeName] = used[pod.Spec.NodeName] || eviction.Reschedulable(pod)
	}
	var errs []error
	for _, node := range slices.Sorted(maps.Keys(v.claims)) {
		claim := v.claims[node]
		if claim == nil || used[node] || v.busy[claim.Name] || is(karpv1.ConditionTypeInitialized)(claim) { // what is ready is given back when it is empty
			continue
		}
		if groups := claim.Annotations[groupsAnnotation]; groups != "" {
			errs = append(errs, o.giveUp(ctx, claim, "GroupNotWhole", "no pod can use it any more; it was bought with group "+groups))
		}
	}
	return errors.Join(errs...)
}

// refuse writes events that say why no node can be bought for pods, with a verified fix. Events are
// limited, so the first pod of every class comes before the second of any. The recorder counts an
// event that differs from an earlier one only in its note as the same, and never says the new note;
// so the action has a hash of the note.
func (o *Operator) refuse(v *view, p *plan.Plan) {
	unplaced, total, most := p.Unplaced(), 0, 0
	texts, fixes := make([]string, len(unplaced)), p.FirstFixes(false)
	for i, u := range unplaced {
		total, most = total+len(u.Pods), max(most, len(u.Pods))
		var lines []string
		for _, r := range u.Reasons() {
			lines = append(lines, r.String())
		}
		if fixes[i].Text != "" {
			lines = append(lines, fixes[i].Text)
		}
		texts[i] = strings.Join(lines, "; ")
	}
	for k := range most {
		for i, u := range unplaced {
			if k < len(u.Pods) && !v.moving[u.Pods[k].UID] {
				sum := sha256.Sum256([]byte(texts[i]))
				o.events.Eventf(u.Pods[k], nil, corev1.EventTypeWarning, "FailedScheduling", "Provision-"+hex.EncodeToString(sum[:4]), "%s", texts[i])
			}
		}
	}
	podsUnplaced.Set(float64(total))
}
