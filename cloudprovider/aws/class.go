package aws

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/market"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/memory"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/profile"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
)

// How old types and prices may become. Maintain renews them at half that age. Without Maintain the
// first later caller waits for them. Types change a few times a month, list prices seldom, and spot
// prices a few times a day.
const (
	typesTTL = 24 * time.Hour
	priceTTL = 2 * time.Hour
)

// resolvedClass is the result of resolving a node class: what can be bought, and what machines are
// launched with. It is shared and never changes.
type resolvedClass struct {
	class    nodeclass.NodeClass
	settings ec2.Settings
	cluster  discovery.Cluster
	subnets  []discovery.Subnet
	groups   []discovery.Group
	images   []discovery.Image
	placed   discovery.Placement
	reserved []ec2.Reservation
	profile  string
	shifted  []string // zones with a zonal shift
	ordered  bool     // prices were adjusted, so fleets use their order
	types    []instancetypes.InstanceType
	byName   map[string]int
	plain    map[string]bool // types whose first network card has no EFA although others have
}

func (s *resolvedClass) find(name string) (instancetypes.InstanceType, bool) {
	i, ok := s.byName[name]
	if !ok {
		return instancetypes.InstanceType{}, false
	}
	return s.types[i], true
}

// resolvedClass resolves a node class for a pool. The error reports everything that is missing at
// once.
func (p *Provider) resolvedClass(ctx context.Context, name, pool string) (*resolvedClass, error) {
	class, err := p.options.Classes.NodeClass(ctx, name)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(class)
	if err != nil {
		return nil, fmt.Errorf("aws: %w", err)
	}
	shifted, _, err := p.shiftedZones(ctx)
	if err != nil {
		return nil, err
	}
	key := string(text) + strings.Join(shifted, " ")
	common := func(ctx context.Context) (*resolvedClass, error) {
		return p.resolved.Get(ctx, key, func(ctx context.Context) (*resolvedClass, error) { return p.resolve(ctx, class, shifted) })
	}
	if p.options.Adjust == nil {
		return common(ctx)
	}
	return p.resolved.Get(ctx, key+"\n"+pool, func(ctx context.Context) (*resolvedClass, error) {
		s, err := common(ctx)
		if err != nil {
			return nil, err
		}
		adjusted := *s
		types := p.options.Adjust(pool, instancetypes.Clone(s.types))
		adjusted.ordered = !samePrices(s.types, types)
		adjusted.offer(types)
		return &adjusted, nil
	})
}

// offer sets the types, of which none is sold in a shifted zone.
func (s *resolvedClass) offer(types []instancetypes.InstanceType) {
	s.types, s.byName = withhold(types, corev1.LabelTopologyZone, s.shifted), make(map[string]int, len(types))
	for i, t := range s.types {
		s.byName[t.Name] = i
	}
}

// shiftedZones returns the names of the zones that are shifted away, and of the account's other
// zones. Both are nil unless there is a zonal shift. ARC reports zone ids, and each account has its
// own names for them. The account's own subnets give these names.
func (p *Provider) shiftedZones(ctx context.Context) (shifted, others []string, err error) {
	if !p.options.ZonalShift {
		return nil, nil, nil
	}
	cluster, err := p.cluster(ctx)
	if err != nil {
		return nil, nil, err
	}
	away, err := p.finder.Shifted(ctx, cluster.ARN)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	p.notes.set("shifts", note("zonal shifts could not be read; all zones are used", err))
	if len(away) == 0 {
		return nil, nil, nil
	}
	zones, err := p.finder.Zones(ctx)
	for _, name := range sortedKeys(zones) {
		if slices.Contains(away, name) || slices.Contains(away, zones[name]) {
			shifted = append(shifted, name)
		} else {
			others = append(others, name)
		}
	}
	return shifted, others, err
}

// shiftedAway reports whether the zone of a machine has a zonal shift in progress.
func (p *Provider) shiftedAway(ctx context.Context, id string) (bool, error) {
	shifted, _, err := p.shiftedZones(ctx)
	return slices.Contains(shifted, memory.Zone(id)), err
}

