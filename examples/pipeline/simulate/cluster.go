package simulate

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/drift"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

// Objects are what consolidation reads about a cluster in addition to its snapshot. Each field may
// be left out.
type Objects struct {
	// NodeClaims are the claims of nodes.
	NodeClaims           []nodeclaim.NodeClaim
	PodDisruptionBudgets []*policyv1.PodDisruptionBudget
	// Images are the images in the status of the node class of each pool, by pool name.
	Images map[string][]string
	// Groups are pods that run only together.
	Groups []gang.Group
	// Listed says that the types of the pools come from a list that may be incomplete. A type or
	// zone missing from it is then not drift.
	Listed bool
}

// ObjectsOf returns the objects of manifests.
func ObjectsOf(m *manifests.Snapshot) Objects {
	out := Objects{NodeClaims: m.NodeClaims, PodDisruptionBudgets: m.PodDisruptionBudgets, Images: map[string][]string{}, Listed: true}
	for _, pool := range m.NodePools {
		if c, ok := m.ClassOf(pool); ok {
			if decoded, ok := c.Value.(nodeclass.NodeClass); ok {
				out.Images[pool.Name] = decoded.Status.AMIs
			}
		}
	}
	return out
}

// Cluster is [Objects.Cluster] for the objects of manifests, with the groups of the snapshot's
// pods.
func Cluster(m *manifests.Snapshot, s scheduling.Snapshot, nominated []string, now time.Time) deprovision.Cluster {
	objects := ObjectsOf(m)
	objects.Groups = pipeline.Groups(m, s.Pods)
	return objects.Cluster(s, nominated, now)
}

// Cluster returns the snapshot in the form of package deprovision, with the prices of its market,
// at the given moment. nominated are names of nodes to which pods are about to go. Package drift
// compares nodes with their pools, and the image of a claim with those of its node class. [Drifted]
// adds what the cloud itself reports.
func (o Objects) Cluster(s scheduling.Snapshot, nominated []string, now time.Time) deprovision.Cluster {
	out := deprovision.Cluster{PodDisruptionBudgets: o.PodDisruptionBudgets, Groups: Groups(o.Groups), Now: now}
	pools := map[string]*scheduling.Pool{}
	for i := range s.Pools {
		pools[s.Pools[i].Name] = &s.Pools[i]
		out.Pools = append(out.Pools, s.Pools[i].NodePool)
	}
	pods := map[string][]*corev1.Pod{}
	for _, p := range s.Pods {
		if p.Spec.NodeName != "" {
			pods[p.Spec.NodeName] = append(pods[p.Spec.NodeName], p)
		}
	}
	claims := map[string]*nodeclaim.NodeClaim{}
	for i := range o.NodeClaims {
		if c := &o.NodeClaims[i]; c.NodeName != "" {
			claims[c.NodeName] = c
		}
	}
	waits := map[string]bool{}
	for _, n := range nominated {
		waits[n] = true
	}
	aliases := requirements.KubernetesAliases()
	nodeOf := func(n *corev1.Node) eligibility.Node {
		labels := aliases.Labels(labelsOf(n, claims[n.Name]))
		node := eligibility.Node{
			Node: n, Pods: pods[n.Name], Nominated: waits[n.Name], InstanceType: labels[corev1.LabelInstanceTypeStable],
			Zone: labels[corev1.LabelTopologyZone], CapacityType: labels[instancetypes.LabelCapacityType],
		}
		pool := pools[labels[nodepool.LabelKey]]
		subject := drift.Subject{Labels: labels, Annotations: n.Annotations}
		if c := claims[n.Name]; c != nil {
			node.Claim = claimOf(c)
			if drifted := meta.FindStatusCondition(c.Conditions, nodeclaim.Drifted); drifted != nil && drifted.Status == "True" {
				node.Drifted = append(node.Drifted, "its claim says so: "+drifted.Reason)
				node.DriftedSince = drifted.LastTransitionTime.Time
			}
			subject.Annotations, subject.Image = merged(n.Annotations, c.Metadata.Annotations), c.ImageID
		}
		if pool == nil {
			node.PricePerHour, node.Priced = priceOfOther(s.Pools, node)
			return node
		}
		node.Pool = &pool.NodePool
		node.PricePerHour, node.Priced = priceNow(pool, &node, labels[instancetypes.LabelReservationID])
		subject.Pool, subject.Types, subject.Age = &pool.NodePool, pool.Types, now.Sub(node.Created())
		subject.Images = o.Images[pool.Name]
		unlisted := ""
		if o.Listed {
			if unlisted = unlistedIn(pool.Types, node.InstanceType, node.Zone); unlisted != "" {
				subject.Types = nil
			}
		}
		node.Drifted = append(node.Drifted, drift.Reasons(subject)...)
		node.Undecided = drift.Unknown(subject)
		if unlisted != "" {
			node.Undecided = append(node.Undecided, unlisted)
		}
		return node
	}
	out.Nodes = make([]eligibility.Node, len(s.Nodes))
	var all sync.WaitGroup
	const part = 200 // nodes of one goroutine
	for from := 0; from < len(s.Nodes); from += part {
		all.Go(func() {
			for i := from; i < min(from+part, len(s.Nodes)); i++ {
				out.Nodes[i] = nodeOf(s.Nodes[i])
			}
		})
	}
	all.Wait()
	return out
}

