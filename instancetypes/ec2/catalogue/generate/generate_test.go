package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue/internal/line"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

func source1(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.go")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestPriceLists(t *testing.T) {
	path := source1(t, `package x
// generated at 2026-07-06T14:20:29Z for us-east-1
var Prices = map[string]map[T]float64{
	"us-east-1": { "m5.large": 0.096000, "m5.free": 0, "m5.metal": 4 },
}`)
	prices, dates, err := priceLists(path, "Prices")
	require.NoError(t, err)
	assert.Equal(t, map[string]map[string]string{"us-east-1": {"m5.large": "0.096", "m5.metal": "4"}}, prices)
	assert.Equal(t, map[string]string{"us-east-1": "2026-07-06"}, dates)
	_, _, err = priceLists(path, "Other")
	assert.ErrorContains(t, err, "has no literal Other")
}

func TestBranchLimits(t *testing.T) {
	limits, err := branchLimits(source1(t, `package x
var Limits = map[string]*L{
	"m5.large": {Interface: 3, IsTrunkingCompatible: true, BranchInterface: 9},
	"t3.large": {Interface: 3, IsTrunkingCompatible: false, BranchInterface: 9},
}`))
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"m5.large": 9, "t3.large": 0}, limits)
}

func TestListings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.json")
	require.NoError(t, os.WriteFile(path, []byte(`[{"instance_type": "m5.large", "availability_zones": {"r": ["r-az1"]},
	  "pricing": {"r": {"linux": {"ondemand": "0.0960", "pct_savings_od": 67, "spot_avg": "x"}, "dedicated": {"ondemand": "1"}}, "s": {"linux": {"ondemand": "N/A"}}, "t": {}}}]`), 0o600))
	got, err := listings(path)
	require.NoError(t, err)
	assert.Equal(t, map[string]map[string]listed{
		"r": {"m5.large": {price: "0.096", savings: 67, zoneIDs: []string{"r-az1"}}},
		"s": {"m5.large": {savings: -1}},
	}, got)
}

func typed(names ...string) map[string]line.Type {
	out := map[string]line.Type{}
	for _, n := range names {
		out[n] = line.Type{Description: describe.Description{Name: n, UsageClasses: []string{"on-demand", "spot"}}}
	}
	return out
}

func TestSavings(t *testing.T) {
	m := market{types: typed("m5.large", "m5.new", "m6.new", "c9.new", "m7.none", "x1.offer", "x1.new"), older: map[string]listed{
		"m5.large": {savings: 60}, "m5.small": {savings: 70}, "m5.huge": {savings: 50}, "m4.large": {savings: 20}, "m4.rare": {savings: 0}, "m7.none": {savings: -1}, "r5.large": {savings: 10}, "x1.offer": {savings: 90},
	}}
	for name, want := range map[string]struct {
		percent int
		guessed bool
	}{
		"m5.large": {60, false}, "m5.new": {60, true}, // family's median
		"m6.new": {50, true}, "m7.none": {50, true}, // category's: 20, 50, 60, 70
		"c9.new":   {50, true},                       // the region's: 10, 20, 50, 60, 70, 90
		"x1.offer": {75, true}, "x1.new": {75, true}, // nobody saves more for long
	} {
		percent, guessed := m.savings(name)
		assert.Equal(t, want.percent, percent, name)
		assert.Equal(t, want.guessed, guessed, name)
	}
	only := m.types["m5.large"]
	only.UsageClasses = []string{"on-demand"}
	m.types["m5.large"] = only
	percent, _ := m.savings("m5.large")
	assert.Equal(t, -1, percent, "not sold as spot")
}

func TestMarketFile(t *testing.T) {
	types := typed("m5.large", "m8.new", "p3.old", "x1.nowhere")
	old := types["p3.old"]
	old.Retired = true
	types["p3.old"] = old
	m := market{
		region: "r", types: types, list: "p", date: "2026-01-01", prices: map[string]string{"m5.large": "0.1", "p3.old": "3"},
		placements: []placement{
			{types: map[string][]string{"ra": {"m5.large"}, "rb": {"m5.large"}}, ids: map[string]string{"ra": "r-az2", "rb": "r-az1"}},
			{types: map[string][]string{"ra": {"m5.large"}, "rc": {"m8.new"}}, ids: map[string]string{"ra": "r-az2", "rc": "r-az3"}},
		},
		older:    map[string]listed{"m5.large": {savings: 60}},
		oldZones: map[string][]string{"p3.old": {"r-az1", "r-az2", "r-az9"}},
	}
	lines := strings.Split(strings.TrimSpace(m.file()), "\n")
	assert.Equal(t, []string{"list p 2026-01-01", "zone a r-az2", "zone b r-az1", "zone c r-az3", "m5.large ab 0.1 60", "m8.new c - ~60", "p3.old ab 3 ~60"}, lines[1:])
	assert.Equal(t, counts{offered: 3, priced: 2, known: 1, guessed: 1, retired: 1}, m.count())
}

func TestSellable(t *testing.T) {
	assert.True(t, sellable(describe.Description{Virtualizations: []string{"hvm"}, Architectures: []string{"i386", "x86_64"}}))
	assert.False(t, sellable(describe.Description{Virtualizations: []string{"hvm"}, Architectures: []string{"arm64_mac"}}))
	assert.False(t, sellable(describe.Description{Virtualizations: []string{"paravirtual"}, Architectures: []string{"x86_64"}}))
}
