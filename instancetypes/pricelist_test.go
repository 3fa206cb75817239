package instancetypes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

func TestMatches(t *testing.T) {
	it := small()
	q := instancetypes.PriceQuery{Type: it, Offering: it.Offerings[0]} // zone a, on-demand
	for text, want := range map[string]bool{
		"":                                   true,
		"topology.kubernetes.io/zone in (a)": true,
		"topology.kubernetes.io/zone in (b)": false, // the type could, this offering can't
		"kubernetes.io/arch in (amd64)":      true,
		"kubernetes.io/arch in (arm64)":      false,
		"team in (x)":                        false, // neither mentions it
		"team notin (x)":                     true,
		"!team":                              true,
		"karpenter.sh/capacity-type notin (spot)": true,
	} {
		assert.Equal(t, want, q.Matches(requirements.MustParse(text)), text)
	}
	assert.False(t, q.Matches(requirements.Impossible()))
}

// flat is a price source that knows one price.
type flat float64

func (f flat) Quotes(instancetypes.PriceQuery, []instancetypes.Quote) []instancetypes.Quote {
	return []instancetypes.Quote{{Price: float64(f), List: &instancetypes.PriceList{Name: "flat"}}}
}

func ExampleReprice() {
	types := instancetypes.Reprice([]instancetypes.InstanceType{named("a", 1)}, flat(0.5))
	fmt.Println(types[0].Offerings[0].Price, instancetypes.PriceLists(types))
	// Output: 0.5 [flat]
}

func ExampleWithhold() {
	refused := requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, "a"), requirements.In(corev1.LabelTopologyZone, "a"))
	types := instancetypes.Withhold([]instancetypes.InstanceType{named("a", 1), named("b", 1)}, refused)
	fmt.Println(types[0].Offerings[0].Available, types[1].Offerings[0].Available)
	// Output: false true
}

func ExamplePriceList() {
	fmt.Println(instancetypes.PriceList{Name: "EC2 spot us-east-1", Date: "2025-05-28", Estimated: true})
	// Output: EC2 spot us-east-1 of 2025-05-28 (estimated)
}

func ExamplePriceLists() {
	t := named("a", 1)
	t.Offerings[0].List = &instancetypes.PriceList{Name: "EC2 on-demand us-east-1", Date: "2026-07-06"}
	fmt.Println(instancetypes.PriceLists([]instancetypes.InstanceType{t, t}))
	// Output: [EC2 on-demand us-east-1 of 2026-07-06]
}

// A layer that nobody has is none.
func TestRepriceWithoutLayers(t *testing.T) {
	types := []instancetypes.InstanceType{{Name: "a", Offerings: []instancetypes.Offering{{Price: 1, Available: true}}}}
	assert.Equal(t, types, instancetypes.Reprice(types, nil))
	assert.Equal(t, types, instancetypes.Reprice(types))
}
