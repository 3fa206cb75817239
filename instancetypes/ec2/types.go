package ec2

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/requirements"
)

// Catalogue returns what can be bought in a region, from the embedded catalogue and with default
// settings (AL2023). The error is a [*catalogue.UnknownRegionError] if the catalogue does not have
// the region. It takes about 20 milliseconds and reads everything again, so keep the result.
func Catalogue(region string) ([]instancetypes.InstanceType, error) {
	r, err := catalogue.Load(region)
	if err != nil {
		return nil, err
	}
	return Types(r, Settings{})
}

// Types returns a region's offers for Kubernetes under the given settings, by name. The error joins
// every fault of the settings.
//
// Types that cannot become a node are left out: those on which no image of the family runs (arm64
// on Windows, neither amd64 nor arm64, paravirtual only), those that no zone offers, and those
// without a usage class that can be bought. An offering is unavailable in these cases:
//
//   - it has no price, or the image does not support the type
//   - the type is retired, see [instancetypes.Revive]
//   - the type is sold only in capacity blocks, until [Reserve] adds a block
func Types(r catalogue.Region, s Settings) ([]instancetypes.InstanceType, error) {
	c, err := s.compile()
	if err != nil {
		return nil, err
	}
	l, k := newLabeler(c, r.Name), newKeeper(c)
	sellers := map[string][2]requirements.Set{}
	lists := priceLists(r)
	out := make([]instancetypes.InstanceType, 0, len(r.Offers))
	for _, o := range r.Offers {
		arch := architecture(o.Description)
		if arch == "" || c.windowsBuild != "" && arch != "amd64" || !slices.Contains(o.Virtualizations, "hvm") ||
			len(o.Zones) == 0 || len(capacityTypes(o.Description)) == 0 {
			continue
		}
		capacity := c.capacity(o.Description)
		out = append(out, instancetypes.InstanceType{
			Name:         o.Name,
			Requirements: l.set(o),
			Offerings:    c.offerings(r.Name, o, sellers, lists),
			Capacity:     capacity,
			Overhead:     k.overhead(o.Description, capacity),
			Retired:      o.Retired,
		})
	}
	return out, nil
}

// offerings returns, zone by zone, how the type is sold. sellers shares the sets of each zone.
func (c compiled) offerings(region string, o catalogue.Offer, sellers map[string][2]requirements.Set, l lists) []instancetypes.Offering {
	uses := capacityTypes(o.Description)
	out := make([]instancetypes.Offering, 0, len(o.Zones)*len(uses))
	for _, z := range o.Zones {
		sets, ok := sellers[z.Name]
		if !ok {
			sets = [2]requirements.Set{seller(region, z, instancetypes.CapacityTypeOnDemand), seller(region, z, instancetypes.CapacityTypeSpot)}
			sellers[z.Name] = sets
		}
		for _, use := range uses {
			offering := instancetypes.Offering{Requirements: sets[0], Price: o.OnDemand, List: l.onDemand}
			if o.Estimated {
				offering.List = l.estimated
			}
			if use == instancetypes.CapacityTypeSpot {
				offering = instancetypes.Offering{Requirements: sets[1], Price: o.Spot, List: l.spot}
				if o.Guessed || o.Estimated {
					offering.List = l.guessed
				}
			}
			if use == instancetypes.CapacityTypeReserved { // in this zone it is sold only by reservation, see Reserve
				offering = instancetypes.Offering{Requirements: seller(region, z, use)}
			}
			if offering.Price == 0 {
				offering.List = nil
			}
			offering.Available = offering.Price > 0 && !o.Retired && c.boots(o.Description)
			out = append(out, offering)
		}
	}
	return out
}

// lists are the price lists of a region.
type lists struct{ onDemand, estimated, spot, guessed *instancetypes.PriceList }

func priceLists(r catalogue.Region) lists {
	return lists{
		onDemand:  &instancetypes.PriceList{Name: "EC2 on-demand " + r.Name, Date: r.OnDemandDate},
		estimated: &instancetypes.PriceList{Name: "EC2 on-demand " + r.Name + ", estimated by comparing the nearest family with us-east-1", Date: r.OnDemandDate, Estimated: true},
		spot:      &instancetypes.PriceList{Name: "EC2 spot " + r.Name + ", on-demand less usual savings", Date: r.SpotDate, Estimated: true},
		guessed:   &instancetypes.PriceList{Name: "EC2 spot " + r.Name + ", on-demand less assumed savings", Date: r.SpotDate, Estimated: true},
	}
}

// seller returns the requirement set of all offerings of one zone and capacity type.
func seller(region string, z catalogue.Zone, capacityType string) requirements.Set {
	rs := []requirements.Requirement{
		requirements.In(corev1.LabelTopologyRegion, region),
		requirements.In(corev1.LabelTopologyZone, z.Name),
		requirements.In(instancetypes.LabelCapacityType, capacityType),
		// An offering without a reservation must not satisfy a pod that requires one.
		requirements.DoesNotExist(instancetypes.LabelReservationID),
		requirements.DoesNotExist(label.ReservationType),
		requirements.DoesNotExist(label.ReservationInterruptible),
	}
	if z.ID != "" {
		rs = append(rs, requirements.In(instancetypes.LabelZoneID, z.ID))
	}
	s, _ := requirements.Of(rs...) // each key once
	return s
}

// boots reports whether images of the family run on the type: AL2023 does not support the first
// Graviton.
func (c compiled) boots(d describe.Description) bool {
	return c.Family != AL2023 || !strings.HasPrefix(d.Name, "a1.")
}

// WithDescriptions replaces what the embedded catalogue says about instance types with a live
// answer. Types missing from the answer are dropped, because the answer is what the account can
// see. Types in the answer are not retired. Types that the catalogue does not know in the region
// are offered in every zone, without a price. Facts that DescribeInstanceTypes does not report
// (branch interfaces, bandwidth, and the Neuron devices of some types) come from the catalogue,
// even if the catalogue knows the type only in another region.
func WithDescriptions(r catalogue.Region, live []describe.Description) catalogue.Region {
	known := make(map[string]catalogue.Offer, len(r.Offers))
	for _, o := range r.Offers {
		known[o.Name] = o
	}
	elsewhere := map[string]describe.Description{}
	// Tests read the embedded data. If it were broken, there would be nothing to add from it.
	types, _ := catalogue.Types()
	for _, d := range types {
		elsewhere[d.Name] = d
	}
	out := r
	out.Offers = make([]catalogue.Offer, 0, len(live))
	for _, d := range live {
		o, ok := known[d.Name]
		if !ok {
			o = catalogue.Offer{Description: elsewhere[d.Name], Zones: r.Zones}
		}
		if d.BranchInterfaces == 0 {
			d.BranchInterfaces = o.BranchInterfaces
		}
		if d.NetworkMbps == 0 {
			d.NetworkMbps = o.NetworkMbps
		}
		if len(d.Neuron) == 0 { // EC2 names none of some types that have them
			d.Neuron = o.Neuron
		}
		o.Description, o.Retired = d, false
		out.Offers = append(out.Offers, o)
	}
	slices.SortFunc(out.Offers, func(a, b catalogue.Offer) int { return strings.Compare(a.Name, b.Name) })
	return out
}
