package awstest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
)

// fleet is the result of a client token.
type fleet struct {
	fields map[string]string // of the request
	answer []el
	made   time.Time
}

// choice is one override of a fleet with its launch template.
type choice struct {
	template *template
	typ      string
	zone     string
	subnet   *Subnet
	image    string
	priority float64
	pool     pool
	ids      []string
	refused  *apiError
}

func (c *Cloud) createFleet(r request) (any, *apiError) {
	p := r.params
	fields := map[string]string{}
	p.flatten("", fields)
	token := p.str("ClientToken")
	if old, ok := c.fleets[token]; ok && token != "" && c.now().Sub(old.made) < c.config.Tokens {
		if !maps.Equal(old.fields, fields) {
			return nil, &apiError{"IdempotentParameterMismatch", "The request uses the same client token as a previous, but non-identical request."}
		}
		if c.config.SilentReplays {
			return old.answer[:1], nil
		}
		return old.answer, nil
	}
	if p.str("Type") != "instant" {
		return nil, &apiError{"InvalidFleetConfig", "only fleets of the type instant are known here"}
	}
	kind := p.str("TargetCapacitySpecification", "DefaultTargetCapacityType")
	target := p.num("TargetCapacitySpecification", "TotalTargetCapacity")
	if target < 1 {
		return nil, &apiError{"InvalidTargetCapacitySpecification", "TotalTargetCapacity must be at least 1"}
	}
	choices, failure := c.choices(p, kind)
	if failure != nil {
		return nil, failure
	}
	tags := map[string]string{}
	for _, s := range p.list("TagSpecification") {
		t := s.tags("Tag")
		if len(t) > 50 {
			return nil, &apiError{"TagLimitExceeded", "More than 50 tags"}
		}
		if s.str("ResourceType") == "instance" {
			tags = t
		}
	}
	for k, v := range tags {
		if len(k) > 128 || len(v) > 256 || strings.HasPrefix(k, "aws:") {
			return nil, &apiError{"InvalidParameterValue", fmt.Sprintf("Tag key %q or its value is not valid", k)}
		}
	}
	c.order(choices, kind, p)
	id := c.id("fleet")
	if r.fault.Entry != "" {
		for _, ch := range choices {
			ch.refused = &apiError{r.fault.Entry, r.fault.Message}
		}
	}
	for range target + c.surplus {
		if !c.fulfil(choices, kind, id, token, tags) {
			break
		}
	}
	answer := []el{e("fleetId", id)}
	launched := slices.DeleteFunc(slices.Clone(choices), func(ch *choice) bool { return len(ch.ids) == 0 })
	failed := slices.DeleteFunc(slices.Clone(choices), func(ch *choice) bool { return ch.refused == nil })
	lifecycle := choices[0].pool.capacityType
	answer = append(answer, items("fleetInstanceSet", launched, func(ch *choice) []el {
		return []el{
			ch.elements(), e("lifecycle", lifecycle), texts("instanceIds", ch.ids), e("instanceType", ch.typ),
			e("availabilityZone", ch.zone), e("availabilityZoneId", c.zoneID(ch.zone)), e("subnetId", ch.subnet.ID),
		}
	}), items("errorSet", failed, func(ch *choice) []el {
		return []el{ch.elements(), e("lifecycle", lifecycle), e("errorCode", cited(api.Entry, ch.refused.code).Code), e("errorMessage", ch.refused.message)}
	}))
	if token != "" {
		c.fleets[token] = &fleet{fields: fields, answer: answer, made: c.now()}
	}
	return answer, nil
}

// elements names the template only by its id, as the published answers of EC2 do.
func (ch *choice) elements() el {
	overrides := e("overrides", e("instanceType", ch.typ), e("subnetId", ch.subnet.ID), e("availabilityZone", ch.zone), e("priority", strconv.FormatFloat(ch.priority, 'f', -1, 64)))
	if ch.image != "" {
		overrides.kids = append(overrides.kids, e("imageId", ch.image))
	}
	return e("launchTemplateAndOverrides",
		e("launchTemplateSpecification", e("launchTemplateId", ch.template.id), e("version", ch.template.version)), overrides)
}

