package pricing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/pricing"
	"github.com/joinery-sdk/joinery/requirements"
)

func offer(zone, capacityType string, price float64) instancetypes.Offering {
	return instancetypes.Offering{
		Price: price, Available: price > 0, List: &instancetypes.PriceList{Name: "ground", Date: "2026-01-01"},
		Requirements: requirements.MustOf(requirements.In(corev1.LabelTopologyZone, zone), requirements.In(instancetypes.LabelCapacityType, capacityType)),
	}
}

func named(name, family string) instancetypes.InstanceType {
	return instancetypes.InstanceType{
		Name: name, Requirements: requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, name), requirements.In("family", family)),
		Offerings: []instancetypes.Offering{offer("a", "on-demand", 1), offer("a", "spot", 0.4), offer("b", "on-demand", 1), offer("b", "spot", 0.5)},
		Capacity:  corev1.ResourceList{"cpu": resource.MustParse("4")},
	}
}

// describe writes the offerings of the first type one after another.
func describe(types []instancetypes.InstanceType) string {
	text := ""
	for _, o := range types[0].Offerings {
		q := instancetypes.PriceQuery{Offering: o}
		text += fmt.Sprintf("%s/%s ", q.Zone(), o.CapacityType())
		switch {
		case !o.Available:
			text += "gone"
		case o.ReservationCount > 0:
			text += fmt.Sprintf("%dx%.4g by %s", o.ReservationCount, o.Price, o.Commitment)
		default:
			text += fmt.Sprintf("%.4g", o.Price)
		}
		text += ", "
	}
	return text[:len(text)-2]
}

func in(key string, values ...string) requirements.Set {
	return requirements.MustOf(requirements.In(key, values...))
}

