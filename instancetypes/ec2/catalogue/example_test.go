package catalogue_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
)

// An offer is a type with the zones that have it and its prices; spot prices are estimates.
func ExampleOffer() {
	region, err := catalogue.Load("eu-west-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	find := func(name string) catalogue.Offer {
		at, _ := slices.BinarySearchFunc(region.Offers, name, func(o catalogue.Offer, name string) int { return strings.Compare(o.Name, name) })
		return region.Offers[at]
	}
	o := find("m6g.xlarge")
	fmt.Printf("%s: $%.4f an hour, on spot some $%.2f\n", o.Name, o.OnDemand, o.Spot)
	names := map[catalogue.Zone]bool{}
	for _, z := range o.Zones {
		names[z] = true
	}
	fmt.Println(names[catalogue.Zone{Name: "eu-west-1a", ID: "euw1-az3"}], len(names), "zones")
	// Output:
	// m6g.xlarge: $0.1720 an hour, on spot some $0.08
	// true 3 zones
}

// Where the figures come from, and of which day they are: answers that show money should say so.
func ExampleSource() {
	oldest := slices.MinFunc(catalogue.Sources(), func(a, b catalogue.Source) int {
		return strings.Compare(cmp.Or(a.Date, "unknown"), cmp.Or(b.Date, "unknown"))
	})
	fmt.Println(oldest.Package, oldest.Version, "of", oldest.Date)
	// Output: moto 4.2.0 of 2023-08-23
}
