// Package market asks AWS what can be bought and at what price: instance types, the zones that
// offer them, the price list and spot prices. Its answers replace those of the embedded catalogue,
// and have the date on which they are valid.
package market

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	price "github.com/aws/aws-sdk-go-v2/service/pricing"
	pricetypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
	"github.com/joinery-sdk/joinery/instancetypes/pricing"
)

// Live is a region of the catalogue with what EC2 says of it today.
type Live struct {
	catalogue.Region
	// Nested are the types that can run virtual machines of their own. nil means that EC2 was not
	// asked.
	Nested map[string]bool
	// Odd names what was left out of EC2's answer because it cannot be an instance type. It is nil
	// if there is nothing.
	Odd error
}

// Region returns the catalogue's region with EC2's current types and zones. Prices, and facts that
// EC2 does not report, stay those of the catalogue. A region that the catalogue does not have is
// given by its name alone.
func Region(ctx context.Context, clients *api.Clients, embedded catalogue.Region) (Live, error) {
	all, err := api.All(ctx, sdk.NewDescribeInstanceTypesPaginator(clients.EC2, &sdk.DescribeInstanceTypesInput{
		MaxResults: aws.Int32(100),
		Filters: []types.Filter{
			{Name: aws.String("supported-virtualization-type"), Values: []string{"hvm"}},
			{Name: aws.String("processor-info.supported-architecture"), Values: []string{"x86_64", "arm64"}},
		},
	}), func(o *sdk.DescribeInstanceTypesOutput) []types.InstanceTypeInfo { return o.InstanceTypes })
	if err != nil {
		return Live{}, err
	}
	// The SDK's fields have the API's names, so its JSON equals the output of the command line.
	data, err := json.Marshal(map[string]any{"InstanceTypes": all})
	if err != nil {
		return Live{}, fmt.Errorf("market: %w", err)
	}
	live, odd, err := describe.ReadUsable(data)
	if err != nil {
		return Live{}, fmt.Errorf("market: %w", err)
	}
	offered, err := api.All(ctx, sdk.NewDescribeInstanceTypeOfferingsPaginator(clients.EC2, &sdk.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(1000),
	}), func(o *sdk.DescribeInstanceTypeOfferingsOutput) []types.InstanceTypeOffering {
		return o.InstanceTypeOfferings
	})
	if err != nil {
		return Live{}, err
	}
	zones := map[string][]catalogue.Zone{} // by type; the catalogue's ids belong to another account
	for _, o := range offered {
		zones[string(o.InstanceType)] = append(zones[string(o.InstanceType)], catalogue.Zone{Name: aws.ToString(o.Location)})
	}
	out := Live{Region: ec2.WithDescriptions(embedded, live), Nested: map[string]bool{}, Odd: odd}
	for _, t := range all {
		if p := t.ProcessorInfo; p != nil && slices.Contains(p.SupportedFeatures, types.SupportedAdditionalProcessorFeatureNestedVirtualization) {
			out.Nested[string(t.InstanceType)] = true
		}
	}
	out.Zones = nil
	for i, o := range out.Offers {
		out.Offers[i].Zones = sorted(zones[o.Name])
		out.Zones = append(out.Zones, out.Offers[i].Zones...)
	}
	out.Zones = sorted(out.Zones)
	return out, nil
}

