package catalogue_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
)

func TestDataIsWhatTheGeneratorWrote(t *testing.T) {
	assert.Len(t, catalogue.Hash(), 64, "run go generate in this folder: the embedded data was edited by hand")
}

func TestEveryRegionLoads(t *testing.T) {
	regions := catalogue.Regions()
	assert.GreaterOrEqual(t, len(regions), 30)
	for _, name := range regions {
		r, err := catalogue.Load(name)
		require.NoError(t, err)
		require.NotEmpty(t, r.Zones, name)
		priced, spot := 0, 0
		for i, o := range r.Offers {
			require.NoError(t, o.Validate(), "%s %s", name, o.Name)
			require.NotEmpty(t, o.Zones, "%s %s", name, o.Name)
			require.GreaterOrEqual(t, o.OnDemand, 0.0)
			require.LessOrEqual(t, o.Spot, o.OnDemand, "%s %s", name, o.Name)
			if i > 0 {
				require.Less(t, r.Offers[i-1].Name, o.Name)
			}
			if o.OnDemand > 0 {
				priced++
			}
			if o.Spot > 0 {
				spot++
			}
			if r.ZonesAssumed {
				require.Equal(t, r.Zones, o.Zones, "%s %s", name, o.Name)
			}
		}
		assert.Greater(t, priced, 100, name)
		assert.NotEmpty(t, r.OnDemandDate, name)
		assert.Equal(t, spot > 0, r.SpotDate != "", name)
	}
}

// Where the zones of types are assumed, the region says so, and what it has is what its price list has.
func TestRegionsWithoutKnownZones(t *testing.T) {
	for name, zones := range map[string]string{"us-gov-west-1": "usgw1-az1", "us-gov-east-1": "usge1-az1", "mx-central-1": "mxc1-az1", "ap-southeast-7": "apse7-az1"} {
		r, err := catalogue.Load(name)
		require.NoError(t, err)
		assert.True(t, r.ZonesAssumed, name)
		assert.Equal(t, catalogue.Zone{Name: name + "a", ID: zones}, r.Zones[0])
		assert.Len(t, r.Zones, 3)
		for _, o := range r.Offers {
			require.Positive(t, o.OnDemand, "%s %s", name, o.Name)
			require.False(t, o.Estimated)
		}
		assert.Contains(t, catalogue.RegionsOf(r.Offers[0].Name), name)
	}
	home, err := catalogue.Load("us-east-1")
	require.NoError(t, err)
	assert.False(t, home.ZonesAssumed)
	r, err := catalogue.Load("us-gov-west-1")
	require.NoError(t, err)
	for _, o := range r.Offers {
		if o.Name == "m5.large" {
			assert.InDelta(t, 0.121, o.OnDemand, 1e-9, "of the published list, in dollars")
			assert.Zero(t, o.Spot, "no source has spot prices there")
		}
	}
}

func TestUnknownRegion(t *testing.T) {
	_, err := catalogue.Load("us-esat-1")
	var unknown *catalogue.UnknownRegionError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, "us-east-1", unknown.Nearest)
	for _, name := range []string{"", "../types", "moon-base-1"} {
		_, err := catalogue.Load(name)
		require.ErrorAs(t, err, &unknown, name)
	}
}

func TestRegionsOf(t *testing.T) {
	assert.Contains(t, catalogue.RegionsOf("m5.large"), "eu-west-1")
	assert.Empty(t, catalogue.RegionsOf("m5.larg"))
	assert.Empty(t, catalogue.RegionsOf("zone"), "words of the format are no types")
}

func ExampleLoad() {
	region, err := catalogue.Load("us-east-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range region.Offers {
		if o.Name == "m5.large" {
			fmt.Println(o.VCPUs, "vCPU", o.MemoryMiB, "MiB", o.OnDemand, "USD/h of", region.OnDemandDate)
		}
	}
	// Output: 2 vCPU 8192 MiB 0.096 USD/h of 2026-07-06
}

func ExampleSources() {
	for _, s := range catalogue.Sources()[:1] {
		fmt.Println(s.Package, s.Version, s.Date)
	}
	// Output: moto 5.2.3 2026-08-22
}

func ExampleHash() {
	fmt.Println(len(catalogue.Hash()))
	// Output: 64
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		r, err := catalogue.Load("us-east-1")
		require.NoError(b, err)
		require.Greater(b, len(r.Offers), 1300)
	}
}

func ExampleTypes() {
	types, err := catalogue.Types()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(types[0].Name, types[0].VCPUs)
	// Output: a1.2xlarge 8
}

func ExampleRegionsOf() {
	fmt.Println(catalogue.RegionsOf("hpc6a.48xlarge"))
	// Output: [ap-southeast-1 ap-southeast-2 eu-north-1 us-east-2 us-gov-east-1 us-gov-west-1]
}

func ExampleRegions() {
	fmt.Println(catalogue.Regions()[:2])
	// Output: [af-south-1 ap-east-1]
}

func ExampleUnknownRegionError() {
	_, err := catalogue.Load("eu-wset-1")
	fmt.Println(err)
	// Output: catalogue: no region "eu-wset-1" (did you mean "eu-west-1"?)
}
