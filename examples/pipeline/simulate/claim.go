package simulate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Claim is a node that a command buys as a provider is asked for it: the planned offering first, then the alternatives in the same
// zone and capacity type, cheapest first. The token must never have been used before; write the claim down before it is handed to
// Create. The error says that the snapshot has no such pool, or nobody offers the node.
func Claim(s scheduling.Snapshot, n *deprovision.NewNode, token string) (cloudprovider.NodeClaim, error) {
	for i := range s.Pools {
		pool := &s.Pools[i]
		if pool.Name != n.Pool {
			continue
		}
		out := cloudprovider.NodeClaim{
			Name: n.Name, Token: token, Pool: pool.Name, NodeClass: pool.NodeClass, Requirements: requirements.FromLabels(pool.Labels),
			Labels: pool.PoolLabels(), Taints: pool.Taints, StartupTaints: pool.StartupTaints,
		}
		for _, list := range [][]*corev1.Pod{n.Pods, n.Daemons} {
			for _, p := range list {
				out.Requests = resources.Add(out.Requests, resources.OfPod(p, false))
			}
		}
		names := []string{n.InstanceType}
		for _, a := range n.Alternatives {
			names = append(names, a.InstanceType)
		}
		for _, name := range names {
			if offering, ok := offered(pool, name, n.Zone, n.CapacityType); ok {
				out.Candidates = append(out.Candidates, cloudprovider.Candidate{Type: name, Offering: offering})
			}
		}
		if len(out.Candidates) == 0 || out.Candidates[0].Type != n.InstanceType {
			return out, fmt.Errorf("simulate: pool %q has no offering of %s in %s as %s; the snapshot is another than that of the plan", n.Pool, n.InstanceType, n.Zone, n.CapacityType)
		}
		return out, nil
	}
	return cloudprovider.NodeClaim{}, fmt.Errorf("simulate: node %s is of pool %q, which the snapshot does not have", n.Name, n.Pool)
}

// offered is the cheapest offering of a type in a zone and capacity type.
func offered(pool *scheduling.Pool, name, zone, capacityType string) (out requirements.Set, ok bool) {
	best := 0.0
	for i := range pool.Types {
		if pool.Types[i].Name != name {
			continue
		}
		for _, o := range pool.Types[i].Offerings {
			if o.Available && o.CapacityType() == capacityType && o.Requirements.Get(corev1.LabelTopologyZone).Contains(zone) && (!ok || o.Price < best) {
				out, best, ok = o.Requirements, o.Price, true
			}
		}
	}
	return out, ok
}
