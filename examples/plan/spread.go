package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Spread bounds what is lost at once when a cloud takes the spot capacity of an instance type in a zone back, a spot pool. Pods
// that run count, too; one pod may always be there. kube-scheduler knows nothing of it, so it holds for the plan. The zero value
// bounds nothing.
type Spread struct {
	// Workload is the part of the pods of each workload, and Plan of all pods, that one spot pool may hold; 0 means any.
	Workload, Plan float64
}

// Scheduling is the options that a snapshot must be compiled with for the objective: pods stay apart where a bound counts them, by
// workload where each has one of its own. nil means defaults.
func (o *Objective) Scheduling(opts *scheduling.Options) *scheduling.Options {
	if o == nil || o.Spread == (Spread{}) {
		return opts
	}
	var out scheduling.Options
	if opts != nil {
		out = *opts
	}
	out.Apart = func(*corev1.Pod) string { return "" }
	if o.Spread.Workload > 0 {
		out.Apart = WorkloadOf
	}
	return &out
}

// spotPool names the spot pool of a node with these labels; empty for what is not spot capacity.
func spotPool(labels requirements.Set) string {
	if capacityType, _ := labels.Get(instancetypes.LabelCapacityType).Single(); capacityType != instancetypes.CapacityTypeSpot {
		return ""
	}
	typ, _ := labels.Get(corev1.LabelInstanceTypeStable).Single()
	zone, _ := labels.Get(corev1.LabelTopologyZone).Single()
	return typ + " in " + zone
}

// spreading is what a spread comes to for the pods of a problem.
type spreading struct {
	nodes []string // by existing node, its spot pool
	of    [][]int  // by class, the bounds that it counts for
	bound []binpack.Diversity
}

func (o *Objective) spreadFor(p *scheduling.Problem) *spreading {
	if o == nil || o.Spread == (Spread{}) {
		return nil
	}
	out := &spreading{of: make([][]int, len(p.Classes))}
	pools, pods := map[string]string{}, map[string]int{} // by node, and by limit
	for i := range p.Existing {
		pool := spotPool(p.Existing[i].Labels)
		out.nodes = append(out.nodes, pool)
		pools[p.Existing[i].Node.Name] = pool
	}
	number := map[string]int{}
	count := func(name string, n int) int {
		at, ok := number[name]
		if !ok {
			at = len(out.bound)
			number[name] = at
			out.bound = append(out.bound, binpack.Diversity{Placed: map[string]int{}})
		}
		pods[name] += n
		return at
	}
	for i, c := range p.Classes {
		if o.Spread.Plan > 0 {
			out.of[i] = append(out.of[i], count("", len(c.Pods)))
		}
		if o.Spread.Workload > 0 {
			out.of[i] = append(out.of[i], count(WorkloadOf(c.Pods[0]), len(c.Pods)))
		}
	}
	for _, pod := range p.Snapshot().Pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, name := range []string{"", WorkloadOf(pod)} {
			if at, ok := number[name]; ok {
				pods[name]++
				if pool := pools[pod.Spec.NodeName]; pool != "" {
					out.bound[at].Placed[pool]++
				}
			}
		}
	}
	for name, at := range number {
		part := o.Spread.Workload
		if name == "" {
			part = o.Spread.Plan
		}
		out.bound[at].Max = max(int(part*float64(pods[name])+1e-9), 1)
	}
	return out
}

// poolOf is the spot pool of an existing node.
func (s *spreading) poolOf(node int) string {
	if s == nil {
		return ""
	}
	return s.nodes[node]
}

// limits are the bounds for the items of a round.
func (s *spreading) limits(items []scheduling.Item) []binpack.Diversity {
	if s == nil {
		return nil
	}
	out := slices.Clone(s.bound)
	for i := range items {
		for _, of := range items[i].Pods {
			for _, at := range s.of[of.Class] {
				out[at].Items = append(out[at].Items, binpack.Share{Item: i, Count: of.Count})
			}
		}
	}
	return out
}
