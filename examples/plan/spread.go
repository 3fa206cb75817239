package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Spread limits how many pods are lost at once when a cloud takes back a spot pool: the spot
// capacity of an instance type in a zone. Running pods count too. One pod is always allowed.
// kube-scheduler does not know this limit, so it holds only for the plan. The zero value limits
// nothing.
type Spread struct {
	// Workload limits the fraction of the pods of each workload that one spot pool may hold. Plan
	// limits it for all pods together. They are at most 1; 0 means no limit.
	Workload, Plan float64
}

// Scheduling returns the options that a snapshot must be compiled with for the objective. If Spread
// has a limit, it replaces [scheduling.Options.Apart], so new nodes stay as packed. If Spread
// limits each workload, each workload has classes of its own. nil means defaults.
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

// spotPool returns the name of the spot pool of a node with these labels, or an empty string if it
// is not spot.
func spotPool(labels requirements.Set) string {
	if capacityType, _ := labels.Get(instancetypes.LabelCapacityType).Single(); capacityType != instancetypes.CapacityTypeSpot {
		return ""
	}
	typ, _ := labels.Get(corev1.LabelInstanceTypeStable).Single()
	zone, _ := labels.Get(corev1.LabelTopologyZone).Single()
	return typ + " in " + zone
}

// spreading is a Spread applied to the pods of a problem.
type spreading struct {
	nodes []string // the spot pool of each existing node
	of    [][]int  // the limits that each class counts for
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

// poolOf returns the spot pool of an existing node.
func (s *spreading) poolOf(node int) string {
	if s == nil {
		return ""
	}
	return s.nodes[node]
}

// limits returns the limits for the items of a round.
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