func TestLayers(t *testing.T) {
	ground := "a/on-demand 1, a/spot 0.4, b/on-demand 1, b/spot 0.5"
	list := instancetypes.PriceList{Name: "mine", Date: "2026-02-02"}
	for name, c := range map[string]struct {
		layers []instancetypes.PriceSource
		want   string
	}{
		"nothing":               {nil, ground},
		"zero values":           {[]instancetypes.PriceSource{pricing.List{}, pricing.SpotHistory{}, pricing.Discount{}, pricing.Commitment{}, pricing.Overlays{}}, ground},
		"list":                  {[]instancetypes.PriceSource{pricing.List{From: list, OnDemand: map[string]float64{"m5": 2}}}, "a/on-demand 2, a/spot 0.4, b/on-demand 2, b/spot 0.5"},
		"list of others":        {[]instancetypes.PriceSource{pricing.List{OnDemand: map[string]float64{"x": 2}}}, ground},
		"complete list":         {[]instancetypes.PriceSource{pricing.List{OnDemand: map[string]float64{"x": 2}, Complete: true}}, "a/on-demand gone, a/spot 0.4, b/on-demand gone, b/spot 0.5"},
		"history":               {[]instancetypes.PriceSource{pricing.SpotHistory{Zones: map[string]map[string]float64{"m5": {"a": 0.3}}}}, "a/on-demand 1, a/spot 0.3, b/on-demand 1, b/spot gone"},
		"history of others":     {[]instancetypes.PriceSource{pricing.SpotHistory{Zones: map[string]map[string]float64{"x": {"a": 0.3}}}}, ground},
		"complete history":      {[]instancetypes.PriceSource{pricing.SpotHistory{Complete: true}}, "a/on-demand 1, a/spot gone, b/on-demand 1, b/spot gone"},
		"discount":              {[]instancetypes.PriceSource{pricing.Discount{Percent: 10, Match: in(instancetypes.LabelCapacityType, "on-demand")}}, "a/on-demand 0.9, a/spot 0.4, b/on-demand 0.9, b/spot 0.5"},
		"discount elsewhere":    {[]instancetypes.PriceSource{pricing.Discount{Percent: 10, Match: in("family", "c")}}, ground},
		"free":                  {[]instancetypes.PriceSource{pricing.Discount{Percent: 200}}, "a/on-demand 0, a/spot 0, b/on-demand 0, b/spot 0"},
		"reserved in zone a":    {[]instancetypes.PriceSource{pricing.Commitment{Name: "ri", Count: 3, Price: 0.6, Match: in(corev1.LabelTopologyZone, "a")}}, "a/on-demand 3x0.6 by ri, a/on-demand 1, a/spot 0.4, b/on-demand 1, b/spot 0.5"},
		"savings plan":          {[]instancetypes.PriceSource{pricing.Commitment{Name: "sp", Count: 3, PercentOff: 30}}, "a/on-demand 3x0.7 by sp, a/on-demand 1, a/spot 0.4, b/on-demand 3x0.7 by sp, b/on-demand 1, b/spot 0.5"},
		"money":                 {[]instancetypes.PriceSource{pricing.Commitment{Name: "sp", PerHour: 1.6, PercentOff: 25, Match: in(corev1.LabelTopologyZone, "a")}}, "a/on-demand 2x0 by sp, a/on-demand 1, a/spot 0.4, b/on-demand 1, b/spot 0.5"},
		"money for no node":     {[]instancetypes.PriceSource{pricing.Commitment{Name: "sp", PerHour: 0.7, PercentOff: 25}}, ground},
		"two, cheapest first":   {[]instancetypes.PriceSource{pricing.Commitment{Name: "sp", Count: 1, Price: 0.7, Match: in(corev1.LabelTopologyZone, "a")}, pricing.Commitment{Name: "ri", Count: 1, Match: in(corev1.LabelTopologyZone, "a")}}, "a/on-demand 1x0 by ri, a/on-demand 1x0.7 by sp, a/on-demand 1, a/spot 0.4, b/on-demand 1, b/spot 0.5"},
		"order matters":         {[]instancetypes.PriceSource{pricing.Discount{Percent: 50}, pricing.Commitment{Name: "sp", Count: 1, PercentOff: 50, Match: in(corev1.LabelTopologyZone, "b")}}, "a/on-demand 0.5, a/spot 0.2, b/on-demand 1x0.25 by sp, b/on-demand 0.5, b/spot 0.25"},
		"list keeps counts":     {[]instancetypes.PriceSource{pricing.Commitment{Name: "ri", Count: 1, Price: 0.1, Match: in(corev1.LabelTopologyZone, "a")}, pricing.List{OnDemand: map[string]float64{"m5": 3}}}, "a/on-demand 1x0.1 by ri, a/on-demand 3, a/spot 0.4, b/on-demand 3, b/spot 0.5"},
		"override":              {[]instancetypes.PriceSource{pricing.Commitment{Name: "ri", Count: 1}, pricing.Override{Price: 7, Match: in(corev1.LabelInstanceTypeStable, "m5")}}, "a/on-demand 7, a/spot 7, b/on-demand 7, b/spot 7"},
		"override of nothing":   {[]instancetypes.PriceSource{pricing.Override{Price: 7, Match: in("team", "x")}}, ground},
		"override of absentees": {[]instancetypes.PriceSource{pricing.Override{Price: 7, Match: requirements.MustOf(requirements.DoesNotExist("team"), requirements.In(corev1.LabelTopologyZone, "b"))}}, "a/on-demand 1, a/spot 0.4, b/on-demand 7, b/spot 7"},
	} {
		types := []instancetypes.InstanceType{named("m5", "m")}
		got := instancetypes.Reprice(types, c.layers...)
		assert.Equal(t, c.want, describe(got), name)
		assert.Equal(t, ground, describe(types), "%s: the argument stays as it was", name)
		assert.NoError(t, instancetypes.Validate(got), name)
	}
}

func TestPriceForWhatHadNone(t *testing.T) {
	it := named("m8", "m")
	for i := range it.Offerings {
		it.Offerings[i].Price, it.Offerings[i].Available = 0, false
	}
	layer := pricing.List{OnDemand: map[string]float64{"m8": 2}}
	assert.Equal(t, "a/on-demand 2, a/spot gone, b/on-demand 2, b/spot gone", describe(instancetypes.Reprice([]instancetypes.InstanceType{it}, layer)))
	it.Retired = true
	assert.Equal(t, "a/on-demand gone, a/spot gone, b/on-demand gone, b/spot gone", describe(instancetypes.Reprice([]instancetypes.InstanceType{it}, layer)), "retired types stay retired")
}

