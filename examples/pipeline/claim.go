package pipeline

import (
	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// Claim is the node as a provider is asked for it: the planned offering first, then every alternative that would hold the
// same pods, cheapest first. The token must never have been used before; write the claim down before it is handed to
// Create, so that a reply that gets lost can be asked for again.
func (n *NewNode) Claim(token string) cloudprovider.NodeClaim {
	candidates := []cloudprovider.Candidate{{Type: n.InstanceType.Name, Offering: n.offering}}
	for _, a := range n.Alternatives {
		candidates = append(candidates, cloudprovider.Candidate{Type: a.InstanceType, Offering: a.offering})
	}
	return cloudprovider.NodeClaim{
		Name: n.Name, Token: token, Pool: n.Pool.Name, NodeClass: n.Pool.NodeClass,
		Requirements: requirements.FromLabels(n.Pool.Labels), Requests: resources.Add(n.Requests(), n.DaemonRequests),
		Candidates: candidates, Labels: n.Pool.PoolLabels(), Taints: n.Pool.Taints, StartupTaints: n.Pool.StartupTaints,
	}
}
