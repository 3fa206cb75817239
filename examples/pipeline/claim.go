package pipeline

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Claim returns the claim with which a provider is asked for a planned node. Its candidates are the
// planned offering and then every alternative that would hold the same pods, cheapest first. It has
// every label that the plan relies on and the cloud would not know. The token must never have been
// used before. Record the claim before it is passed to Create, so that the call can be repeated if
// the reply is lost.
func Claim(n *plan.NewNode, token string) cloudprovider.NodeClaim {
	candidates := []cloudprovider.Candidate{{Type: n.InstanceType.Name, Offering: n.Offering.Requirements}}
	for _, a := range n.Alternatives {
		candidates = append(candidates, cloudprovider.Candidate{Type: a.InstanceType, Offering: a.Offering})
	}
	return cloudprovider.NodeClaim{
		Name: n.Name, Token: token, Pool: n.Pool.Name, NodeClass: n.Pool.NodeClass,
		Requirements: n.Open, Requests: resources.Add(n.Requests, n.DaemonRequests),
		Candidates: candidates, Labels: n.Pool.PoolLabels(), Taints: n.Pool.Taints, StartupTaints: n.Pool.StartupTaints,
	}
}

// Promised returns what planning has to know about a claim whose launch has no answer yet: the node
// that its first candidate would be. The error says that the pool no longer has that type, or that
// the claim's labels contradict it.
func Promised(pools []scheduling.Pool, c cloudprovider.NodeClaim) (scheduling.NodeClaim, error) {
	for i := range pools {
		for k := range pools[i].Types {
			if t := &pools[i].Types[k]; pools[i].Name == c.Pool && t.Name == c.Candidates[0].Type {
				labels, err := cloudprovider.NodeLabels(c, *t, c.Candidates[0].Offering)
				return scheduling.NodeClaim{
					Name: c.Name, Labels: labels, Taints: slices.Clone(c.Taints), StartupTaints: slices.Clone(c.StartupTaints),
					Capacity: t.Capacity.DeepCopy(), Allocatable: t.Allocatable(),
				}, err
			}
		}
	}
	return scheduling.NodeClaim{}, fmt.Errorf("pipeline: claim %q: pool %q has no instance type %q any more", c.Name, c.Pool, c.Candidates[0].Type)
}

// InFlight returns what planning has to know about an instance that a claim has led to. Use it from
// the moment that Create has returned the instance until its node is initialized. It counts against
// its pool until the instance is gone. Set Initialized once the node is ready with everything that
// it promises.
func InFlight(c cloudprovider.NodeClaim, i cloudprovider.Instance) scheduling.NodeClaim {
	i = i.Clone()
	labels := map[string]string{}
	if i.Pool != "" {
		labels[nodepool.LabelKey] = i.Pool
	}
	maps.Copy(labels, i.Labels)
	return scheduling.NodeClaim{
		Name: i.Claim, ProviderID: i.ID, Labels: labels, Taints: slices.Clone(c.Taints), StartupTaints: slices.Clone(c.StartupTaints),
		Capacity: i.Capacity, Allocatable: i.Allocatable, Deleting: i.State == cloudprovider.Terminating,
	}
}