func TestListsAreNamed(t *testing.T) {
	mine := instancetypes.PriceList{Name: "mine", Date: "2026-02-02"}
	guess := instancetypes.PriceList{Name: "guess", Date: "2025-01-01", Estimated: true}
	types := instancetypes.Reprice([]instancetypes.InstanceType{named("m5", "m")}, pricing.List{From: mine, OnDemand: map[string]float64{"m5": 2}},
		pricing.SpotHistory{From: guess, Zones: map[string]map[string]float64{"m5": {"a": 0.3}}})
	assert.Equal(t, []instancetypes.PriceList{mine, guess}, instancetypes.PriceLists(types))
	age, ok := mine.Age(time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC))
	assert.True(t, ok)
	assert.Equal(t, 30*24*time.Hour, age)
	_, ok = instancetypes.PriceList{}.Age(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	assert.False(t, ok)
}

func overlay(name string, weight int32, match requirements.Set, price float64) pricing.Overlay {
	return pricing.Overlay{Name: name, Weight: weight, Match: match, Price: &price}
}

func TestOverlays(t *testing.T) {
	layers, err := pricing.NewOverlays(overlay("light", 1, requirements.Set{}, 5), overlay("heavy", 2, in(instancetypes.LabelCapacityType, "spot"), 0.1),
		pricing.Overlay{Name: "adjust", Weight: 3, Match: in(corev1.LabelTopologyZone, "b"), Adjustment: -10, Percent: true})
	require.NoError(t, err)
	types := []instancetypes.InstanceType{named("m5", "m")}
	assert.Equal(t, "a/on-demand 5, a/spot 0.1, b/on-demand 0.9, b/spot 0.45", describe(instancetypes.Reprice(types, layers)), "the heaviest holds, alone")

	add, err := pricing.NewOverlays(pricing.Overlay{Name: "add", Adjustment: -0.75})
	require.NoError(t, err)
	assert.Equal(t, "a/on-demand 0.25, a/spot 0, b/on-demand 0.25, b/spot 0", describe(instancetypes.Reprice(types, add)), "never below zero")
}

func TestOverlayConflicts(t *testing.T) {
	_, err := pricing.NewOverlays(overlay("one", 1, in("family", "m"), 1), overlay("two", 1, in("family", "c"), 1), overlay("three", 2, in("family", "m"), 1))
	require.NoError(t, err, "other requirements or another weight")
	_, err = pricing.NewOverlays(overlay("one", 1, in("family", "m"), 1), overlay("two", 1, in("family", "c", "m"), 1))
	var conflict *pricing.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, &pricing.ConflictError{First: "one", Second: "two"}, conflict)
	gpu, fpga := corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}, corev1.ResourceList{"example.com/fpga": resource.MustParse("1")}
	_, err = pricing.NewOverlays(pricing.Overlay{Name: "a", Capacity: gpu}, pricing.Overlay{Name: "b", Capacity: fpga}, overlay("c", 0, requirements.Set{}, 1))
	require.NoError(t, err, "they correct different things")
	_, err = pricing.NewOverlays(pricing.Overlay{Name: "a", Capacity: gpu}, pricing.Overlay{Name: "b", Capacity: gpu})
	require.ErrorAs(t, err, &conflict)
}

func TestExtend(t *testing.T) {
	layers, err := pricing.NewOverlays(
		pricing.Overlay{Name: "gpu", Weight: 1, Match: in("family", "m"), Capacity: corev1.ResourceList{"example.com/gpu": resource.MustParse("2")}},
		pricing.Overlay{Name: "more", Weight: 2, Match: in("family", "m"), Capacity: corev1.ResourceList{"example.com/gpu": resource.MustParse("4")}})
	require.NoError(t, err)
	types := []instancetypes.InstanceType{named("m5", "m"), named("c5", "c")}
	got := layers.Extend(types)
	gpus := got[0].Capacity["example.com/gpu"]
	assert.Equal(t, "4", gpus.String(), "the heaviest holds")
	assert.NotContains(t, got[1].Capacity, corev1.ResourceName("example.com/gpu"))
	assert.NotContains(t, types[0].Capacity, corev1.ResourceName("example.com/gpu"), "the argument stays as it was")
}

func TestWithhold(t *testing.T) {
	types := []instancetypes.InstanceType{named("m5", "m"), named("c5", "c")}
	got := instancetypes.Withhold(types, requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, "m5"), requirements.In(corev1.LabelTopologyZone, "a"), requirements.In(instancetypes.LabelCapacityType, "spot")),
		in(corev1.LabelTopologyZone, "z"))
	assert.Equal(t, "a/on-demand 1, a/spot gone, b/on-demand 1, b/spot 0.5", describe(got))
	assert.Equal(t, "a/on-demand 1, a/spot 0.4, b/on-demand 1, b/spot 0.5", describe(got[1:]))
	assert.Equal(t, "a/on-demand 1, a/spot 0.4, b/on-demand 1, b/spot 0.5", describe(types), "the argument stays as it was")
}