// sorted returns zones by name, each once.
func sorted(zones []catalogue.Zone) []catalogue.Zone {
	slices.SortFunc(zones, func(a, b catalogue.Zone) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(zones)
}

// OnDemand returns the current price list of a region: Linux, shared tenancy, and bare metal. If
// AWS has no list, it is empty. Products without a price, or that are not instance types, are left
// out, because AWS lists them among the others.
func OnDemand(ctx context.Context, clients *api.Clients) (pricing.List, error) {
	list := pricing.List{From: instancetypes.PriceList{Name: "EC2 on-demand " + clients.Region}, OnDemand: map[string]float64{}}
	for _, kind := range [][2]string{{"Shared", "Compute Instance"}, {"Dedicated", "Compute Instance (bare metal)"}} {
		var filters []pricetypes.Filter
		for _, f := range [][2]string{
			{"regionCode", clients.Region},
			{"serviceCode", "AmazonEC2"},
			{"preInstalledSw", "NA"},
			{"operatingSystem", "Linux"},
			{"capacitystatus", "Used"},
			{"marketoption", "OnDemand"},
			{"tenancy", kind[0]},
			{"productFamily", kind[1]},
		} {
			filters = append(filters, pricetypes.Filter{Type: pricetypes.FilterTypeTermMatch, Field: aws.String(f[0]), Value: aws.String(f[1])})
		}
		products, err := api.All(ctx, price.NewGetProductsPaginator(clients.Pricing, &price.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), Filters: filters, MaxResults: aws.Int32(100)}),
			func(o *price.GetProductsOutput) []string { return o.PriceList })
		if err != nil {
			return pricing.List{}, err
		}
		for _, text := range products {
			name, dollars, date, err := describe.Product(text)
			if err == nil && dollars > 0 {
				list.OnDemand[name] = dollars
				list.From.Date = max(list.From.Date, date)
			}
		}
	}
	return list, nil
}

// Spot returns the newest spot price of every type in every zone. Invalid prices are left out.
func Spot(ctx context.Context, clients *api.Clients, now time.Time) (pricing.SpotHistory, error) {
	all, err := api.All(ctx, sdk.NewDescribeSpotPriceHistoryPaginator(clients.EC2, &sdk.DescribeSpotPriceHistoryInput{
		StartTime: aws.Time(now), ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}, MaxResults: aws.Int32(1000),
	}), func(o *sdk.DescribeSpotPriceHistoryOutput) []types.SpotPrice { return o.SpotPriceHistory })
	if err != nil {
		return pricing.SpotHistory{}, err
	}
	data, err := json.Marshal(map[string]any{"SpotPriceHistory": append([]types.SpotPrice{}, all...)})
	if err != nil {
		return pricing.SpotHistory{}, fmt.Errorf("market: %w", err)
	}
	read, _, err := describe.ReadUsableSpotPrices(data)
	if err != nil {
		return pricing.SpotHistory{}, fmt.Errorf("market: %w", err)
	}
	return pricing.SpotHistory{
		From: instancetypes.PriceList{Name: "EC2 spot " + clients.Region, Date: read.Date}, Zones: read.Zones, Complete: len(read.Zones) > 0,
	}, nil
}

// Within returns the region as seen by an account with subnets in some of its zones. Other zones
// are left out, and zone ids, which differ between accounts, are those of the account.
func Within(r catalogue.Region, zoneIDs map[string]string) catalogue.Region {
	out := r
	keep := func(zones []catalogue.Zone) []catalogue.Zone {
		var kept []catalogue.Zone
		for _, z := range zones {
			if id, ok := zoneIDs[z.Name]; ok {
				z.ID = id
				kept = append(kept, z)
			}
		}
		return kept
	}
	out.Zones = keep(r.Zones)
	out.Offers = make([]catalogue.Offer, 0, len(r.Offers))
	for _, o := range r.Offers {
		if o.Zones = keep(o.Zones); len(o.Zones) > 0 {
			out.Offers = append(out.Offers, o)
		}
	}
	return out
}

// PricesElsewhere returns the prices of us-east-1, which has most types, for offerings without a
// price. That is better than nothing where AWS reports no prices, such as outside its commercial
// regions.
func PricesElsewhere() (instancetypes.PriceSource, error) {
	const home = "us-east-1"
	r, err := catalogue.Load(home)
	if err != nil {
		return nil, fmt.Errorf("market: %w", err)
	}
	from := &instancetypes.PriceList{
		Name: "EC2 " + home + ", because the region's own prices are missing", Date: r.OnDemandDate, Estimated: true,
	}
	prices := map[string]map[string]float64{}
	for _, o := range r.Offers {
		prices[o.Name] = map[string]float64{instancetypes.CapacityTypeOnDemand: o.OnDemand, instancetypes.CapacityTypeSpot: o.Spot}
	}
	return instancetypes.PriceSourceFunc(func(q instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
		price := prices[q.Type.Name][q.Offering.CapacityType()]
		if len(below) > 0 || price == 0 {
			return below
		}
		return []instancetypes.Quote{{Price: price, List: from}}
	}), nil
}
