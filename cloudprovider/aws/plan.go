package aws

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/launch"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/userdata"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// shapeOf returns the key of claims that are launched together.
func shapeOf(c cloudprovider.NodeClaim) string {
	return record.Shape(c, append(enclaveResources(), ec2.ResourceEFA)...)
}

// offer is a candidate with its data from the catalogue.
type offer struct {
	cand         cloudprovider.Candidate
	text         string // text of the candidate, which breaks ties
	t            instancetypes.InstanceType
	price        float64
	zone, kind   string
	reservation  ec2.Reservation
	image        string
	available    bool
	rank         int // offers of a lower one come first
	subnet       string
	templateName string
}

// check finds the candidates of a claim. The error joins everything that makes the claim invalid.
func (s *resolvedClass) check(c cloudprovider.NodeClaim) ([]offer, error) {
	var errs []error
	out := make([]offer, 0, len(c.Candidates))
	for i, cand := range c.Candidates {
		fault := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("candidates[%d]: %w", i, fmt.Errorf(format, args...)))
		}
		t, ok := s.find(cand.Type)
		if !ok {
			fault("no type %q in the catalogue of node class %q", cand.Type, s.class.Name)
			continue
		}
		j := slices.IndexFunc(t.Offerings, func(o instancetypes.Offering) bool { return o.Requirements.Equal(cand.Offering) })
		if j < 0 {
			fault("%q has no offering %q", cand.Type, cand.Offering)
			continue
		}
		if _, err := cloudprovider.NodeLabels(c, t, cand.Offering); err != nil {
			fault("%w", err)
			continue
		}
		o := offer{cand: cand, text: cand.String(), t: t, price: t.Offerings[j].Price, zone: zoneOf(t.Offerings[j]), kind: t.Offerings[j].CapacityType(), available: t.Offerings[j].Available}
		if wantsEnclave(c.Requests) && !offersEnclave(t.Capacity) {
			fault("%q has no Nitro enclaves, which the claim requests: leave it out of the candidates", cand.Type)
			continue
		}
		if id, ok := cand.Offering.Get(instancetypes.LabelReservationID).Single(); ok {
			k := slices.IndexFunc(s.reserved, func(r ec2.Reservation) bool { return r.ID == id })
			if k < 0 {
				fault("no reservation %q", id)
				continue
			}
			o.reservation = s.reserved[k]
		}
		if image, ok := discovery.ImageFor(s.images, t.Requirements); ok {
			o.image = image.ID
		}
		out = append(out, o)
	}
	if len(errs) > 0 {
		return nil, invalid(errors.Join(errs...))
	}
	return out, nil
}

// inOrder sorts offers in the order in which they are tried. Capacity types come in the order in
// which the claim first names them. An exception is spot offers that cost more than on-demand: they
// come after it. Offers of one rank and market are ordered by price.
func inOrder(offers []offer) []offer {
	rank := map[string]int{} // even numbers, so that there is one between two capacity types
	onDemand := math.Inf(1)
	for _, o := range offers {
		if _, ok := rank[o.kind]; !ok {
			rank[o.kind] = 2 * len(rank)
		}
		if o.kind == instancetypes.CapacityTypeOnDemand {
			onDemand = min(onDemand, o.price)
		}
	}
	sorted := slices.Clone(offers)
	for i := range sorted {
		o := &sorted[i]
		o.rank = rank[o.kind]
		if o.kind == instancetypes.CapacityTypeSpot && o.price > onDemand {
			o.rank = max(o.rank, rank[instancetypes.CapacityTypeOnDemand]+1)
		}
	}
	slices.SortStableFunc(sorted, func(a, b offer) int {
		return cmp.Or(
			cmp.Compare(a.rank, b.rank), cmp.Compare(launch.Market(a.reservation), launch.Market(b.reservation)),
			cmp.Compare(a.price, b.price), strings.Compare(a.text, b.text),
		)
	})
	return sorted
}

// prepared is a fleet with its templates.
type prepared struct {
	kind      string
	market    types.MarketType
	offers    []offer                          // all of this capacity type and market
	templates []*sdk.CreateLaunchTemplateInput // in the order in which they are first used
	configs   []types.FleetLaunchTemplateConfigRequest
	perNode   int64 // minimum number of addresses that a node takes
}