// surcharge is a price source of a user's own.
type surcharge float64

func (s surcharge) Quotes(q instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
	out := append([]instancetypes.Quote(nil), below...)
	for i := range out {
		if q.Zone() == "a" {
			out[i].Price += float64(s)
		}
	}
	return out
}

// A layer of one's own is one method.
func Example_ownLayer() {
	types := instancetypes.Reprice([]instancetypes.InstanceType{named("m5", "m")}, surcharge(0.5))
	fmt.Println(types[0].Offerings[0].Price, types[0].Offerings[2].Price)
	// Output: 1.5 1
}

func ExampleList() {
	list := pricing.List{From: instancetypes.PriceList{Name: "our contract", Date: "2026-02-02"}, OnDemand: map[string]float64{"m5": 0.8}}
	types := instancetypes.Reprice([]instancetypes.InstanceType{named("m5", "m")}, list)
	fmt.Println(types[0].Offerings[0].Price, types[0].Offerings[0].List)
	// Output: 0.8 our contract of 2026-02-02
}

func ExampleSpotHistory() {
	history := pricing.SpotHistory{Zones: map[string]map[string]float64{"m5": {"a": 0.3}}}
	types := instancetypes.Reprice([]instancetypes.InstanceType{named("m5", "m")}, history)
	fmt.Println(types[0].Offerings[1].Price, types[0].Offerings[3].Available)
	// Output: 0.3 false
}

func ExampleDiscount() {
	types := instancetypes.Reprice([]instancetypes.InstanceType{named("m5", "m")}, pricing.Discount{Percent: 25})
	fmt.Println(types[0].Offerings[0].Price)
	// Output: 0.75
}

func ExampleCommitment() {
	paid := pricing.Commitment{Name: "ri-1", Match: in("family", "m"), Count: 5, Price: 0.6}
	for _, o := range instancetypes.Reprice([]instancetypes.InstanceType{named("m5", "m")}, paid)[0].Offerings[:2] {
		fmt.Println(o.Price, o.ReservationCount, o.Commitment)
	}
	// Output:
	// 0.6 5 ri-1
	// 1 0
}

// A savings plan: two dollars an hour are committed, and cover nodes at a discount of 25%.
func ExampleCommitment_savingsPlan() {
	plan := pricing.Commitment{Name: "plan-1", PerHour: 2, PercentOff: 25}
	o := instancetypes.Reprice([]instancetypes.InstanceType{named("m5", "m")}, plan)[0].Offerings[0]
	fmt.Println("a node costs", o.Price, "besides", o.CommitmentRate, "of", o.CommittedPerHour, "that are paid for;", o.ReservationCount, "are covered")
	// Output: a node costs 0 besides 0.75 of 2 that are paid for; 2 are covered
}

func ExampleOverride() {
	types := instancetypes.Reprice([]instancetypes.InstanceType{named("m5", "m")}, pricing.Override{Match: in(corev1.LabelTopologyZone, "a"), Price: 9})
	fmt.Println(types[0].Offerings[0].Price, types[0].Offerings[2].Price)
	// Output: 9 1
}

func ExampleNewOverlays() {
	layer, err := pricing.NewOverlays(pricing.Overlay{Name: "egress", Adjustment: 0.25})
	fmt.Println(instancetypes.Reprice([]instancetypes.InstanceType{named("m5", "m")}, layer)[0].Offerings[0].Price, err)
	_, err = pricing.NewOverlays(pricing.Overlay{Name: "one", Adjustment: 1}, pricing.Overlay{Name: "two", Adjustment: 2})
	fmt.Println(err)
	// Output:
	// 1.25 <nil>
	// pricing: overlays "one" and "two" have the same weight and match the same nodes: give one more weight
}

func ExampleOverlays_Extend() {
	layer, err := pricing.NewOverlays(pricing.Overlay{Name: "fpga", Match: in("family", "m"), Capacity: corev1.ResourceList{"example.com/fpga": resource.MustParse("1")}})
	fpgas := layer.Extend([]instancetypes.InstanceType{named("m5", "m")})[0].Capacity["example.com/fpga"]
	fmt.Println(fpgas.String(), err)
	// Output: 1 <nil>
}
