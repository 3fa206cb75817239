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
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Free lets kube-scheduler place the pods itself: on whichever node of the scenario its filters
// allow and its default scores like best, highest priority first and otherwise in the order given.
// Refused pods are tried again, lap after lap, until a whole lap binds nothing.
//
// It answers another question than [Judge]: not whether the plan holds, but how much of it a
// scheduler that has not read it would find. It does not preempt, and of nodes that score alike it
// takes the first by name where kube-scheduler draws lots. pods names those to place; nil means all
// of the scenario's. The verdict's Refused have no Node, and their Position is the index in pods.
// The cost is one Filter and one Score for each pod and node in each lap.
func Free(ctx context.Context, s Scenario, pods []types.NamespacedName) (Verdict, error) {
	if pods == nil {
		for _, p := range s.Pods {
			pods = append(pods, nameOf(p))
		}
	}
	if err := checkPods(&s, pods); err != nil {
		return Verdict{}, err
	}
	c, err := newCluster(ctx, &s)
	if err != nil {
		return Verdict{}, err
	}
	order := make([]int, len(pods))
	for i := range order {
		order[i] = i
	}
	pods = slices.Clone(pods)
	for i := range pods {
		pods[i] = qualified(pods[i])
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(*c.pods[pods[b]].Spec.Priority) - int(*c.pods[pods[a]].Spec.Priority)
	})

	var all Verdict
	for {
		var left []int
		all.Refused = nil
		for _, i := range order {
			node, status, err := c.place(ctx, pods[i])
			if err != nil {
				return Verdict{}, errors.Join(fmt.Errorf("kubejudge: pod %q: %w", pods[i], err), c.close())
			}
			if status.IsSuccess() {
				all.Accepted = append(all.Accepted, Binding{Pod: pods[i], Node: node})
				continue
			}
			left = append(left, i)
			all.Refused = append(all.Refused, Refusal{
				Binding: Binding{Pod: pods[i]}, Position: i, Plugin: status.Plugin(), Message: status.Message(),
			})
		}
		if len(left) == 0 || len(left) == len(order) {
			slices.SortFunc(all.Refused, func(a, b Refusal) int { return a.Position - b.Position })
			return all, c.close()
		}
		order = left
	}
}

func checkPods(s *Scenario, pods []types.NamespacedName) error {
	have := make(map[types.NamespacedName]bool, len(s.Pods))
	for _, p := range s.Pods {
		have[nameOf(p)] = true
	}
	var errs []error
	for i, p := range pods {
		p = qualified(p)
		if !have[p] {
			errs = append(errs, fmt.Errorf("pods[%d]: no pod %q among the scenario's pods%s", i, p, near(p.String(), podNames(s.Pods))))
		}
		have[p] = false // a second time is an error too
	}
	if len(errs) > 0 {
		return fmt.Errorf("kubejudge: %w", errors.Join(errs...))
	}
	return nil
}

// place binds a pod to the node that the scores like best. The status tells why there is none: the
// plugin that shut out the most nodes, as far as there is one.
func (c *cluster) place(ctx context.Context, key types.NamespacedName) (string, *fwk.Status, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, err
	}
	ctx = klog.NewContext(ctx, logr.Discard())
	pod := c.pods[key]
	state := framework.NewCycleState()
	result, status := c.preFilter(ctx, state, pod)
	if !status.IsSuccess() {
		return "", status, nil
	}
	fits, refused := c.filterAll(ctx, state, pod, result)
	if len(fits) == 0 {
		return "", refused, nil
	}
	node := fits[0].Node().Name
	if len(fits) > 1 {
		if status := c.framework.RunPreScorePlugins(ctx, state, pod, fits); !status.IsSuccess() {
			return "", nil, status.AsError()
		}
		scores, status := c.framework.RunScorePlugins(ctx, state, pod, fits)
		if !status.IsSuccess() {
			return "", nil, status.AsError()
		}
		// The nodes are in order of name, so the first of the best is the one of least name.
		best := slices.MaxFunc(scores, func(a, b fwk.NodePluginScores) int {
			switch {
			case a.TotalScore < b.TotalScore:
				return -1
			case a.TotalScore > b.TotalScore:
				return 1
			}
			return 0
		})
		node = best.Name
	}
	status, err := c.commit(ctx, state, pod, node)
	return node, status, err
}

func (c *cluster) filterAll(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, result *fwk.PreFilterResult) ([]fwk.NodeInfo, *fwk.Status) {
	var fits []fwk.NodeInfo
	refused := fwk.NewStatus(fwk.Unschedulable, "no node")
	count, most := map[string]int{}, 0
	for _, info := range c.snapshot.list {
		if !result.AllNodes() && !result.NodeNames.Has(info.Node().Name) {
			continue
		}
		status := c.filter(ctx, state, pod, info)
		if status.IsSuccess() {
			fits = append(fits, info)
			continue
		}
		if count[status.Plugin()]++; count[status.Plugin()] > most {
			most, refused = count[status.Plugin()], status
		}
	}
	return fits, refused
}