// Drifted returns the cluster with what cloudprovider.Provider.Drifted reports, appended to the
// reasons of each node. The keys of reports are names of nodes. since is when they were seen.
func Drifted(c deprovision.Cluster, reports map[string]cloudprovider.Drift, since time.Time) deprovision.Cluster {
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		d := reports[n.Name()]
		if d.Reason == "" {
			continue
		}
		why := d.Reason
		if d.Detail != "" {
			why += ": " + d.Detail
		}
		n.Drifted = append(slices.Clip(n.Drifted), why)
		if n.DriftedSince.IsZero() {
			n.DriftedSince = since
		}
	}
	return c
}

// Counted returns the cluster with the costs of its nodes in the objective of provisioning.
func Counted(c deprovision.Cluster, o *plan.Objective) deprovision.Cluster {
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.CostPerHour = eligibility.Price(o.Cost(requirements.FromLabels(n.Node.Labels), n.PricePerHour.Dollars()))
	}
	return c
}

func merged(a, b map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

func claimOf(c *nodeclaim.NodeClaim) eligibility.Claim {
	out := eligibility.Claim{
		Created: c.Metadata.CreationTimestamp.Time, LastPodEvent: c.LastPodEvent, Deleting: c.Metadata.DeletionTimestamp != nil,
		ExpireAfter: c.ExpireAfter, TerminationGracePeriod: c.TerminationGracePeriod, Decides: c.APIVersion == nodepool.V1,
	}
	out.Rebooting = c.Is(nodeclaim.Rebooting)
	if i := meta.FindStatusCondition(c.Conditions, nodeclaim.Initialized); i != nil && i.Status == "True" {
		out.Initialized = i.LastTransitionTime.Time
	}
	if i := meta.FindStatusCondition(c.Conditions, nodeclaim.Consolidatable); i != nil {
		yes := i.Status == "True"
		out.Consolidatable = &yes
	}
	return out
}

// labelsOf returns the labels by which a node was bought: those of its claim, which other
// controllers and people do not change, plus labels of the node that the claim does not have.
func labelsOf(n *corev1.Node, c *nodeclaim.NodeClaim) map[string]string {
	out := maps.Clone(n.Labels)
	if c == nil {
		return out
	}
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, c.Requirements.Labels())
	maps.Copy(out, c.Metadata.Labels)
	return out
}

// unlistedIn says that a list of types lacks the type or the zone of a node. It is empty if it has
// both, or if there is no list.
func unlistedIn(types []instancetypes.InstanceType, name, zone string) string {
	if len(types) == 0 || name == "" {
		return ""
	}
	typed, placed := false, zone == ""
	for i := range types {
		typed = typed || types[i].Name == name
		placed = placed || slices.ContainsFunc(types[i].Offerings, func(o instancetypes.Offering) bool {
			return o.Requirements.Get(corev1.LabelTopologyZone).Contains(zone)
		})
	}
	switch {
	case !placed:
		return fmt.Sprintf("it is not known whether type %s is still offered: the catalogue does not have zone %s", name, zone)
	case !typed:
		return fmt.Sprintf("it is not known whether type %s is still offered: the catalogue does not have it", name)
	}
	return ""
}

// priceOfOther returns the present price of a node that no pool bought, from the first pool whose
// cloud has its type. Managed node groups have their capacity type under a key of EKS; other nodes
// pay the list price.
func priceOfOther(pools []scheduling.Pool, n eligibility.Node) (eligibility.Price, bool) {
	if n.CapacityType == "" {
		n.CapacityType = instancetypes.CapacityTypeOnDemand
		if n.Node.Labels["eks.amazonaws.com/capacityType"] == "SPOT" {
			n.CapacityType = instancetypes.CapacityTypeSpot
		}
	}
	for i := range pools {
		if price, ok := priceNow(&pools[i], &n, ""); ok {
			return price, true
		}
	}
	return 0, false
}

// priceNow returns the present price of a node by its type, zone, capacity type and reservation,
// and whether it is known. No label says whether a node came from a stock or is covered by a
// commitment, both of which an offering names as its Commitment. An offering without a name comes
// first: its price is what a node saves that no commitment covers. If there is none, the machines
// are all of a stock, which is paid by the node. An amount of money that is paid in any case has no
// price.
func priceNow(pool *scheduling.Pool, n *eligibility.Node, reserved string) (eligibility.Price, bool) {
	t := typeOf(pool, n.InstanceType)
	if t == nil {
		return 0, false
	}
	var unnamed, stock []float64
	for _, o := range t.Offerings {
		if !o.Requirements.Get(corev1.LabelTopologyZone).Contains(n.Zone) || n.CapacityType != "" && o.CapacityType() != n.CapacityType || o.CommittedPerHour != 0 {
			continue
		}
		if id, ok := o.Requirements.Get(instancetypes.LabelReservationID).Single(); ok && id != reserved {
			continue
		}
		if o.Commitment == "" {
			unnamed = append(unnamed, o.Price)
		} else {
			stock = append(stock, o.Price)
		}
	}
	if len(unnamed) == 0 {
		unnamed = stock
	}
	if len(unnamed) == 0 {
		return 0, false
	}
	return eligibility.Dollars(slices.Min(unnamed)), true
}