// prepare makes a fleet of the first of some sorted offers: it writes the templates and chooses
// subnets. It also returns the offers that exceed the limits of a fleet, or that must not be in one
// fleet with the first.
func (p *Provider) prepare(s *resolvedClass, c cloudprovider.NodeClaim, offers []offer) (prepared, []offer, error) {
	first := offers[0]
	ready := prepared{kind: first.kind, market: launch.Market(first.reservation), perNode: math.MaxInt64}
	best := p.finder.Addresses().Best(s.subnets)
	at := map[string]int{} // places of templates, by name
	names := map[string]bool{}
	for i, o := range offers {
		names[o.t.Name] = true
		full := len(names) > launch.MostTypes || len(ready.offers) == launch.MostOverrides
		if full || o.rank != first.rank || launch.Market(o.reservation) != ready.market {
			return ready, offers[i:], nil
		}
		in, err := p.template(s, c, o)
		if err != nil {
			return prepared{}, nil, err
		}
		o.templateName, o.subnet = aws.ToString(in.LaunchTemplateName), best[o.zone].ID
		k, ok := at[o.templateName]
		if !ok && len(ready.templates) == launch.MostTemplates {
			return ready, offers[i:], nil
		}
		if !ok {
			k = len(ready.templates)
			at[o.templateName] = k
			ready.templates = append(ready.templates, in)
			ready.configs = append(ready.configs, launch.Config(o.templateName))
		}
		ready.offers = append(ready.offers, o)
		ready.configs[k].Overrides = append(ready.configs[k].Overrides, types.FleetLaunchTemplateOverridesRequest{
			InstanceType: types.InstanceType(o.t.Name), SubnetId: aws.String(o.subnet), AvailabilityZone: aws.String(o.zone),
			Priority: aws.Float64(o.price), // for strategies that follow the caller's order
		})
		ready.perNode = min(ready.perNode, resources.Capacity(corev1.ResourcePods, o.t.Capacity[corev1.ResourcePods])+1)
	}
	return ready, nil, nil
}

// template returns the launch template of an offer.
func (p *Provider) template(s *resolvedClass, c cloudprovider.NodeClaim, o offer) (*sdk.CreateLaunchTemplateInput, error) {
	node := userdata.Node{
		Labels: nodeLabels(c, o.kind), Taints: slices.Concat(c.Taints, c.StartupTaints), Kubelet: s.class.Kubelet, RAID0: s.class.RAID0, Own: s.class.UserData, ImageVersion: discovery.Version(s.class),
	}
	// An image knows this number only for types older than itself. For a newer type it guesses
	// another number than was planned with.
	pods := int32(resources.Capacity(corev1.ResourcePods, o.t.Capacity[corev1.ResourcePods]))
	node.MaxPods = &pods
	text, err := userdata.Render(s.class.Family, s.cluster, node)
	if err != nil {
		return nil, invalid(err)
	}
	spec := launch.Spec{
		Cluster: p.options.Cluster, Class: s.class, Image: o.image, UserData: text, Profile: s.profile, IPv6: s.cluster.IPv6,
		Reservation: o.reservation.ID, Market: launch.Market(o.reservation), PlacementGroup: s.placed.ID, Spot: o.kind == instancetypes.CapacityTypeSpot, LocalZone: localZone(o.zone), Tags: p.tags(s, c),
		TemplateTags: p.userTags(s),
	}
	maps.Copy(spec.TemplateTags, launch.ClusterTags(p.options.Cluster))
	for _, g := range s.groups {
		spec.Groups = append(spec.Groups, g.ID)
	}
	if q, ok := c.Requests[ec2.ResourceEFA]; ok && !q.IsZero() {
		spec.EFA, spec.PlainFirstCard = resources.Capacity(ec2.ResourceEFA, o.t.Capacity[ec2.ResourceEFA]), s.plain[o.t.Name]
	}
	spec.Enclave = wantsEnclave(c.Requests)
	spec.Tenancy, _ = c.Requirements.Get(label.Tenancy).Single()
	if text, ok := c.Requirements.Get(label.PlacementGroupPartition).Single(); ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 || n > int64(s.placed.Partitions) {
			return nil, invalid(fmt.Errorf("requirements: %s %q: placement group %q has partitions 1 to %d", label.PlacementGroupPartition, text, s.placed.Name, s.placed.Partitions))
		}
		spec.Partition = int32(n)
	}
	in, err := launch.Template(spec)
	if err != nil {
		return nil, fmt.Errorf("aws: %w", err)
	}
	return in, nil
}

// nodeLabels returns the labels that a node registers with: those that the claim fixes, and the
// capacity type. The caller adds those that type and offering fix. Otherwise each type would need a
// template of its own.
func nodeLabels(c cloudprovider.NodeClaim, capacityType string) map[string]string {
	out := map[string]string{instancetypes.LabelCapacityType: capacityType}
	known := ec2.WellKnown()
	for r := range c.Requirements.All() {
		if v, ok := r.Any(); ok && !r.AllowsAbsent() && !known.Contains(r.Key()) {
			out[r.Key()] = v
		}
	}
	maps.Copy(out, c.Labels)
	if c.Pool != "" {
		out[nodepool.LabelKey] = c.Pool
	}
	return out
}

// userTags returns the tags of the options and of the class in a new map.
func (p *Provider) userTags(s *resolvedClass) map[string]string {
	out := map[string]string{}
	maps.Copy(out, p.options.Tags)
	maps.Copy(out, s.class.Tags)
	return out
}

// tags returns the tags that all machines of a claim's shape have, readable for people and
// policies.
func (p *Provider) tags(s *resolvedClass, c cloudprovider.NodeClaim) map[string]string {
	out := p.userTags(s)
	maps.Copy(out, launch.ClusterTags(p.options.Cluster))
	out[ClusterTag] = p.options.Cluster // machines are listed by it, also those of earlier versions
	pool, class := tagPool, tagClass
	if p.options.KarpenterTags {
		pool, class = nodepool.LabelKey, label.NodeClass
	}
	if c.Pool != "" {
		out[pool] = c.Pool
	}
	if s.class.Name != "" {
		out[class] = s.class.Name
	}
	return out
}