// checkZone fails for a machine in a zone that is shifted away. Such a machine is not touched until
// the shift has ended.
func (p *Provider) checkZone(ctx context.Context, id string) error {
	away, err := p.shiftedAway(ctx, id)
	if err != nil || !away {
		return err
	}
	return &cloudprovider.Error{
		Code: cloudprovider.ErrNotReady, RetryAfter: 30 * time.Second, Err: fmt.Errorf("zone %q is shifted away: its machines are not touched until the shift has ended", memory.Zone(id)),
	}
}

func (p *Provider) resolve(ctx context.Context, class nodeclass.NodeClass, shifted []string) (*resolvedClass, error) {
	s := &resolvedClass{class: class, shifted: shifted, plain: map[string]bool{}}
	if class.LaunchTemplate != "" {
		return nil, invalid(fmt.Errorf("node class %q: launchTemplate %q: machines are launched only from templates that "+
			"the provider writes: put what it says into the class's own fields", class.Name, class.LaunchTemplate))
	}
	var err error
	if s.settings, err = p.options.settings(class); err != nil {
		return nil, invalid(err)
	}
	s.settings.VMMemory = ec2.LearnedVMMemory(p.Learned(), s.settings.VMMemory)
	if s.subnets, err = p.finder.Subnets(ctx, class.Subnets); err != nil {
		return nil, err
	}
	if s.groups, err = p.finder.Groups(ctx, class.SecurityGroups); err != nil {
		return nil, err
	}
	var ofCluster []string
	for _, g := range s.groups {
		if g.OfCluster {
			ofCluster = append(ofCluster, cmp.Or(g.Name, g.ID))
		}
	}
	if len(ofCluster) < 2 {
		ofCluster = nil
	}
	p.notes.name("groups "+class.Name, "the AWS load balancer controller wants exactly one security group with a "+
		"kubernetes.io/cluster tag on a node; select by another tag", ofCluster)
	if s.cluster, err = p.cluster(ctx); err != nil {
		return nil, err
	}
	if s.images, err = p.finder.Images(ctx, class, s.cluster.Version); err != nil {
		return nil, err
	}
	missing := func(what string, found int) error {
		if found > 0 {
			return nil
		}
		return fmt.Errorf("node class %q: no %s matches its selector", class.Name, what)
	}
	if err = errors.Join(
		missing("subnet", len(s.subnets)), missing("security group", len(s.groups)), missing("image", len(s.images)),
	); err != nil {
		return nil, &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Err: err}
	}
	if class.PlacementGroup != nil {
		if s.placed, err = p.finder.PlacementGroup(ctx, *class.PlacementGroup); err != nil {
			return nil, err
		}
	}
	if s.reserved, err = p.finder.Reservations(ctx, class.CapacityReservations); err != nil {
		return nil, err
	}
	s.profile = p.profile(class)
	return s, p.fill(ctx, s)
}

func invalid(err error) error {
	return &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Err: err}
}

// cluster returns the cluster of the options, or else EKS's answer.
func (p *Provider) cluster(ctx context.Context) (discovery.Cluster, error) {
	if p.options.Known != nil {
		return *p.options.Known, nil
	}
	return p.finder.Cluster(ctx, p.options.Cluster)
}

// profile returns the name of the instance profile: the class's own, that of its role, or that of
// the options.
func (p *Provider) profile(class nodeclass.NodeClass) string {
	switch {
	case class.InstanceProfile != "":
		return class.InstanceProfile
	case class.Role != "":
		return profile.Name(p.clients.Region, p.options.Cluster, class.Role)
	default:
		return p.options.InstanceProfile
	}
}

// ensureProfile creates the profile of the class's role before something is launched with it.
func (p *Provider) ensureProfile(ctx context.Context, s *resolvedClass) error {
	role := s.class.Role
	if role == "" || s.class.InstanceProfile != "" {
		return nil
	}
	_, err := p.profiles.Get(ctx, role, func(ctx context.Context) (string, error) {
		name, made, err := profile.Ensure(ctx, p.clients, p.options.Cluster, role)
		p.ownProfiles.note(name, made)
		return name, err
	})
	p.ownProfiles.note(s.profile, false)
	return err
}

