package catalogue

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write ESTIMATES.md anew")

// heldOut are the errors of estimates of types whose price is known, made without the prices of their whole family: as if it had been launched later.
func heldOut(home, here map[string]float64) map[string]float64 {
	families := map[string][]string{}
	for name := range here {
		if home[name] > 0 {
			f := familyOf(name).name
			families[f] = append(families[f], name)
		}
	}
	out := map[string]float64{}
	for f, names := range families {
		others := maps.Clone(here)
		maps.DeleteFunc(others, func(name string, _ float64) bool { return familyOf(name).name == f })
		e := newEstimator(home, others)
		for _, name := range names {
			out[name] = math.Abs(e.price(name)/here[name] - 1)
		}
	}
	return out
}

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

// What the estimates are worth is published, and what is published is what they are worth.
func TestEstimatesAreAsGoodAsPublished(t *testing.T) {
	at, err := prices(home)
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString(`# Estimated prices

Written by "go test -run Estimates -update" in this folder; do not edit.

The price lists of regions other than us-east-1 lack what was launched since they were made. Such a price is estimated: the price in us-east-1
times what the nearest family that both lists have costs in the region as a multiple of us-east-1. It is marked as an estimate (` + "`Offer.Estimated`, `PriceList.Estimated`, ~" + `).
How good that is shows where the price is known: a whole family is held out, and its prices are estimated by the others'. The recent types are those of
generation 5 and later, as most are that need an estimate. Errors are without sign, in percent; p95 is the 95th percentile.

| region | estimated | no price | held out | median | p95 | recent | median | p95 |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
`)
	var all, recent []float64
	for _, region := range Regions() {
		if region == home {
			continue
		}
		here, err := prices(region)
		require.NoError(t, err)
		r, err := Load(region)
		require.NoError(t, err)
		estimated, unpriced := 0, 0
		for _, o := range r.Offers {
			switch {
			case o.Estimated:
				estimated++
				require.Zero(t, here[o.Name])
				require.Positive(t, o.OnDemand)
			case o.OnDemand == 0:
				unpriced++
			default:
				require.InDelta(t, here[o.Name], o.OnDemand, 0)
			}
		}
		errs := heldOut(at, here)
		var every, late []float64
		for name, err := range errs {
			every = append(every, err)
			if familyOf(name).generation >= 5 {
				late = append(late, err)
			}
		}
		all, recent = append(all, every...), append(recent, late...)
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %.2f | %.1f | %d | %.2f | %.1f |\n", region, estimated, unpriced,
			len(every), 100*quantile(every, 0.5), 100*quantile(every, 0.95), len(late), 100*quantile(late, 0.5), 100*quantile(late, 0.95))
	}
	fmt.Fprintf(&b, "| all | | | %d | %.2f | %.1f | %d | %.2f | %.1f |\n", len(all), 100*quantile(all, 0.5), 100*quantile(all, 0.95), len(recent), 100*quantile(recent, 0.5), 100*quantile(recent, 0.95))
	if *update {
		require.NoError(t, os.WriteFile("ESTIMATES.md", []byte(b.String()), 0o600))
	}
	have, err := os.ReadFile("ESTIMATES.md")
	require.NoError(t, err)
	require.Equal(t, string(have), b.String(), "run the test with -update")
	assert.Less(t, quantile(all, 0.5), 0.01)
	assert.Less(t, quantile(recent, 0.5), 0.01)
}

func TestFamilies(t *testing.T) {
	for typ, want := range map[string]family{
		"m5.large": {"m5", "m", "i", "", 5}, "m8gdn.large": {"m8gdn", "m", "g", "dn", 8}, "c7i-flex.large": {"c7i-flex", "c", "i", "-flex", 7},
		"c6a.metal": {"c6a", "c", "a", "", 6}, "im4gn.large": {"im4gn", "im", "g", "n", 4}, "inf2.xlarge": {"inf2", "inf", "i", "", 2},
		"u-6tb1.metal": {"u-6tb1", "u", "i", "", 0}, "u7i-12tb.224xlarge": {"u7i-12tb", "u", "i", "", 0}, "x2iedn.large": {"x2iedn", "x", "i", "edn", 2},
		"p6-b200.48xlarge": {"p6-b200", "p", "i", "-b200", 6}, "odd": {"odd", "odd", "i", "", 0}, "": {"", "", "i", "", 0}, "5.large": {"5", "5", "i", "", 0},
	} {
		assert.Equal(t, want, familyOf(typ), typ)
	}
}

// A type is priced by its own family if it has one, then by the category's nearest, and not at all where nothing is known.
func TestNearestFamily(t *testing.T) {
	home := map[string]float64{"m5.large": 1, "m5.xlarge": 2, "m6g.large": 1, "c6i.large": 1, "m7i.large": 10, "m7g.large": 10, "p5.48xlarge": 100, "c7a.large": 10}
	here := map[string]float64{"m5.large": 1.1, "m6g.large": 1.2, "c6i.large": 1.3}
	e := newEstimator(home, here)
	for typ, want := range map[string]float64{"m5.xlarge": 2.2, "m7i.large": 11, "m7g.large": 12, "c7a.large": 13, "t9.large": 0} {
		assert.InDelta(t, want, e.price(typ), 1e-9, typ)
	}
	assert.Positive(t, e.price("p5.48xlarge"))
	assert.Zero(t, newEstimator(home, nil).price("m5.large"))
}

// Estimates start from the price list of us-east-1: it must not be half a year older than the types.
func TestPricesAreAsNewAsTypes(t *testing.T) {
	newest := ""
	for _, s := range Sources() {
		if strings.Contains(s.Gives, "descriptions") {
			newest = max(newest, s.Date)
		}
	}
	r, err := Load(home)
	require.NoError(t, err)
	types, err := time.Parse(time.DateOnly, newest)
	require.NoError(t, err)
	prices, err := time.Parse(time.DateOnly, r.OnDemandDate)
	require.NoError(t, err)
	assert.Less(t, types.Sub(prices), 183*24*time.Hour, "types of %s, prices of %s: take a newer price list", newest, r.OnDemandDate)
}