// choices reads the overrides. One invalid override makes the whole request fail.
func (c *Cloud) choices(p *params, kind string) ([]*choice, *apiError) {
	var out []*choice
	seen := map[string]bool{}
	if n := len(p.list("LaunchTemplateConfigs")); n > 50 {
		return nil, &apiError{"InvalidFleetConfig", fmt.Sprintf("%d launch template configs, at most 50 are allowed", n)}
	}
	for _, config := range p.list("LaunchTemplateConfigs") {
		name := config.str("LaunchTemplateSpecification", "LaunchTemplateName")
		t, ok := c.templates[name]
		if !ok {
			return nil, &apiError{"InvalidLaunchTemplateName.NotFoundException", fmt.Sprintf("The specified launch template, with template name %s, does not exist.", name)}
		}
		if v := config.str("LaunchTemplateSpecification", "Version"); v != strconv.Itoa(t.version) && v != "$Latest" {
			return nil, &apiError{"InvalidLaunchTemplateId.VersionNotFound", fmt.Sprintf("Could not find the version %q of the launch template %s.", v, name)}
		}
		for _, o := range config.list("Overrides") {
			ch := &choice{template: t, typ: o.str("InstanceType"), image: o.str("ImageId")}
			ch.priority, _ = strconv.ParseFloat(o.str("Priority"), 64)
			i := slices.IndexFunc(c.subnets, func(s *Subnet) bool { return s.ID == o.str("SubnetId") })
			if i < 0 {
				return nil, &apiError{"InvalidSubnetID.NotFound", fmt.Sprintf("The subnet ID '%s' does not exist", o.str("SubnetId"))}
			}
			ch.subnet = c.subnets[i]
			ch.zone = ch.subnet.Zone
			if z := o.str("AvailabilityZone"); z != "" && z != ch.zone {
				return nil, &apiError{"InvalidParameterCombination", "AvailabilityZone and subnet differ"}
			}
			if _, ok := c.offer(ch.typ); !ok {
				return nil, &apiError{"InvalidFleetConfiguration", fmt.Sprintf("The instance type %q is not known", ch.typ)}
			}
			capacityType := "on-demand"
			if kind == "spot" {
				capacityType = "spot"
			}
			ch.pool = pool{ch.typ, ch.zone, capacityType}
			key := fmt.Sprint(ch.pool, t.data.str("CapacityReservationSpecification", "CapacityReservationTarget", "CapacityReservationId"))
			if seen[key] {
				return nil, &apiError{"InvalidFleetConfig", "The fleet configuration contains duplicate instance pools"}
			}
			seen[key] = true
			out = append(out, ch)
		}
	}
	if len(out) > 300 {
		return nil, &apiError{"InvalidFleetConfig", fmt.Sprintf("%d overrides, at most 300 are allowed", len(out))}
	}
	if len(out) == 0 {
		return nil, &apiError{"MissingParameter", "The request must contain LaunchTemplateConfigs with overrides"}
	}
	return out, nil
}

