package kubejudge

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Fits carries out the plan. Then it asks for each of the pods, one at a time, whether
// kube-scheduler's filters accept it on some node. It returns the pods for which that is so, with
// the first node by name. A pod that is unplaced in the plan and returned by Fits is one that the
// plan has missed.
//
// If kube-scheduler refuses one of the plan's bindings, Fits returns no pod, because the plan
// cannot be carried out. An example is a spread that a new node has made stricter by adding a
// domain. Errors are those of [Judge]. The cost is that of Judge, and one Filter for each pod and
// node.
func Fits(ctx context.Context, s Scenario, plan []Binding, pods []types.NamespacedName) ([]Binding, error) {
	if err := errors.Join(checkPlan(&s, plan), checkPods(&s, pods)); err != nil {
		return nil, err
	}
	c, err := newCluster(ctx, &s)
	if err != nil {
		return nil, err
	}
	for waiting := positions(plan); len(waiting) > 0; {
		verdict, refused, err := lap(ctx, c, plan, waiting)
		if err != nil || len(verdict.Accepted) == 0 {
			return nil, errors.Join(err, c.close())
		}
		waiting = refused
	}
	ctx = klog.NewContext(ctx, logr.Discard())
	var out []Binding
	for _, key := range pods {
		key = qualified(key)
		pod, waits := c.pods[key]
		if !waits {
			return nil, errors.Join(fmt.Errorf("kubejudge: pod %q is bound by the plan", key), c.close())
		}
		state := framework.NewCycleState()
		result, status := c.preFilter(ctx, state, pod)
		if !status.IsSuccess() {
			continue
		}
		if fits, _ := c.filterAll(ctx, state, pod, result); len(fits) > 0 {
			out = append(out, Binding{Pod: key, Node: fits[0].Node().Name})
		}
	}
	return out, c.close()
}
