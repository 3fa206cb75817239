package simulate

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Claim returns the claim for a node that a command buys. Its candidates are the planned offering
// and the alternatives in the same zone and capacity type, cheapest first. If the pool has no
// minValues, an alternative that counts more against its limits or a CapacityQuota is left out, so
// that later plans find the limits as planned. The claim has every label that the plan needs and the
// cloud does not set.
//
// The token must be new. Store the claim before Create is called with it. The error says that the
// snapshot has no such pool or no such offering.
func Claim(s scheduling.Snapshot, n *giveback.NewNode, token string) (cloudprovider.NodeClaim, error) {
	pool := poolOf(&s, n.Pool)
	if pool == nil {
		return cloudprovider.NodeClaim{}, fmt.Errorf("simulate: node %s is of pool %q, which the snapshot does not have", n.Name, n.Pool)
	}
	out := cloudprovider.NodeClaim{
		Name: n.Name, Token: token, Pool: pool.Name, NodeClass: pool.NodeClass,
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
	open := maps.Clone(n.Labels)
	delete(open, corev1.LabelHostname)
	delete(open, nodepool.ProvisionerLabelKey)
	var planned corev1.ResourceList
	var charged []int64
	for _, name := range names {
		t, offering, ok := offered(pool, name, n.Zone, n.CapacityType)
		if !ok {
			continue
		}
		counted := charges(&s, pool, t, offering)
		if planned != nil && len(pool.MinValues) == 0 && (exceeds(pool.Limits, t.Capacity, planned) || more(counted, charged)) {
			continue
		}
		if planned == nil {
			planned, charged = t.Capacity, counted
		}
		out.Candidates = append(out.Candidates, cloudprovider.Candidate{Type: name, Offering: offering})
		for _, known := range []requirements.Set{t.Requirements, offering} {
			for r := range known.All() {
				delete(open, r.Key())
			}
		}
	}
	out.Requirements = requirements.FromLabels(open)
	if len(out.Candidates) == 0 || out.Candidates[0].Type != n.InstanceType {
		return out, fmt.Errorf("simulate: pool %q has no offering of %s in %s as %s; the plan belongs to another snapshot", n.Pool, n.InstanceType, n.Zone, n.CapacityType)
	}
	return out, nil
}

// exceeds reports whether a node counts more against the limits than another one.
func exceeds(limits, capacity, other corev1.ResourceList) bool {
	for name := range limits {
		if a, b := capacity[name], other[name]; a.Cmp(b) > 0 {
			return true
		}
	}
	return false
}

// charges returns what a node may count towards each limit of each CapacityQuota.
func charges(s *scheduling.Snapshot, pool *scheduling.Pool, t *instancetypes.InstanceType, offering requirements.Set) []int64 {
	var out []int64
	for i := range s.Quotas {
		q := &s.Quotas[i]
		node, err := pool.NodeRequirements().Intersect(t.Requirements)
		if err == nil {
			node, err = node.Intersect(offering)
		}
		may := err == nil && q.May(requirements.AgentAliases().Both(node))
		for _, name := range resources.Names(q.Limits) {
			amount := int64(0)
			if may {
				amount = capacityquota.Amount(name, t.Capacity)
			}
			out = append(out, amount)
		}
	}
	return out
}

// more reports whether some amount of a is greater than that of b. A nil b is zero.
func more(a, b []int64) bool {
	for i := range a {
		if a[i] > 0 && (b == nil || a[i] > b[i]) {
			return true
		}
	}
	return false
}

// offered returns a type and its cheapest offering in a zone and capacity type.
func offered(pool *scheduling.Pool, name, zone, capacityType string) (t *instancetypes.InstanceType, out requirements.Set, ok bool) {
	if t = typeOf(pool, name); t == nil {
		return nil, out, false
	}
	best := 0.0
	for _, o := range t.Offerings {
		if o.Available && o.CapacityType() == capacityType && o.Requirements.Get(corev1.LabelTopologyZone).Contains(zone) && (!ok || o.Price < best) {
			out, best, ok = o.Requirements, o.Price, true
		}
	}
	return t, out, ok
}
