package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	autoscaling "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/headroom"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
)

// spare is a CapacityBuffer of the cluster. Its pods exist only in plans.
type spare struct {
	buffer.Buffer

	object     *autoscaling.CapacityBuffer
	pods       []*corev1.Pod
	generation int64  // of its PodTemplate
	failed     string // the reason of the condition ReadyForProvisioning if it has no pods
	why        string
}

// mostSpare is how many pods a buffer may ask for. Limits alone can ask for any number.
const mostSpare = 10_000

// readBuffers reads the CapacityBuffers, and what their pods are made from, from the API server: a
// cluster may not have them.
func (o *Operator) readBuffers(ctx context.Context, v *view) error {
	var err error
	v.buffers, err = optional(ctx, o, schema.GroupKind{Group: autoscaling.Group, Kind: "CapacityBuffer"}, func(text []byte) (*spare, error) {
		s := &spare{object: &autoscaling.CapacityBuffer{}}
		var err error
		if s.Buffer, err = buffer.Decode(text); err != nil {
			return nil, err
		}
		return s, json.Unmarshal(text, s.object)
	})
	for _, s := range v.buffers {
		if strategy := cmp.Or(s.Strategy, buffer.ActiveCapacity); strategy != buffer.ActiveCapacity {
			s.failed, s.why = "ResolutionFailed", fmt.Sprintf("the strategy %q is not planned", strategy)
			continue
		}
		template, replicas, failed := o.templateOf(ctx, s)
		if failed != nil {
			s.failed, s.why = "ResolutionFailed", failed.Error()
			if apierrors.IsNotFound(failed) {
				s.failed = "ScalableRefNotFound"
				if s.Template != "" {
					s.failed = "PodTemplateNotFound"
				}
			}
			continue
		}
		size := s.Size(template, replicas)
		if size > mostSpare {
			s.failed, s.why = "ResolutionFailed", fmt.Sprintf("it has %d pods; at most %d are planned", size, mostSpare)
			continue
		}
		s.pods = v.spread(s.Pods(template, size))
	}
	return err
}

// templateOf is what the pods of a buffer are made from, and how many replicas its workload asks
// for.
func (o *Operator) templateOf(ctx context.Context, s *spare) (*corev1.PodTemplateSpec, int32, error) {
	key := client.ObjectKey{Namespace: cmp.Or(s.Namespace, corev1.NamespaceDefault), Name: cmp.Or(s.Template, s.Scalable.Name)}
	one := int32(1)
	switch kind := s.Scalable.Kind; {
	case s.Template != "":
		var x corev1.PodTemplate
		err := o.api.Get(ctx, key, &x)
		s.generation = x.Generation
		return &x.Template, 0, err
	case cmp.Or(s.Scalable.Group, appsv1.GroupName) != appsv1.GroupName:
	case kind == "Deployment":
		var x appsv1.Deployment
		err := o.api.Get(ctx, key, &x)
		return &x.Spec.Template, *cmp.Or(x.Spec.Replicas, &one), err
	case kind == "ReplicaSet":
		var x appsv1.ReplicaSet
		err := o.api.Get(ctx, key, &x)
		return &x.Spec.Template, *cmp.Or(x.Spec.Replicas, &one), err
	case kind == "StatefulSet":
		var x appsv1.StatefulSet
		err := o.api.Get(ctx, key, &x)
		return &x.Spec.Template, *cmp.Or(x.Spec.Replicas, &one), err
	}
	return nil, 0, fmt.Errorf("%s: want a Deployment, ReplicaSet or StatefulSet", s.Scalable)
}

// rooms plans the buffers of a view beside a plan of its pods.
func (v *view) rooms(ctx context.Context, p *plan.Plan) ([]headroom.Room, error) {
	requests := make([]headroom.Request, len(v.buffers))
	for i, s := range v.buffers {
		requests[i] = headroom.Request{Name: s.String(), Pods: s.pods, Why: s.why}
	}
	return headroom.Plan(ctx, p, requests)
}

