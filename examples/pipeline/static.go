package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Static returns the snapshot with the nodes that its static pools lack. Each is a claim whose node
// will join, so pods go there before anything is bought for them. The notes say what was added. It
// is not known yet which types and zones the cloud will choose. So the cheapest ones that the pool
// allows are used for all.
//
// No node is added that a CapacityQuota forbids; a note names the quota.
//
// A pool with a fixed number of nodes gets them regardless of pods, so they are not part of a
// plan's price.
func Static(s scheduling.Snapshot) (scheduling.Snapshot, []string) {
	var notes []string
	taken := map[string]bool{}
	for _, n := range s.Nodes {
		taken[n.Name] = true
	}
	for i := range s.NodeClaims {
		taken[s.NodeClaims[i].Name] = true
	}
	claims := slices.Clone(s.NodeClaims)
	for i := range s.Pools {
		pool := &s.Pools[i]
		if !pool.IsStatic() {
			continue
		}
		now := population(&s, pool.Name)
		missing := pool.Deficit(now)
		note := func(format string, args ...any) {
			notes = append(notes, fmt.Sprintf("pool %s: ", pool.Name)+fmt.Sprintf(format, args...))
		}
		if surplus := pool.Surplus(now); surplus > 0 {
			note("%d of its nodes exceed its replicas (%d), and will be given back", surplus, *pool.Replicas)
		}
		if held := max(0, *pool.Replicas-now.Staying) - missing; held > 0 && pool.Metadata.DeletionTimestamp == nil {
			note("its limit of nodes keeps nodes from joining: %d of %d", held, *pool.Replicas)
		}
		if missing == 0 {
			continue
		}
		t, offering := cheapest(pool, missing)
		if t == nil {
			note("nodes still to join: %d of %d, but no type on sale meets its requirements, so pods are planned without them", missing, *pool.Replicas)
			continue
		}
		added, most, quota := int64(0), missing, ""
		for number := 0; added < most; number++ {
			name := fmt.Sprintf("%s-%d", pool.Name, number)
			if taken[name] {
				continue
			}
			claim, err := Promised(s.Pools[i:i+1], cloudprovider.NodeClaim{
				Name: name, Pool: pool.Name, Requirements: pool.Requirements, Labels: pool.PoolLabels(), Taints: pool.Taints, StartupTaints: pool.StartupTaints,
				Candidates: []cloudprovider.Candidate{{Type: t.Name, Offering: offering.Requirements}},
			})
			if err != nil { // cheapest has made sure that the labels agree
				note("%v", err)
				break
			}
			if added == 0 { // all are the same
				s.NodeClaims = claims
				if most, quota = WithinQuotas(s, claim, missing); most == 0 {
					break
				}
			}
			taken[name] = true
			claims = append(claims, claim)
			added++
		}
		if most < missing {
			note("quota %q keeps nodes from joining: %d of %d", quota, missing-most, *pool.Replicas)
		}
		if added == 0 {
			continue
		}
		note("nodes still to join: %d of %d; pods are planned on them as %s at $%.4f/h each, which is not part of the plan's price", added, *pool.Replicas, described(t, offering), offering.Price)
	}
	s.NodeClaims = claims
	return s, notes
}

// WithinQuotas returns how many nodes like that of the claim may join the cluster within its
// CapacityQuotas, at most the given number. It also returns the quota that prevents the others, the
// first by name, or an empty string.
func WithinQuotas(s scheduling.Snapshot, claim scheduling.NodeClaim, nodes int64) (int64, string) {
	before := s.Budgets()
	s.NodeClaims = append(slices.Clip(s.NodeClaims), claim)
	quota := ""
	for i, after := range s.Budgets() {
		now := &before[i]
		if one := now.Left - now.Over - after.Left + after.Over; one > 0 && now.Left/one < nodes {
			nodes, quota = now.Left/one, now.Quota
		}
	}
	return nodes, quota
}

// population counts the nodes of a pool and the claims without a node, matched as in package
// scheduling.
func population(s *scheduling.Snapshot, pool string) nodepool.Population {
	var out nodepool.Population
	count := func(labels map[string]string, leaving bool) {
		if cmp.Or(labels[nodepool.LabelKey], labels[nodepool.ProvisionerLabelKey]) != pool {
			return
		}
		if leaving {
			out.Leaving++
		} else {
			out.Staying++
		}
	}
	byName, byID := map[string]*corev1.Node{}, map[string]*corev1.Node{}
	for _, n := range s.Nodes {
		byName[n.Name] = n
		if n.Spec.ProviderID != "" {
			byID[n.Spec.ProviderID] = n
		}
	}
	claimOf := map[*corev1.Node]*scheduling.NodeClaim{}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		n := byID[c.ProviderID]
		if n == nil {
			n = byName[cmp.Or(c.NodeName, c.Name)]
		}
		if n == nil {
			count(c.Labels, c.Deleting || c.Initialized) // its node existed and is gone
			continue
		}
		claimOf[n] = c
	}
	for _, n := range s.Nodes {
		labels, leaving := n.Labels, n.DeletionTimestamp != nil
		if c := claimOf[n]; c != nil {
			leaving = leaving || c.Deleting
			if labels[nodepool.LabelKey] == "" { // it has not registered
				labels = c.Labels
			}
		}
		leaving = leaving || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == "karpenter.sh/disrupted" || t.Key == "karpenter.sh/disruption"
		})
		count(labels, leaving)
	}
	return out
}

// cheapest returns the cheapest type and offering that meet the pool's requirements and have enough
// machines, or nil. Of equal prices it is the first by the name of the type. Reservations
// are used only if there is nothing else, because pods may be planned on them. Labels that no type
// has are the pool's own and exclude no type.
func cheapest(pool *scheduling.Pool, nodes int64) (*instancetypes.InstanceType, *instancetypes.Offering) {
	var known requirements.Keys
	for i := range pool.Types {
		known = known.Union(pool.Types[i].Requirements.Keys())
		for _, o := range pool.Types[i].Offerings {
			known = known.Union(o.Requirements.Keys())
		}
	}
	ask := pool.NodeRequirements()
	open := ask.Without(known).Keys()
	var best *instancetypes.InstanceType
	var at *instancetypes.Offering
	for i := range pool.Types {
		t := &pool.Types[i]
		for k := range t.Offerings {
			o := &t.Offerings[k]
			node, err := t.Requirements.Without(o.Requirements.Keys()).Intersect(o.Requirements)
			switch {
			case err != nil || !o.Available || !ask.Compatible(node, open):
				continue
			case o.Commitment != "" || o.ReservationCount > 0 && int64(o.ReservationCount) < nodes:
				continue
			}
			if at == nil || cmp.Or(cmp.Compare(min(o.ReservationCount, 1), min(at.ReservationCount, 1)), cmp.Compare(o.Price, at.Price), cmp.Compare(t.Name, best.Name)) < 0 {
				best, at = t, o
			}
		}
	}
	return best, at
}

func described(t *instancetypes.InstanceType, o *instancetypes.Offering) string {
	text := t.Name
	if zone, ok := o.Requirements.Get(corev1.LabelTopologyZone).Single(); ok {
		text += " in " + zone
	}
	if capacity := o.CapacityType(); capacity != "" {
		text += ", " + capacity + ","
	}
	return text
}
