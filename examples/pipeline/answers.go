package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
	"github.com/joinery-sdk/joinery/instancetypes/pricing"
)

// WithAnswer returns the market with an answer of AWS about the region in place of that part of the
// catalogue. The answer is the output of one of these commands, recognized by its content: `aws ec2
// describe-instance-types`, `describe-instance-type-offerings --location-type availability-zone`,
// `describe-spot-price-history`, `describe-capacity-reservations`, `aws pricing get-products`. If
// there are descriptions and offerings, apply the descriptions first. Invalid prices become notes.
func (m *Market) WithAnswer(answer []byte) (*Market, error) {
	if m.region == nil {
		return nil, errors.New("pipeline: the catalogue is not one of EC2's")
	}
	var keys map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(answer)).Decode(&keys); err != nil {
		return nil, fmt.Errorf("pipeline: not a JSON object as the AWS CLI prints it: %w", err)
	}
	out := *m
	out.Notes, out.layers = slices.Clone(m.Notes), slices.Clone(m.layers)
	has := func(key string) bool { _, ok := keys[key]; return ok }
	switch {
	case has("InstanceTypes"):
		live, err := describe.Read(answer)
		if err != nil {
			return nil, err
		}
		r := ec2.WithDescriptions(*m.region, live)
		out.region = &r
	case has("InstanceTypeOfferings"):
		zones, err := describe.ReadOfferings(answer)
		if err != nil {
			return nil, err
		}
		r := offeredIn(*m.region, zones)
		out.region = &r
		out.drop(zonesNote(r))
	case has("SpotPriceHistory"):
		spot, odd, err := describe.ReadUsableSpotPrices(answer)
		if err != nil {
			return nil, err
		}
		out.note(odd)
		from := instancetypes.PriceList{Name: "EC2 spot " + m.region.Name, Date: spot.Date}
		out.layers = append(out.layers, pricing.SpotHistory{From: from, Zones: spot.Zones})
		out.drop(spotNote(*m.region))
	case has("CapacityReservations"):
		free, err := describe.ReadReservations(answer)
		if err != nil {
			return nil, err
		}
		out.free = maps.Clone(m.free)
		if out.free == nil {
			out.free = map[string]int{}
		}
		maps.Copy(out.free, free)
	case has("PriceList"):
		prices, odd, err := describe.ReadProducts(answer, m.region.Name)
		if err != nil {
			return nil, err
		}
		out.note(odd)
		out.Date = prices.Date
		from := instancetypes.PriceList{Name: "EC2 on-demand " + m.region.Name, Date: prices.Date}
		out.layers = append(out.layers, pricing.List{From: from, OnDemand: prices.Types})
	default:
		return nil, errors.New("pipeline: want what aws ec2 describe-instance-types, describe-instance-type-offerings, describe-spot-price-history, describe-capacity-reservations or aws pricing get-products printed")
	}
	return &out, nil
}

// drop removes a note that an answer makes needless.
func (m *Market) drop(note string) {
	m.Notes = slices.DeleteFunc(m.Notes, func(n string) bool { return n == note })
}

func (m *Market) note(odd error) {
	if odd != nil {
		m.Notes = append(m.Notes, "left out: "+strings.ReplaceAll(odd.Error(), "\n", "; "))
	}
}

// offeredIn returns the region with each type in the zones that offer it. Types that no zone offers
// are left out.
func offeredIn(r catalogue.Region, zones map[string][]string) catalogue.Region {
	known := map[string]catalogue.Zone{}
	for _, z := range r.Zones {
		known[z.Name] = z
	}
	r.Zones = slices.Clone(r.Zones)
	var offers []catalogue.Offer
	for _, o := range r.Offers {
		names, ok := zones[o.Name]
		if !ok {
			continue
		}
		o.Zones = nil
		for _, name := range names {
			z, ok := known[name]
			if !ok {
				z = catalogue.Zone{Name: name}
				known[name] = z
				r.Zones = append(r.Zones, z)
			}
			o.Zones = append(o.Zones, z)
		}
		offers = append(offers, o)
	}
	slices.SortFunc(r.Zones, func(a, b catalogue.Zone) int { return strings.Compare(a.Name, b.Name) })
	r.Offers, r.ZonesAssumed = offers, false
	return r
}
