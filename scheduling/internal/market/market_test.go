package market_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/market"
)

// market of two pools: the heavy one has a large type, the other a small one twice and a large one.
func two(left []int64) (*market.Market, []*market.Offer) {
	offers := []*market.Offer{
		{Shape: 0, Pool: 0, Free: []int64{8}, Usage: []int64{8}, Price: 4, Stock: "0 0"},
		{Shape: 1, Pool: 1, Free: []int64{2}, Quota: []int64{1}, Price: 1, Count: 1, Stock: "block"},
		{Shape: 1, Offering: 1, Pool: 1, Free: []int64{2}, Quota: []int64{1}, Price: 2, Count: 1, Stock: "block"},
		{Shape: 2, Pool: 1, Free: []int64{8}, Price: 3, Stock: "2 0"},
	}
	zones := []string{"z=a", "z=a", "z=b", "z in (a,b)"}
	m := market.New([]market.Pool{{Weight: 9, Left: left, Nodes: 1}, {Nodes: -1}}, func(yield func(*market.Offer, requirements.Set) bool) {
		for i, o := range offers {
			if !yield(o, requirements.MustParse(zones[i])) {
				return
			}
		}
	}, func(s requirements.Set) market.Site { return market.Site{Allowed: s} })
	return m, offers
}

func TestWhatRemains(t *testing.T) {
	m, o := two([]int64{10})
	r := m.Remaining([]int64{1})
	require.True(t, r.Within(o[0]) && r.Within(o[1]) && r.Stocks(o[1]))
	beside := r.Clone()
	r.Buy(o[0], 1)
	assert.False(t, r.Within(o[0]), "one node, and 2 of 10 are left")
	r.Buy(o[1], 1)
	assert.False(t, r.Stocks(o[2]), "it is the same block")
	assert.False(t, r.Within(o[2]), "the quota is used up")
	assert.True(t, r.Within(o[3]), "it counts for no quota")
	r.Buy(o[0], -1)
	r.Buy(o[1], -1)
	for i, offer := range o {
		assert.Equal(t, beside.Within(offer), r.Within(offer), "offer %d", i)
		assert.Equal(t, beside.Stocks(offer), r.Stocks(offer), "offer %d", i)
	}

	m, o = two([]int64{math.MinInt64 + 2})
	r = m.Remaining([]int64{0})
	r.Buy(o[0], 1)
	assert.False(t, r.InPool(o[0]), "amounts do not wrap around")
}

func TestKinds(t *testing.T) {
	m, _ := two([]int64{10})
	for _, c := range []struct {
		asked string
		room  int64
		want  []int // shapes
	}{
		{"z=a", 1, []int{0, 1, 2}},
		{"z=b", 1, []int{1, 2}},
		{"z=b", 3, []int{2}},
		{"z=c", 1, nil},
		{"z=a", 9, nil},
	} {
		asked := requirements.AnyOf(requirements.MustParse(c.asked))
		var got []int
		for _, k := range m.Remaining([]int64{1}).Kinds(m.Sales(asked, []int64{1}), asked, []int64{c.room}, func(market.Kind) bool { return true }) {
			got = append(got, k.Shape)
			assert.True(t, k.Allowed.Subset(asked.At(0)), "the site is narrowed to what is asked")
		}
		assert.Equal(t, c.want, got, "%+v", c)
	}
}

// Offers that share an amount take their own parts of it: what does not cover one may cover another.
func TestOffersTakePartsOfAnAmount(t *testing.T) {
	small, large := &market.Offer{Count: 120, Takes: 50, Stock: "plan"}, &market.Offer{Offering: 1, Count: 120, Takes: 100, Stock: "plan"}
	r := market.New([]market.Pool{{Nodes: -1}}, func(func(*market.Offer, requirements.Set) bool) {}, nil).Remaining(nil)
	r.Buy(small, 1)
	assert.True(t, r.Stocks(small))
	assert.False(t, r.Stocks(large), "70 are left")
	r.Buy(small, 1)
	assert.False(t, r.Stocks(small), "20 are left")
	r.Buy(small, -1)
	r.Buy(small, -1)
	assert.True(t, r.Stocks(large))
	var used market.UsedUp
	used.Add(large, "x", "plan")
	used.Add(&market.Offer{Count: 1, Stock: "m"}, "m", "")
	assert.Equal(t, "as many machines as are paid for of x (from plan), 1 machine of m", used.String())
}