// buyRooms buys the nodes that buffers lack beside a plan, and says in their status what became of
// them.
func (o *Operator) buyRooms(ctx context.Context, v *view, p *plan.Plan) error {
	if len(v.buffers) == 0 {
		return nil
	}
	rooms, err := v.rooms(ctx, p)
	if err != nil {
		return err
	}
	var errs []error
	for i := range rooms {
		for k := range rooms[i].Nodes {
			_, err := o.createClaim(ctx, v, pipeline.Claim(&rooms[i].Nodes[k], "planned"), "", "for CapacityBuffer "+rooms[i].Name)
			errs = append(errs, err)
		}
		if len(rooms[i].Nodes) > 0 {
			log.FromContext(ctx).Info("planned a buffer", "buffer", rooms[i].Name, "new-nodes", len(rooms[i].Nodes), "price-per-hour", rooms[i].PricePerHour, "bound-per-hour", rooms[i].LowerBoundPerHour)
		}
		s := v.buffers[i]
		errs = append(errs, client.IgnoreNotFound(o.writeStatus(ctx, s.object, func() { s.say(rooms[i].Standing) })))
	}
	return errors.Join(errs...)
}

// say sets the status of a buffer.
func (s *spare) say(standing buffer.Standing) {
	status := &s.object.Status
	ready := metav1.Condition{Type: autoscaling.ReadyForProvisioningCondition, Status: metav1.ConditionTrue, Reason: "Resolved", Message: "its pods are known"}
	if s.failed != "" {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, s.failed, s.why
	}
	for _, c := range []metav1.Condition{ready, standing.Condition()} {
		c.ObservedGeneration = s.object.Generation
		meta.SetStatusCondition(&status.Conditions, c)
	}
	status.ProvisioningStrategy = s.object.Spec.ProvisioningStrategy
	status.PodTemplateRef, status.PodTemplateGeneration, status.Replicas = nil, nil, nil
	if s.failed != "" {
		return
	}
	status.Replicas = new(int32(len(s.pods)))
	if s.Template != "" {
		status.PodTemplateRef, status.PodTemplateGeneration = &autoscaling.LocalObjectRef{Name: s.Template}, &s.generation
	}
}

// fill gives the view with the pods of its buffers as if they ran, so that the room is not given
// back: on the nodes that are there, where they fit beside the pods that wait. Moving one costs
// nothing, and no budget protects it. If buffers lack nodes, or what their status says is old, the
// provisioner is woken.
func (o *Operator) fill(ctx context.Context, v *view) error {
	if len(v.buffers) == 0 {
		return nil
	}
	p, err := plan.Make(ctx, v.Snapshot, &plan.Options{Groups: v.objects.Groups})
	if err != nil {
		return err
	}
	rooms, err := v.rooms(ctx, p)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, n := range v.Nodes {
		there[n.Name] = true
	}
	pods := slices.Clip(v.Pods)
	for i := range rooms {
		said := meta.FindStatusCondition(v.buffers[i].object.Status.Conditions, autoscaling.ProvisioningCondition)
		if now := rooms[i].Condition(); len(rooms[i].Nodes) > 0 || said == nil || said.Reason != now.Reason || said.Message != now.Message {
			o.Wake()
		}
		for _, place := range rooms[i].Places {
			if !there[place.Node] { // its claim is on its way, and no candidate
				continue
			}
			held := *place.Pod
			held.Spec.NodeName, held.Status.Phase = place.Node, corev1.PodPending // no PodDisruptionBudget protects a pod that does not run
			held.OwnerReferences = []metav1.OwnerReference{{APIVersion: "autoscaling.x-k8s.io/v1beta1", Kind: "CapacityBuffer", Name: v.buffers[i].Name, Controller: new(true)}}
			held.Annotations = maps.Clone(held.Annotations)
			held.Annotations[eviction.DisruptionCost] = strconv.Itoa(-1 << 27)
			pods = append(pods, &held)
		}
	}
	v.Pods = pods
	return nil
}
