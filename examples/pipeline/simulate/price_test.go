package simulate_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// Prices of all packages are the same amounts, and print alike.
func TestPricesPrintAlike(t *testing.T) {
	amounts := []int64{0, math.MaxInt64, math.MinInt64}
	for unit := int64(1); unit <= 1e17; unit *= 10 {
		for _, n := range []int64{1, 5, 9, 10, 58, 99, 101} {
			if n <= math.MaxInt64/unit {
				amounts = append(amounts, n*unit, -n*unit, n*unit+1, n*unit-1)
			}
		}
	}
	for _, n := range amounts {
		want := binpack.Price(n)
		assert.Equal(t, want.String(), deprovision.Price(n).String())
		assert.Equal(t, want.String(), whatif.Price(n).String())
		assert.Equal(t, want.Dollars(), whatif.Price(n).Dollars())
	}
}

// A node of a stock costs the price of its offering, sold out or not. What is paid for in advance
// saves nothing by itself: a node saves the list price, and money that is committed is no price.
func TestPricesOfCountedNodes(t *testing.T) {
	offer := func(price float64) instancetypes.Offering {
		return instancetypes.Offer("z", instancetypes.CapacityTypeOnDemand, price)
	}
	prepaid := offer(0).Stock("ri", 2)
	committed := offer(0).Stock("savings plan", 2)
	committed.CommittedPerHour, committed.CommitmentRate = 1, 0.4
	for name, c := range map[string]struct {
		offers []instancetypes.Offering
		price  float64
		priced bool
	}{
		"a stock":                        {[]instancetypes.Offering{offer(0.5).Stock("old", 2)}, 0.5, true},
		"a stock without a name":         {[]instancetypes.Offering{offer(0.5).Stock("", 2)}, 0.5, true},
		"a stock that is sold out":       {[]instancetypes.Offering{offer(0.5).Stock("old", 0)}, 0.5, true},
		"the cheaper of two stocks":      {[]instancetypes.Offering{offer(0.5).Stock("old", 1), offer(0.4).Stock("older", 1)}, 0.4, true},
		"reserved, with a list price":    {[]instancetypes.Offering{prepaid, offer(0.5)}, 0.5, true},
		"a savings plan, and list price": {[]instancetypes.Offering{committed, offer(0.5)}, 0.5, true},
		"a savings plan alone":           {[]instancetypes.Offering{committed}, 0, false},
		"another zone":                   {[]instancetypes.Offering{instancetypes.Offer("w", instancetypes.CapacityTypeOnDemand, 0.5).Stock("old", 2)}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			typ := instancetypes.New("a", nil, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}, c.offers...)
			node := typ.Node("n", offer(0.5), map[string]string{nodepool.LabelKey: "p"})
			s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "p"}, Types: []instancetypes.InstanceType{typ}}}, Nodes: []*corev1.Node{node}}
			got := (simulate.Objects{}).Cluster(s, nil, time.Unix(0, 0)).Nodes[0]
			assert.Equal(t, c.priced, got.Priced)
			assert.InDelta(t, c.price, got.PricePerHour.Dollars(), 1e-12)
		})
	}
}
