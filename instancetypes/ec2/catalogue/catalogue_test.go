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
	dated := 0
	for _, name := range regions {
		r, err := catalogue.Load(name)
		require.NoError(t, err)
		require.NotEmpty(t, r.Zones, name)
		priced := 0
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
		}
		assert.Greater(t, priced, 100, name)
		if r.OnDemandDate != "" && r.SpotDate != "" {
			dated++
		}
	}
	assert.Equal(t, len(regions), dated, "every price list has a date")
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
	// Output: [ap-southeast-1 ap-southeast-2 eu-north-1 us-east-2]
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