// order sorts the pools by the strategy.
func (c *Cloud) order(choices []*choice, kind string, p *params) {
	left := func(ch *choice) float64 {
		if n, ok := c.capacity[ch.pool]; ok {
			return float64(n)
		}
		return math.Inf(1)
	}
	price := func(a, b *choice) int {
		return cmp.Or(cmp.Compare(c.price(a.pool), c.price(b.pool)), strings.Compare(a.typ, b.typ), strings.Compare(a.zone, b.zone))
	}
	strategy := p.str("OnDemandOptions", "AllocationStrategy")
	if kind == "spot" {
		strategy = p.str("SpotOptions", "AllocationStrategy")
	}
	switch strategy {
	case "prioritized", "capacity-optimized-prioritized":
		slices.SortStableFunc(choices, func(a, b *choice) int { return cmp.Compare(a.priority, b.priority) })
	case "price-capacity-optimized":
		// First the pools with many machines left, and of these the cheapest.
		deep := func(ch *choice) int {
			if left(ch) >= 10 {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(choices, func(a, b *choice) int { return cmp.Or(cmp.Compare(deep(a), deep(b)), price(a, b)) })
	case "capacity-optimized":
		slices.SortStableFunc(choices, func(a, b *choice) int { return cmp.Or(cmp.Compare(left(b), left(a)), price(a, b)) })
	default:
		slices.SortStableFunc(choices, price)
	}
}

// fulfil launches one machine from the first pool that has one.
func (c *Cloud) fulfil(choices []*choice, kind, fleetID, token string, tags map[string]string) bool {
	for _, ch := range choices {
		if ch.refused != nil {
			continue
		}
		var reserved string
		if reserved, ch.refused = c.take(ch, kind); ch.refused != nil {
			continue
		}
		ch.ids = append(ch.ids, c.launch(ch, fleetID, token, reserved, tags))
		return true
	}
	return false
}

// take takes a machine out of its pool.
func (c *Cloud) take(ch *choice, kind string) (reserved string, failure *apiError) {
	o, _ := c.offer(ch.typ)
	if refusal, ok := c.fleetErrors[ch.pool]; ok {
		return "", &refusal
	}
	if name := ch.template.data.str("IamInstanceProfile", "Name"); name != "" {
		if p := c.profiles[name]; p == nil || p.role == "" || c.now().Before(p.changed.Add(c.config.ProfileLag)) {
			return "", &apiError{"InvalidParameterValue", fmt.Sprintf("Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", name)}
		}
	}
	if want := cmp.Or(ch.image, ch.template.data.str("ImageId")); !slices.ContainsFunc(c.images, func(i *Image) bool { return i.ID == want }) {
		return "", &apiError{"InvalidAMIID.NotFound", fmt.Sprintf("The image id '[%s]' does not exist", want)}
	}
	if !slices.ContainsFunc(o.Zones, func(z catalogue.Zone) bool { return z.Name == ch.zone }) {
		return "", &apiError{"Unsupported", fmt.Sprintf("Your requested instance type (%s) is not supported in your requested Availability Zone (%s).", ch.typ, ch.zone)}
	}
	if ch.template.data.str("EnclaveOptions", "Enabled") == "true" && !o.NitroEnclaves {
		return "", &apiError{"UnsupportedOperation", fmt.Sprintf("Nitro Enclaves are not supported on the instance type %s.", ch.typ)}
	}
	if kind == "spot" && !slices.Contains(o.UsageClasses, "spot") {
		return "", &apiError{"UnfulfillableCapacity", "Unable to fulfill capacity due to your request configuration."}
	}
	id := ch.template.data.str("CapacityReservationSpecification", "CapacityReservationTarget", "CapacityReservationId")
	if n, ok := c.capacity[ch.pool]; ok && n <= 0 && id == "" {
		if kind == "spot" {
			return "", &apiError{"UnfulfillableCapacity", "Unable to fulfill capacity due to your request configuration. Please adjust your request and try again."}
		}
		return "", &apiError{"InsufficientInstanceCapacity", fmt.Sprintf("We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", ch.typ, ch.zone)}
	}
	if c.spreadFull(ch) {
		return "", &apiError{"InsufficientInstanceCapacity", "You've reached the limit of instances in this spread placement group."}
	}
	if ch.subnet.Free <= 0 {
		return "", &apiError{"InsufficientFreeAddressesInSubnet", fmt.Sprintf("There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", ch.subnet.ID)}
	}
	if limit, ok := c.quotas[ch.pool.capacityType]; ok && c.vCPUs(ch.pool.capacityType)+int(o.VCPUs) > limit {
		if kind == "spot" {
			return "", &apiError{"MaxSpotInstanceCountExceeded", "Max spot instance count exceeded"}
		}
		return "", &apiError{"VcpuLimitExceeded", fmt.Sprintf("You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance bucket that the specified instance type belongs to.", limit)}
	}
	if id != "" {
		i := slices.IndexFunc(c.reservations, func(v *Reservation) bool { return v.ID == id })
		if want := c.marketOf(i); i >= 0 && (ch.template.data.str("InstanceMarketOptions", "MarketType") != want.market || kind != want.target) {
			return "", &apiError{"InvalidParameterCombination", "The market type of the launch template, or the target capacity type, is not that of the reservation."}
		}
		if i < 0 || c.left(c.reservations[i]) <= 0 || c.reservations[i].Type != ch.typ || c.reservations[i].Zone != ch.zone {
			return "", &apiError{"ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and available capacity for this request."}
		}
		reserved = id
	} else if reserved = c.absorbing(ch); reserved != "" {
		// It costs the pool nothing.
	} else if n, ok := c.capacity[ch.pool]; ok {
		c.capacity[ch.pool] = n - 1
	}
	ch.subnet.Free--
	return reserved, nil
}

// spreadFull reports whether the template has a spread placement group with seven machines in the
// zone, which is its limit.
func (c *Cloud) spreadFull(ch *choice) bool {
	id := ch.template.data.str("Placement", "GroupId")
	if !slices.ContainsFunc(c.placements, func(p *PlacementGroup) bool { return p.ID == id && p.Strategy == "spread" }) {
		return false
	}
	n := 0
	for _, i := range c.instances {
		if i.zone == ch.zone && i.ended.IsZero() && i.template.data.str("Placement", "GroupId") == id {
			n++
		}
	}
	return n >= 7
}

// absorbing returns the open reservation that takes an on-demand machine whose template does not
// mention reservations, or an empty string.
func (c *Cloud) absorbing(ch *choice) string {
	preference := ch.template.data.str("CapacityReservationSpecification", "CapacityReservationPreference")
	for _, v := range c.reservations {
		if v.Open && v.Type == ch.typ && v.Zone == ch.zone && ch.pool.capacityType == "on-demand" && preference != "none" && c.left(v) > 0 {
			return v.ID
		}
	}
	return ""
}

type reservedMarket struct{ market, target string }

// marketOf returns how the i-th reservation must be requested.
func (c *Cloud) marketOf(i int) reservedMarket {
	switch {
	case i >= 0 && c.reservations[i].Block:
		return reservedMarket{"capacity-block", "capacity-block"}
	case i >= 0 && c.reservations[i].Interruptible:
		return reservedMarket{"interruptible-capacity-reservation", "reserved-capacity"}
	default:
		return reservedMarket{"", "on-demand"}
	}
}

// vCPUs returns the running vCPUs of a capacity type.
func (c *Cloud) vCPUs(capacityType string) int {
	total := 0
	for _, i := range c.instances {
		if i.capacityType == capacityType && i.ended.IsZero() {
			o, _ := c.offer(i.typ)
			total += int(o.VCPUs)
		}
	}
	return total
}

// Fleets returns the parameters of the fleets that were requested with a client token, such as
// "SpotOptions.AllocationStrategy", by token.
func (c *Cloud) Fleets() map[string]map[string]string {
	defer c.lock()()
	out := map[string]map[string]string{}
	for token, f := range c.fleets {
		out[token] = maps.Clone(f.fields)
	}
	return out
}
