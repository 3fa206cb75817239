package ec2_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/instancetypes/pricing"
	"github.com/joinery-sdk/joinery/requirements"
)

func TestReserve(t *testing.T) {
	m5 := []instancetypes.InstanceType{byName(t, ec2.Settings{})["m5.large"]}
	got, err := ec2.Reserve(m5, ec2.Reservation{ID: "cr-1", InstanceType: "m5.large", Zone: "us-east-1b", Count: 3},
		ec2.Reservation{ID: "cr-2", InstanceType: "m5.large", Zone: "us-east-1a", Block: true, Interruptible: true})
	require.NoError(t, err)
	require.NoError(t, instancetypes.Validate(got))
	require.Len(t, got[0].Offerings, 12)
	block, plain := got[0].Offerings[0], got[0].Offerings[1]
	assert.False(t, block.Available, "nothing left")
	assert.Equal(t, 3, plain.ReservationCount)
	assert.Equal(t, "reserved", plain.CapacityType())

	open := ec2.WellKnown()
	for text, want := range map[string]bool{
		"karpenter.k8s.aws/capacity-reservation-id in (cr-1)":                                              true,
		"karpenter.k8s.aws/capacity-reservation-id in (cr-2)":                                              false, // none is free
		"karpenter.k8s.aws/capacity-reservation-id in (cr-3)":                                              false,
		"karpenter.k8s.aws/capacity-reservation-id in (cr-1), karpenter.sh/capacity-type in (spot)":        false,
		"karpenter.k8s.aws/capacity-reservation-id in (cr-1), topology.kubernetes.io/zone in (us-east-1a)": false,
		"karpenter.sh/capacity-type in (reserved)":                                                         true,
		"karpenter.sh/capacity-type in (on-demand)":                                                        true,
		"!karpenter.k8s.aws/capacity-reservation-id":                                                       true,
		"karpenter.k8s.aws/capacity-reservation-type in (capacity-block)":                                  false,
	} {
		ask := requirements.MustParse(text)
		assert.Equal(t, want, len(instancetypes.Compatible(got, ask, open)) == 1, text)
	}
	price, ok := got[0].LeastPrice(requirements.Set{})
	assert.True(t, ok)
	assert.Zero(t, price, "paid already")
	kind, _ := block.Requirements.Get(label.ReservationType).Single()
	assert.Equal(t, "capacity-block", kind)

	assert.Len(t, m5[0].Offerings, 10, "the argument stays as it was")
	assert.Empty(t, instancetypes.Compatible(m5, requirements.MustOf(requirements.In(instancetypes.LabelReservationID, "cr-1")), open))
}

func TestReserveRefuses(t *testing.T) {
	m5 := []instancetypes.InstanceType{byName(t, ec2.Settings{})["m5.large"]}
	good := ec2.Reservation{ID: "cr-1", InstanceType: "m5.large", Zone: "us-east-1a", Count: 1}
	for want, spoil := range map[string]func(*ec2.Reservation){
		`did you mean "m5.large"?`:        func(r *ec2.Reservation) { r.InstanceType = "m5.larg" },
		`not offered in zone "us-east-1"`: func(r *ec2.Reservation) { r.Zone = "us-east-1" },
		"want an id":                      func(r *ec2.Reservation) { r.ID = "" },
		"no negative count":               func(r *ec2.Reservation) { r.Count = -1 },
		"count or price":                  func(r *ec2.Reservation) { r.Price = math.NaN() },
	} {
		bad := good
		spoil(&bad)
		_, err := ec2.Reserve(m5, bad)
		assert.ErrorContains(t, err, want)
	}
	_, err := ec2.Reserve(m5, good, good)
	assert.ErrorContains(t, err, "given twice")
}

func ExampleReserve() {
	types, err := ec2.Catalogue("us-east-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	types, err = ec2.Reserve(types, ec2.Reservation{ID: "cr-1", InstanceType: "m5.large", Zone: "us-east-1a", Count: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask := requirements.MustOf(requirements.In(instancetypes.LabelReservationID, "cr-1"))
	for _, t := range instancetypes.Compatible(types, ask, ec2.WellKnown()) {
		fmt.Println(t.Name, t.Offerings[0].CapacityType(), t.Offerings[0].ReservationCount)
	}
	// Output: m5.large reserved 2
}

func ExampleFamilies() {
	fmt.Println(ec2.Families())
	// Output: [AL2 AL2023 Bottlerocket Custom Ubuntu Windows2019 Windows2022 Windows2025]
}

// A type that is sold in capacity blocks alone is known and cannot be bought, whatever price lists say of it, until a block of it is reserved.
func TestTypesOfCapacityBlocksAlone(t *testing.T) {
	region, err := catalogue.Load("us-east-1")
	require.NoError(t, err)
	region.Offers = slices.Clone(region.Offers[:3])
	for i := range region.Offers {
		region.Offers[i].UsageClasses = []string{"capacity-block"}
	}
	o := region.Offers[0]
	types, err := ec2.Types(region, ec2.Settings{})
	require.NoError(t, err)
	require.Len(t, types, 3)
	types = instancetypes.Reprice(types, pricing.List{From: instancetypes.PriceList{Name: "today"}, OnDemand: map[string]float64{o.Name: 1}})
	for _, it := range types {
		for _, offering := range it.Offerings {
			assert.False(t, offering.Available, it.Name)
		}
	}
	types, err = ec2.Reserve(types, ec2.Reservation{ID: "cr-1", InstanceType: o.Name, Zone: o.Zones[0].Name, Count: 2, Block: true})
	require.NoError(t, err)
	for _, it := range types {
		open := 0
		for _, offering := range it.Offerings {
			if offering.Available {
				open++
				assert.Equal(t, instancetypes.CapacityTypeReserved, offering.CapacityType())
			}
		}
		assert.Equal(t, it.Name == o.Name, open == 1, it.Name)
	}
}
