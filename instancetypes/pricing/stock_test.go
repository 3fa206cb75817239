package pricing_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/pricing"
	"github.com/joinery-sdk/joinery/requirements"
)

// A price never makes more machines: whatever the layers, an offering with a count keeps its count,
// its commitment, its reservation and its money, and gets no second offering beside it.
func TestLayersKeepTheCount(t *testing.T) {
	all := requirements.MustParse("")
	price := 0.5
	layers := map[string]instancetypes.PriceSource{
		"list":          pricing.List{OnDemand: map[string]float64{"box": 0.7}},
		"complete list": pricing.List{OnDemand: map[string]float64{"box": 0.7}, Complete: true},
		"history":       pricing.SpotHistory{Zones: map[string]map[string]float64{"box": {"z": 0.2}}},
		"discount":      pricing.Discount{Percent: 10, Match: all},
		"fewer nodes":   pricing.Commitment{Name: "c", Match: all, Count: 1, Price: 0.01},
		"more nodes":    pricing.Commitment{Name: "c", Match: all, Count: 50, Price: 0.01},
		"cheaper nodes": pricing.Commitment{Name: "c", Match: all, Count: 50, PercentOff: 10},
		"money":         pricing.Commitment{Name: "c", Match: all, PerHour: 50, PercentOff: 10},
		"override":      pricing.Override{Match: all, Price: 0.3},
		"a caller's own": instancetypes.PriceSourceFunc(func(instancetypes.PriceQuery, []instancetypes.Quote) []instancetypes.Quote {
			return []instancetypes.Quote{{Price: 0.4}}
		}),
		"overlay":            overlays(t, pricing.Overlay{Name: "o", Price: &price}),
		"overlay, more":      overlays(t, pricing.Overlay{Name: "o", Adjustment: 1}),
		"overlay, a percent": overlays(t, pricing.Overlay{Name: "o", Adjustment: 10, Percent: true}),
	}
	of := func(capacityType string) instancetypes.Offering { return instancetypes.Offer("z", capacityType, 0.1) }
	reserved := of(instancetypes.CapacityTypeReserved)
	reserved.Requirements = requirements.MustParse(reserved.Requirements.String() + ", " + instancetypes.LabelReservationID + "=cr-1")
	reserved.ReservationCount = 3
	plan := of(instancetypes.CapacityTypeOnDemand).Stock("plan", 3)
	plan.CommittedPerHour, plan.CommitmentRate = 1, 0.3
	full := of(instancetypes.CapacityTypeReserved).Stock("", 0)
	offerings := map[string]instancetypes.Offering{
		"stock": of(instancetypes.CapacityTypeOnDemand).Stock("shelf", 3), "without an id": of(instancetypes.CapacityTypeOnDemand).Stock("", 3),
		"spot": of(instancetypes.CapacityTypeSpot).Stock("shelf", 3), "reservation": reserved, "savings plan": plan, "full": full,
		"sold out": of(instancetypes.CapacityTypeOnDemand).Stock("shelf", 0),
	}
	for what, o := range offerings {
		for first, one := range layers {
			for then, two := range layers {
				types := []instancetypes.InstanceType{instancetypes.New("box", nil, corev1.ResourceList{}, o)}
				got := instancetypes.Reprice(instancetypes.Reprice(types, one, two), two)[0].Offerings
				name := what + ", " + first + ", " + then
				require.Len(t, got, 1, name)
				want := o
				want.Price, want.List = got[0].Price, got[0].List
				assert.Equal(t, want, got[0], name)
			}
		}
	}
}

// What is not a number in a layer is not a number in the catalogue, where it is noticed.
func TestNotANumberIsNoticed(t *testing.T) {
	nan := math.NaN()
	all := requirements.MustParse("")
	for name, layer := range map[string]instancetypes.PriceSource{
		"list":                    pricing.List{OnDemand: map[string]float64{"box": nan}},
		"history":                 pricing.SpotHistory{Zones: map[string]map[string]float64{"box": {"z": nan}}},
		"discount":                pricing.Discount{Percent: nan, Match: all},
		"nodes at a price":        pricing.Commitment{Match: all, Count: 1, Price: nan},
		"nodes at a share":        pricing.Commitment{Match: all, Count: 1, PercentOff: nan},
		"money":                   pricing.Commitment{Match: all, PerHour: nan},
		"money at a share":        pricing.Commitment{Match: all, PerHour: nan, PercentOff: 10},
		"money at no share":       pricing.Commitment{Match: all, PerHour: 5, PercentOff: nan},
		"money without a limit":   pricing.Commitment{Match: all, PerHour: math.Inf(1), PercentOff: 10},
		"money instead of nodes":  pricing.Commitment{Match: all, Count: 2, PerHour: nan},
		"override":                pricing.Override{Price: nan, Match: all},
		"overlay":                 overlays(t, pricing.Overlay{Name: "o", Price: &nan}),
		"overlay that adds":       overlays(t, pricing.Overlay{Name: "o", Adjustment: nan}),
		"overlay that multiplies": overlays(t, pricing.Overlay{Name: "o", Adjustment: nan, Percent: true}),
	} {
		types := []instancetypes.InstanceType{instancetypes.New("box", nil, corev1.ResourceList{},
			instancetypes.Offer("z", "on-demand", 1), instancetypes.Offer("z", "spot", 1))}
		assert.Error(t, instancetypes.Validate(instancetypes.Reprice(types, layer)), name)
	}
}

func overlays(t *testing.T, o pricing.Overlay) pricing.Overlays {
	t.Helper()
	layer, err := pricing.NewOverlays(o)
	require.NoError(t, err)
	return layer
}

// The labels that all nodes of a pool get decide the requirements that name them, and no other.
func TestOverlayOn(t *testing.T) {
	node := map[string]string{"pool": "a", "tier": "3"}
	for text, want := range map[string]string{
		"": "", "pool=a": "", "pool=a, zone in (x)": "zone in (x)", "zone in (x)": "zone in (x)", "pool!=b": "", "tier>2": "", "!team": "!team", "pool": "",
		"pool=b": "no", "pool!=a": "no", "!pool": "no", "tier>3": "no", "tier>2, !pool": "no",
	} {
		on, ok := pricing.Overlay{Match: requirements.MustParse(text)}.On(node)
		if want == "no" {
			assert.False(t, ok, text)
			continue
		}
		assert.True(t, ok, text)
		assert.True(t, on.Match.Equal(requirements.MustParse(want)), "%s: %s", text, on.Match)
	}
}