// Tags that name pool, node class and claim for people. Karpenter treats machines with its own tags
// as its own, and ends those for which it has no NodeClaim. So these tags have other names.
const (
	tagPool  = "joinery/pool"
	tagClass = "joinery/node-class"
	ownClaim = "joinery/claim"
	// karpenterClaim is Karpenter's tag.
	karpenterClaim = "karpenter.sh/nodeclaim"
)

func (o Options) tagClaim() string {
	if o.KarpenterTags {
		return karpenterClaim
	}
	return ownClaim
}

// enclaveResources are the resources by which pods request Nitro enclaves: that of EKS, and that of
// the device plugin that AWS publishes. A machine has one of each if its type supports them and it
// was launched for pods that request one.
func enclaveResources() []corev1.ResourceName {
	return []corev1.ResourceName{"eks.amazonaws.com/nitro-sandbox", "aws.ec2.nitro/nitro_enclaves"}
}

func wantsEnclave(requests corev1.ResourceList) bool {
	return slices.ContainsFunc(enclaveResources(), func(name corev1.ResourceName) bool { q := requests[name]; return q.Sign() > 0 })
}

func offersEnclave(capacity corev1.ResourceList) bool {
	_, ok := capacity[enclaveResources()[0]]
	return ok
}

// withEnclaves lets pods request enclaves on the types that support them. The types are new; the
// old ones do not change.
func withEnclaves(list []instancetypes.InstanceType, offers []catalogue.Offer) []instancetypes.InstanceType {
	able := map[string]bool{}
	for _, o := range offers {
		able[o.Name] = o.NitroEnclaves
	}
	out := slices.Clone(list)
	for i := range out {
		if able[out[i].Name] {
			out[i].Capacity = out[i].Capacity.DeepCopy()
			for _, name := range enclaveResources() {
				out[i].Capacity[name] = *resource.NewQuantity(1, resource.DecimalSI)
			}
		}
	}
	return out
}

// bought returns a type as a machine of it was launched: without enclaves unless it was launched
// with them.
func bought(t instancetypes.InstanceType, enclave bool) instancetypes.InstanceType {
	if enclave || !offersEnclave(t.Capacity) {
		return t
	}
	t.Capacity = t.Capacity.DeepCopy()
	for _, name := range enclaveResources() {
		delete(t.Capacity, name)
	}
	return t
}

// quotaOf returns the quota that EC2 counts an offer towards: vCPUs by families, separately for
// spot. See "Amazon EC2 instance type quotas" and "Spot instance limits" in the User Guide.
func quotaOf(o offer) cloudprovider.Quota {
	category, _ := o.t.Requirements.Get(label.Category).Single()
	generation, _ := o.t.Requirements.Get(label.Generation).Single()
	spot := o.kind == instancetypes.CapacityTypeSpot
	blocks := []requirements.Requirement{requirements.In(instancetypes.LabelCapacityType, o.kind)}
	standard, graphics, older := []string{"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"}, []string{"g", "gr", "vt"}, []string{"2", "3", "4"}
	class, name := []string{category}, strings.ToUpper(category)
	switch {
	case category == "":
		family, _ := o.t.Requirements.Get(label.Family).Single()
		blocks = append(blocks, requirements.In(corev1.LabelInstanceTypeStable, o.t.Name))
		return cloudprovider.Quota{Name: family + " " + o.kind + " vCPUs", Blocks: requirements.MustOf(blocks...)}
	case slices.Contains(standard, category):
		class, name = standard, "Standard (A, C, D, H, I, M, R, T, Z)"
	case slices.Contains(graphics, category):
		class, name = graphics, "G and VT"
	case category == "p" && spot && slices.Contains(older, generation):
		name, blocks = "P4, P3 and P2", append(blocks, requirements.In(label.Generation, older...))
	case category == "p" && spot:
		name, blocks = "P"+generation, append(blocks, requirements.In(label.Generation, generation))
	}
	text := "Running On-Demand " + name + " instances"
	if spot {
		text = "All " + name + " Spot Instance Requests"
	}
	return cloudprovider.Quota{Name: text, Blocks: requirements.MustOf(append(blocks, requirements.In(label.Category, class...))...)}
}

// spreadQuota is the limit of machines of a spread placement group in a zone.
func spreadQuota(o offer) cloudprovider.Quota {
	group, _ := o.t.Requirements.Get(label.PlacementGroupID).Single()
	blocks := []requirements.Requirement{requirements.In(corev1.LabelTopologyZone, o.zone), requirements.In(label.PlacementGroupID, group)}
	return cloudprovider.Quota{Name: "machines of placement group " + group + " in " + o.zone, Blocks: requirements.MustOf(blocks...)}
}

// ClusterTag is the tag "eks:eks-cluster-name" on machines and what belongs to them. Its value is
// the cluster.
const ClusterTag = launch.ClusterTag
