package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Sale is what could be bought during a history: what its pools sell, and what existed although no
// pool sells it. Examples are nodes of managed node groups or of pools that have changed since. It
// is immutable.
type Sale struct {
	// Snapshot is the cluster without its nodes and pods.
	Snapshot scheduling.Snapshot
	// Notes are remarks on pools and prices.
	Notes []string

	group map[sighting]string // the pool that was made for the node
}

// sighting is a machine and the type that it was seen as. Names are used again, and a label may be
// set late.
type sighting struct {
	name, uid, typ string
	created        int64
}

func sightingOf(n *corev1.Node) sighting {
	return sighting{n.Name, string(n.UID), n.Labels[corev1.LabelInstanceTypeStable], n.CreationTimestamp.Unix()}
}

// Sale combines the pools with what a market offers them. For nodes that no pool sells, Sale adds a
// pool, one for each group of such nodes (for example a managed node group). That pool has the
// types, zones and capacity types that were seen in the group, and the labels and taints that all
// nodes of the group had. If a node was larger than its type in the catalogue, the type is
// enlarged. So every node of a known type has a price, and all that the cluster bought is for sale.
func (h *History) Sale(market *pipeline.Market) (*Sale, error) {
	m := *h.Cluster
	m.Pods, m.Workloads, m.Nodes, m.NodeClaims = nil, nil, nil, nil
	m.Defaults.Constraints = nil // no pods are left that could get them
	s, notes, err := pipeline.Snapshot(&m, market)
	if err != nil {
		return nil, err
	}
	everything := manifests.Snapshot{NodePools: []nodepool.NodePool{{Name: "any", APIVersion: nodepool.V1, Kind: "NodePool"}}}
	whole, _, err := market.Pools(&everything)
	if err != nil {
		return nil, err
	}
	out := &Sale{Snapshot: s, Notes: notes, group: map[sighting]string{}}
	s.Pools = slices.Clone(s.Pools)
	names, seen := map[string]bool{}, map[sighting]bool{}
	for i := range s.Pools {
		names[s.Pools[i].Name] = true
	}
	groups := map[string]*group{}
	aliases := requirements.KubernetesAliases()
	for _, o := range h.Observations {
		for _, n := range o.Nodes {
			key := sightingOf(n)
			if seen[key] {
				continue
			}
			seen[key] = true
			labels := bought(aliases.Labels(n.Labels))
			if i := slices.IndexFunc(s.Pools, func(p scheduling.Pool) bool { return p.Name == labels[nodepool.LabelKey] }); i >= 0 && sells(&s.Pools[i], labels) {
				s.Pools[i].Types = atLeast(s.Pools[i].Types, labels[corev1.LabelInstanceTypeStable], n.Status.Allocatable)
				continue
			}
			t := slices.IndexFunc(whole[0].Types, func(t instancetypes.InstanceType) bool { return t.Name == labels[corev1.LabelInstanceTypeStable] })
			if t < 0 {
				continue // it has no price
			}
			name := groupOf(labels)
			if names[name] {
				name += " (as observed)"
			}
			g := groups[name]
			if g == nil {
				g = &group{labels: labels, taints: lasting(n.Spec.Taints), types: map[string]instancetypes.InstanceType{}, sold: map[string]bool{}}
				groups[name] = g
			}
			g.add(&whole[0].Types[t], labels, lasting(n.Spec.Taints), n.Status.Allocatable)
			out.group[key] = name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		pool := groups[name].pool(name)
		s.Pools = append(s.Pools, pool)
		out.Notes = append(out.Notes, fmt.Sprintf("nodes that no pool sells count as bought from a pool of their own, %q, with the types that were seen there: %s", name, typesOf(&pool)))
	}
	for i := range s.Pools { // a type that no pool can use only costs time
		asked := s.Pools[i].NodeRequirements()
		s.Pools[i].Types = slices.DeleteFunc(slices.Clone(s.Pools[i].Types), func(t instancetypes.InstanceType) bool { return !t.Requirements.Overlaps(asked) })
	}
	out.Snapshot = s
	return out, nil
}

// typesOf names at most three types.
func typesOf(p *scheduling.Pool) string {
	const most = 3
	var names []string
	for i := range p.Types[:min(most, len(p.Types))] {
		names = append(names, p.Types[i].Name)
	}
	if n := len(p.Types) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// Nodes returns the nodes as ready nodes of the sale's pools, with their prices. The last result is
// false for a node whose price is unknown.
func (s *Sale) Nodes(nodes []*corev1.Node) ([]*corev1.Node, []deprovision.Price, []bool) {
	out := make([]*corev1.Node, len(nodes))
	prices, known := make([]deprovision.Price, len(nodes)), make([]bool, len(nodes))
	aliases := requirements.KubernetesAliases()
	for i, n := range nodes {
		c := *n
		c.Labels = bought(aliases.Labels(n.Labels))
		if g := s.group[sightingOf(n)]; g != "" {
			c.Labels[nodepool.LabelKey] = g
		}
		c.Labels["karpenter.sh/registered"], c.Labels["karpenter.sh/initialized"] = "true", "true"
		c.Labels[corev1.LabelHostname] = cmp.Or(c.Labels[corev1.LabelHostname], n.Name)
		c.Spec.Taints = lasting(n.Spec.Taints)
		out[i] = &c
	}
	at := s.Snapshot
	at.Nodes = out
	cluster := simulate.Objects{Listed: true}.Cluster(at, nil, time.Time{})
	for i := range cluster.Nodes {
		prices[i], known[i] = cluster.Nodes[i].PricePerHour, cluster.Nodes[i].Priced
	}
	return out, prices, known
}

// bought returns the labels with the capacity type under Karpenter's key. EKS uses another key for
// its managed node groups.
func bought(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	if out[instancetypes.LabelCapacityType] == "" {
		out[instancetypes.LabelCapacityType] = instancetypes.CapacityTypeOnDemand
		if out["eks.amazonaws.com/capacityType"] == "SPOT" {
			out[instancetypes.LabelCapacityType] = instancetypes.CapacityTypeSpot
		}
	}
	return out
}

// groupOf names the group of a node, by its pool or by the labels of tools that create node groups.
func groupOf(labels map[string]string) string {
	for _, key := range []string{nodepool.LabelKey, nodepool.ProvisionerLabelKey, "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "kops.k8s.io/instancegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool"} {
		if labels[key] != "" {
			return labels[key]
		}
	}
	return "no-pool"
}

// sells reports whether a pool sells the type, zone and capacity type of the labels.
func sells(p *scheduling.Pool, labels map[string]string) bool {
	asked := p.NodeRequirements()
	for i := range p.Types {
		t := &p.Types[i]
		if t.Name != labels[corev1.LabelInstanceTypeStable] {
			continue
		}
		return t.Requirements.Overlaps(asked) && slices.ContainsFunc(t.Offerings, func(o instancetypes.Offering) bool {
			return o.Available && o.Requirements.Overlaps(asked) && offers(&o, labels)
		})
	}
	return false
}

func offers(o *instancetypes.Offering, labels map[string]string) bool {
	return o.Requirements.Get(corev1.LabelTopologyZone).Contains(labels[corev1.LabelTopologyZone]) && o.CapacityType() == labels[instancetypes.LabelCapacityType]
}

// atLeast returns the types with one of them at least as large as a node of it was, because what
// ran on the node must fit the type.
func atLeast(types []instancetypes.InstanceType, name string, allocatable corev1.ResourceList) []instancetypes.InstanceType {
	i := slices.IndexFunc(types, func(t instancetypes.InstanceType) bool { return t.Name == name })
	larger, changed := enlarged(types[i], allocatable)
	if !changed {
		return types
	}
	out := slices.Clone(types)
	out[i] = larger
	return out
}

func enlarged(t instancetypes.InstanceType, allocatable corev1.ResourceList) (instancetypes.InstanceType, bool) {
	known, changed := t.Allocatable(), false
	for name, q := range allocatable {
		have, seen := resources.Capacity(name, known[name]), resources.Capacity(name, q)
		if seen <= have {
			continue
		}
		if !changed {
			t.Capacity = maps.Clone(t.Capacity)
		}
		changed = true
		t.Capacity[name] = resources.Quantity(name, resources.Capacity(name, t.Capacity[name])+seen-have)
	}
	return t, changed
}

// lasting returns the taints without those that follow the state of a node.
func lasting(taints []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		if !strings.HasPrefix(t.Key, "node.kubernetes.io/") && !strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/") && !strings.HasPrefix(t.Key, "karpenter.sh/") &&
			t.Key != "ToBeDeletedByClusterAutoscaler" && t.Key != "DeletionCandidateOfClusterAutoscaler" {
			out = append(out, t)
		}
	}
	return out
}

// group is a set of nodes that another autoscaler or a person buys.
type group struct {
	labels map[string]string // labels that all of them have
	taints []corev1.Taint
	types  map[string]instancetypes.InstanceType
	sold   map[string]bool // type, zone and capacity type
}

func (g *group) add(t *instancetypes.InstanceType, labels map[string]string, taints []corev1.Taint, allocatable corev1.ResourceList) {
	common := map[string]string{}
	for key, value := range g.labels {
		if labels[key] == value {
			common[key] = value
		}
	}
	g.labels = common
	g.taints = slices.DeleteFunc(slices.Clone(g.taints), func(a corev1.Taint) bool {
		return !slices.ContainsFunc(taints, func(b corev1.Taint) bool { return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect })
	})
	known, ok := g.types[t.Name]
	if !ok {
		known = *t
	}
	g.types[t.Name], _ = enlarged(known, allocatable)
	for i := range t.Offerings {
		if offers(&t.Offerings[i], labels) {
			g.sold[fmt.Sprintf("%s %d", t.Name, i)] = true
		}
	}
}

// pool returns a pool that sells what the group had. Its empty and underused nodes may be given
// back after ten minutes, as by cluster-autoscaler.
func (g *group) pool(name string) scheduling.Pool {
	wait := 10 * time.Minute
	out := scheduling.Pool{NodePool: nodepool.NodePool{
		Name: name, APIVersion: nodepool.V1, Kind: "NodePool", Taints: g.taints, Labels: map[string]string{},
		Disruption: nodepool.Disruption{Policy: nodepool.WhenEmptyOrUnderutilized, ConsolidateAfter: &wait},
	}}
	maps.Copy(out.Labels, g.labels)
	for _, key := range []string{corev1.LabelHostname, nodepool.LabelKey, nodepool.ProvisionerLabelKey, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, instancetypes.LabelCapacityType, corev1.LabelInstanceTypeStable} {
		delete(out.Labels, key)
	}
	for _, typeName := range slices.Sorted(maps.Keys(g.types)) {
		t := g.types[typeName]
		var offerings []instancetypes.Offering
		for i, o := range t.Offerings {
			if g.sold[fmt.Sprintf("%s %d", t.Name, i)] {
				o.Available = true
				offerings = append(offerings, o)
				for r := range o.Requirements.All() {
					delete(out.Labels, r.Key())
				}
			}
		}
		for r := range t.Requirements.All() {
			delete(out.Labels, r.Key())
		}
		t.Offerings = offerings
		out.Types = append(out.Types, t)
	}
	ofCloud := ofDomains(out.Labels, out.Types)
	for i := range out.Types {
		if both, err := out.Types[i].Requirements.Intersect(requirements.FromLabels(ofCloud)); err == nil { // no type has any of these keys
			out.Types[i].Requirements = both
		}
	}
	maps.DeleteFunc(out.Labels, func(key, _ string) bool { return ofCloud[key] != "" })
	return out
}

// ofDomains returns the labels whose domains are also domains of labels of types. Only a cloud sets
// these, so they belong to the types and not to the pool.
func ofDomains(labels map[string]string, types []instancetypes.InstanceType) map[string]string {
	domains := map[string]bool{}
	for i := range types {
		for r := range types[i].Requirements.All() {
			if domain, _, found := strings.Cut(r.Key(), "/"); found {
				domains[domain] = true
			}
		}
	}
	out := map[string]string{}
	for key, value := range labels {
		if domain, _, _ := strings.Cut(key, "/"); domains[domain] && value != "" {
			out[key] = value
		}
	}
	return out
}