// fill finds the types for the class's zones, images and reservations, at current prices.
func (p *Provider) fill(ctx context.Context, s *resolvedClass) error {
	region, err := p.region(ctx)
	if err != nil {
		return err
	}
	within := market.Within(region.Region, zones(s.subnets))
	if s.class.NestedVirtualization == "enabled" && region.Nested != nil {
		within.Offers = slices.DeleteFunc(within.Offers, func(o catalogue.Offer) bool { return !region.Nested[o.Name] })
	}
	for _, o := range within.Offers {
		s.plain[o.Name] = o.EFAInterfaces > 0 && o.NetworkCards > o.EFAInterfaces
	}
	var unserved, local []string // zones
	for _, zone := range sortedKeys(zones(s.subnets)) {
		served := slices.ContainsFunc(within.Zones, func(z catalogue.Zone) bool { return z.Name == zone })
		if !served {
			unserved = append(unserved, zone)
		} else if localZone(zone) {
			local = append(local, zone)
		}
	}
	p.notes.name("zones "+s.class.Name, "the node class has subnets in zones for which no instance types are known", unserved)
	// The price list has local zones as regions of their own.
	p.notes.name("local zones "+s.class.Name,
		"on-demand prices in local zones are those of the region, and AWS charges more there", local)
	types, err := ec2.Types(within, s.settings)
	if err != nil {
		return invalid(err)
	}
	if types, err = placed(withEnclaves(types, region.Offers), s.placed); err != nil {
		return err
	}
	layers, err := p.layers(ctx)
	if err != nil {
		return err
	}
	types = instancetypes.Reprice(types, layers...)
	var imageless []string
	for _, t := range types {
		if _, ok := discovery.ImageFor(s.images, t.Requirements); !ok {
			imageless = append(imageless, t.Name)
		}
	}
	types = withhold(types, corev1.LabelInstanceTypeStable, imageless)
	var usable []ec2.Reservation
	for _, r := range s.reserved {
		if slices.ContainsFunc(types, func(t instancetypes.InstanceType) bool {
			return t.Name == r.InstanceType && slices.ContainsFunc(t.Offerings, func(o instancetypes.Offering) bool { return zoneOf(o) == r.Zone })
		}) {
			usable = append(usable, r)
		}
	}
	if types, err = ec2.Reserve(types, usable...); err != nil {
		return invalid(err)
	}
	s.offer(types)
	return nil
}

// withhold marks the offerings with one of these values as unavailable.
func withhold(types []instancetypes.InstanceType, key string, values []string) []instancetypes.InstanceType {
	if len(values) == 0 {
		return types
	}
	return instancetypes.Withhold(types, requirements.MustOf(requirements.In(key, values...)))
}

// cityAfterRegion matches the number of a region with a city or carrier after it, which only the
// names of local and Wavelength zones have: us-east-1-bos-1a, but not us-gov-west-1a.
var cityAfterRegion = regexp.MustCompile(`-[0-9]+-[a-z]`)

// localZone reports whether a zone is a local or Wavelength zone.
func localZone(zone string) bool { return cityAfterRegion.MatchString(zone) }

// samePrices reports whether the offerings have the same prices.
func samePrices(a, b []instancetypes.InstanceType) bool {
	return slices.EqualFunc(a, b, func(a, b instancetypes.InstanceType) bool {
		return a.Name == b.Name && slices.EqualFunc(a.Offerings, b.Offerings, func(a, b instancetypes.Offering) bool { return a.Price == b.Price })
	})
}

// placed lets claims require the placement group of the class's machines, and one of its
// partitions.
func placed(types []instancetypes.InstanceType, group discovery.Placement) ([]instancetypes.InstanceType, error) {
	if group.ID == "" {
		return types, nil
	}
	in := []requirements.Requirement{requirements.In(label.PlacementGroupID, group.ID)}
	if group.Partitions > 0 {
		var all []string
		for n := range group.Partitions {
			all = append(all, strconv.Itoa(int(n)+1))
		}
		in = append(in, requirements.In(label.PlacementGroupPartition, all...))
	}
	set, err := requirements.Of(in...)
	if err != nil {
		return nil, invalid(err)
	}
	out := slices.Clone(types)
	for i := range out {
		if out[i].Requirements, err = out[i].Requirements.Without(requirements.KeysOf(label.PlacementGroupID, label.PlacementGroupPartition)).Intersect(set); err != nil {
			return nil, invalid(err)
		}
	}
	return out, nil
}

