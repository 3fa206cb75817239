package kubejudge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Step is a binding of a plan, and what happens in the cluster before it.
type Step struct {
	Binding
	// Gone are nodes that are removed before, with the pods that are still there. One that is gone
	// already is passed over.
	Gone []string
	// Ends is a running pod that ends before, such as one that the bound pod replaces; empty for
	// none. If the bind is refused it runs on.
	Ends types.NamespacedName
}

// JudgeSteps is [Judge] of a plan that is carried out while nodes and pods go.
func JudgeSteps(ctx context.Context, s Scenario, plan []Step) (Verdict, error) {
	bindings := make([]Binding, len(plan))
	for i := range plan {
		bindings[i] = plan[i].Binding
	}
	if err := checkPlan(&s, bindings); err != nil {
		return Verdict{}, err
	}
	c, err := newCluster(ctx, &s)
	if err != nil {
		return Verdict{}, err
	}
	var all Verdict
	for i := range plan {
		step := &plan[i]
		for _, n := range step.Gone {
			c.snapshot.removeNode(n)
		}
		ended, err := c.end(ctx, step.Ends)
		if err != nil {
			return Verdict{}, errors.Join(err, c.close())
		}
		verdict, refused, err := lap(ctx, c, bindings, []int{i})
		if err == nil && len(refused) > 0 && ended != nil {
			err = c.snapshot.add(ended)
		}
		if err != nil {
			return Verdict{}, errors.Join(err, c.close())
		}
		all.Accepted, all.Refused = append(all.Accepted, verdict.Accepted...), append(all.Refused, verdict.Refused...)
	}
	return all, c.close()
}

// end takes a running pod off its node and returns it; nil if its node is gone.
func (c *cluster) end(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	if key.Name == "" {
		return nil, nil
	}
	for _, info := range c.snapshot.byName {
		for _, p := range info.Pods {
			if pod := p.GetPod(); nameOf(pod) == key {
				if err := info.RemovePod(klog.FromContext(klog.NewContext(ctx, logr.Discard())), pod); err != nil {
					return nil, fmt.Errorf("kubejudge: %w", err)
				}
				c.snapshot.index()
				return pod, nil
			}
		}
	}
	return nil, nil
}

// removeNode removes a node with its pods.
func (s *snapshot) removeNode(name string) {
	delete(s.byName, name)
	s.list = slices.DeleteFunc(s.list, func(n fwk.NodeInfo) bool { return n.Node().Name == name })
	s.index()
}

// index lists the nodes with affinity, and the claims in use, anew.
func (s *snapshot) index() {
	s.affinity, s.antiAffinity = nil, nil
	s.claims.Clear()
	for _, info := range s.list {
		if len(info.GetPodsWithAffinity()) > 0 {
			s.affinity = append(s.affinity, info)
		}
		if len(info.GetPodsWithRequiredAntiAffinity()) > 0 {
			s.antiAffinity = append(s.antiAffinity, info)
		}
		for _, p := range info.GetPods() {
			s.use(p.GetPod())
		}
	}
}
