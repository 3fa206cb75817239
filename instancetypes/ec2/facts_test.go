package ec2_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
)

// fact is what the shared collection of EC2 facts says of one type.
type fact struct {
	VCPU, MemoryMiB, MaxENIs, DefaultCardENIs, IPv4PerENI, EFA, EniMaxPods int64
	Arch                                                                   []string
	GPUs                                                                   []struct {
		Name, Manufacturer string
		Count, MemoryMiB   int64
	}
	BranchENIs int64
	TrunkENI   bool
	Regions    map[string]struct {
		OnDemandUSDPerHour float64
		Zones              []string
	}
}

func facts(t *testing.T) map[string]fact {
	t.Helper()
	data, err := os.ReadFile("../../../shared/data/ec2-facts.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../shared/data/ec2-facts.json beside the repository: nothing to compare the catalogue with")
	}
	require.NoError(t, err)
	var file struct{ Types map[string]fact }
	require.NoError(t, json.Unmarshal(data, &file))
	return file.Types
}

// The collection was made from other copies of AWS's figures; where the two differ, the table says why.
func TestFactsAgree(t *testing.T) {
	region, err := catalogue.Load("us-east-1")
	require.NoError(t, err)
	offered := map[string]catalogue.Offer{}
	for _, o := range region.Offers {
		offered[o.Name] = o
	}
	all, err := catalogue.Types()
	require.NoError(t, err)
	arch := map[string]string{"x86_64": "amd64", "arm64": "arm64", "i386": "i386"}
	found, priced := 0, 0
	have := facts(t)
	differ := map[string]string{}
	for _, d := range all {
		f, ok := have[d.Name]
		if !ok {
			continue
		}
		found++
		assert.Equal(t, f.VCPU, d.VCPUs, d.Name)
		assert.Equal(t, f.MemoryMiB, d.MemoryMiB, d.Name)
		assert.Equal(t, f.MaxENIs, d.MaxInterfaces, d.Name)
		assert.Equal(t, f.DefaultCardENIs, d.DefaultCardInterfaces, d.Name)
		assert.Equal(t, f.IPv4PerENI, d.IPv4PerInterface, d.Name)
		assert.Equal(t, f.EFA, d.EFAInterfaces, d.Name)
		var as []string
		for _, a := range d.Architectures {
			as = append(as, arch[a])
		}
		assert.Equal(t, f.Arch, as, d.Name)
		if assert.Len(t, d.GPUs, len(f.GPUs), d.Name) {
			for i, g := range f.GPUs {
				assert.Equal(t, fmt.Sprint(g.Manufacturer, g.Name, g.Count, g.MemoryMiB), fmt.Sprint(d.GPUs[i].Manufacturer, d.GPUs[i].Name, d.GPUs[i].Count, d.GPUs[i].MemoryMiB), d.Name)
			}
		}
		if f.BranchENIs != d.BranchInterfaces && f.TrunkENI {
			differ[d.Name] = fmt.Sprintf("branch interfaces %d, here %d", f.BranchENIs, d.BranchInterfaces)
		}
		o := offered[d.Name]
		there, ok := f.Regions["us-east-1"]
		if !ok {
			continue
		}
		var zones []string
		for _, z := range o.Zones {
			zones = append(zones, z.Name[len(z.Name)-1:])
		}
		assert.Equal(t, there.Zones, zones, d.Name)
		if there.OnDemandUSDPerHour > 0 {
			priced++
		}
		if there.OnDemandUSDPerHour != o.OnDemand {
			differ[d.Name] = fmt.Sprintf("price %v, here %v", there.OnDemandUSDPerHour, o.OnDemand)
		}
	}
	assert.GreaterOrEqual(t, found, 1360)
	assert.GreaterOrEqual(t, priced, 1340)
	assert.Equal(t, slices.Sorted(maps.Keys(explained())), slices.Sorted(maps.Keys(differ)), "%v", differ)

	known := map[string]bool{}
	for _, d := range all {
		known[d.Name] = true
	}
	for name, f := range have {
		if !known[name] {
			assert.Contains(t, f.Arch[0], "_mac", "%s is left out, and only macOS machines should be", name)
		}
	}
}

// explained are the differences and their reasons.
func explained() map[string]string {
	out := map[string]string{}
	for _, size := range []string{"2xlarge", "4xlarge", "8xlarge", "12xlarge", "24xlarge", "48xlarge"} {
		out["g7."+size] = "launched between our price list (2026-07-06) and theirs (2026-07-20): no price here, so unavailable"
	}
	return out
}