// zoneOf returns the zone of an offering.
func zoneOf(o instancetypes.Offering) string {
	zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
	return zone
}

// region returns the embedded catalogue with EC2's current answers. If EC2 does not answer, the
// catalogue is used alone. For a region that the catalogue does not have, only EC2's answers are
// used. A note says so.
func (p *Provider) region(ctx context.Context) (market.Live, error) {
	embedded, err := p.embedded()
	_, unknown := errors.AsType[*catalogue.UnknownRegionError](err)
	if err != nil && (!unknown || p.options.StaticTypes) {
		return market.Live{}, invalid(err)
	}
	if p.options.StaticTypes {
		return market.Live{Region: embedded}, nil
	}
	live, err := p.base.Get(ctx, p.clients.Region, p.askRegion)
	if err != nil && (unknown || ctx.Err() != nil) {
		return market.Live{}, err
	}
	p.notes.set("types", note("types and zones could not be read; those of the embedded catalogue are used", err))
	if err != nil {
		return market.Live{Region: embedded}, nil
	}
	p.notes.set("type rows", note("invalid descriptions of instance types are ignored", live.Odd))
	return live, nil
}

// askRegion asks EC2 for types and zones and puts them over those of the catalogue.
func (p *Provider) askRegion(ctx context.Context) (market.Live, error) {
	embedded, _ := p.embedded() // region rejects the errors
	embedded.Name = p.clients.Region
	return market.Region(ctx, p.clients, embedded)
}

// renew asks for types and prices that have reached half of their maximum age, so that no launch
// has to wait for them.
func (p *Provider) renew(ctx context.Context) error {
	return errors.Join(p.base.Renew(ctx, p.clients.Region, typesTTL/2, p.askRegion), p.prices.Renew(ctx, p.clients.Region, priceTTL/2, p.askPrices))
}

// layers returns current prices over those of the catalogue. If a list cannot be read, the older
// prices stay, and a note says so.
func (p *Provider) layers(ctx context.Context) ([]instancetypes.PriceSource, error) {
	if p.options.StaticPrices {
		return nil, nil
	}
	return p.prices.Get(ctx, p.clients.Region, p.askPrices)
}

// askPrices asks for the price list and for spot prices.
func (p *Provider) askPrices(ctx context.Context) ([]instancetypes.PriceSource, error) {
	var layers []instancetypes.PriceSource
	region, err := p.region(ctx)
	if err != nil {
		return nil, err
	}
	list, err := market.OnDemand(ctx, p.clients)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	p.notes.set("list", note("the price list could not be read; prices of the embedded catalogue are used", err))
	// China's own prices are in yuan, those of other regions in dollars. So either all prices are
	// its own, or none is.
	china := strings.HasPrefix(region.Name, "cn-")
	yuan := china && err == nil
	if region.OnDemandDate == "" && !yuan {
		elsewhere, err := market.PricesElsewhere()
		if err != nil {
			return nil, err
		}
		layers = append(layers, elsewhere)
		p.notes.set("prices", fmt.Sprintf("the embedded catalogue has no prices of region %q: where AWS has none either, another region's prices are used", region.Name))
	}
	if err == nil {
		layers = append(layers, list)
	}
	history, err := market.Spot(ctx, p.clients, time.Now())
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	p.notes.set("spot", note("spot prices could not be read; they are estimated", err))
	if err == nil && history.Complete && china == yuan {
		layers = append(layers, history)
	}
	return layers, nil
}

// note returns a sentence that ends with an error, or an empty text if there is none.
func note(text string, err error) string {
	if err == nil {
		return ""
	}
	return text + ": " + strings.ReplaceAll(err.Error(), "\n", "; ")
}
