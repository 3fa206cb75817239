package instancetypes_test

import (
	"errors"
	"fmt"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// A catalogue that cannot be planned with is refused with a path to each fault.
func ExampleInvalidError() {
	err := instancetypes.Validate([]instancetypes.InstanceType{named("a", 0.1), named("a", 0.2)})
	if invalid, ok := errors.AsType[*instancetypes.InvalidError](err); ok {
		fmt.Printf("%s of %s: %s\n", invalid.Path, invalid.Type, invalid.Detail)
	}
	// Output: [1].name of a: "a" is the name of [0], too
}

// A pool wants at least three families to choose from, and the catalogue has two: the error says how many are missing.
func ExampleMinValuesError() {
	types := []instancetypes.InstanceType{named("a1", 1), named("a2", 1), named("b1", 2)}
	_, err := instancetypes.MinValues(types, requirements.Set{}, map[string]int{"family": 3})
	if few, ok := errors.AsType[*instancetypes.MinValuesError](err); ok {
		fmt.Println(few.Key, "lacks", few.Want-few.Have)
	}
	// Output: family lacks 1
}

// happyHour is a layer of prices of a user's own: spot in one zone is cheaper by a third, and all else as it was.
type happyHour struct{ zone string }

func (h happyHour) Quotes(q instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
	if q.Zone() != h.zone || q.Offering.CapacityType() != "spot" {
		return below
	}
	out := make([]instancetypes.Quote, len(below))
	for i, quote := range below {
		quote.Price, quote.List = quote.Price*2/3, &instancetypes.PriceList{Name: "happy hour"}
		out[i] = quote
	}
	return out
}

// Prices come in layers, each a function of the one below. A layer of one's own is one method.
func ExamplePriceSource() {
	var layer instancetypes.PriceSource = happyHour{"a"}
	t := instancetypes.InstanceType{Name: "m", Offerings: []instancetypes.Offering{offer("a", "spot", 0.06), offer("b", "spot", 0.06), offer("a", "on-demand", 0.1)}}
	for _, o := range instancetypes.Reprice([]instancetypes.InstanceType{t}, layer)[0].Offerings {
		fmt.Printf("%s $%.2f %v\n", o.CapacityType(), o.Price, o.List)
	}
	// Output:
	// spot $0.04 happy hour
	// spot $0.06 <nil>
	// on-demand $0.10 <nil>
}

// A layer that needs no state is a function: everything in zone b costs a tenth more.
func ExamplePriceSourceFunc() {
	layer := instancetypes.PriceSourceFunc(func(q instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
		out := append([]instancetypes.Quote(nil), below...)
		for i := range out {
			if q.Zone() == "b" {
				out[i].Price *= 1.1
			}
		}
		return out
	})
	t := instancetypes.New("m", nil, quantities("cpu", "4"), instancetypes.Offer("a", "spot", 1), instancetypes.Offer("b", "spot", 1))
	for _, o := range instancetypes.Reprice([]instancetypes.InstanceType{t}, layer)[0].Offerings {
		fmt.Printf("$%.2f ", o.Price)
	}
	fmt.Println()
	// Output: $1.00 $1.10
}

// What is asked of a layer is one offering of one type; labels that the offering leaves open are the type's.
func ExamplePriceQuery() {
	t := named("m1", 0.1)
	q := instancetypes.PriceQuery{Type: t, Offering: t.Offerings[0]}
	fmt.Println(q.Zone(), q.Matches(requirements.MustParse("family=m")), q.Matches(requirements.MustParse("family=c")))
	// Output: a true false
}

// Quotes with a count run out: five machines are paid for in advance, and every further one is at the usual price.
func ExampleQuote() {
	paid := []instancetypes.Quote{{Price: 0, Count: 5, Commitment: "ri-1"}, {Price: 0.1}}
	bill := func(machines int) (total float64) {
		for _, q := range paid {
			n := machines
			if q.Count > 0 {
				n = min(n, q.Count)
			}
			total += float64(n) * q.Price
			machines -= n
		}
		return total
	}
	fmt.Printf("$%.2f $%.2f\n", bill(5), bill(8))
	// Output: $0.00 $0.30
}

// Where the memory of a machine goes, step by step.
func ExampleStep() {
	t := instancetypes.InstanceType{
		Capacity: quantities("memory", "8Gi"),
		Overhead: instancetypes.Overhead{KubeReserved: quantities("memory", "600Mi"), EvictionThreshold: quantities("memory", "100Mi")},
	}
	explain := func(s instancetypes.Step) string {
		return fmt.Sprintf("%s: %d Mi, %d for the kubelet, %d kept free, %d for pods", s.Resource, s.Capacity>>20, s.KubeReserved>>20, s.EvictionThreshold>>20, s.Allocatable>>20)
	}
	for _, s := range t.Breakdown() {
		fmt.Println(explain(s))
	}
	// Output: memory: 8192 Mi, 600 for the kubelet, 100 kept free, 7492 for pods
}
