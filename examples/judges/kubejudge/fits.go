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

// Fits carries out the plan and then asks of each pod by itself whether kube-scheduler's filters let it onto some node. It returns such pods
// with the first node by name. What the plan has left out and what is returned is what the plan has missed.
//
// Where kube-scheduler refuses a bind of the plan, for example because a node beside it is a new domain, the plan does not hold, so nothing is
// missed by it and no pod is returned. Errors are those of [Judge]. The cost is that of Judge, and one Filter for each pod and node.
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
