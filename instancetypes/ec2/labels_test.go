package ec2_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
	"github.com/joinery-sdk/joinery/requirements"
)

func byName(t *testing.T, s ec2.Settings) map[string]instancetypes.InstanceType {
	t.Helper()
	r, err := catalogue.Load("us-east-1")
	require.NoError(t, err)
	types, err := ec2.Types(r, s)
	require.NoError(t, err)
	out := map[string]instancetypes.InstanceType{}
	for _, it := range types {
		out[it.Name] = it
	}
	return out
}

// The wanted labels are those of the published reference.
func TestLabels(t *testing.T) {
	types := byName(t, ec2.Settings{})
	west, err := ec2.Catalogue("us-west-2")
	require.NoError(t, err)
	for _, it := range west {
		if it.Name == "dl2q.24xlarge" {
			types[it.Name] = it
		}
	}
	for name, want := range map[string]string{
		"m5.large":           "category m, family m5, generation 5, size large, cpu 2, memory 8192, cpu-manufacturer intel, cpu-sustained-clock-speed-mhz 3100, ebs-bandwidth 4750, network-bandwidth 750, hypervisor nitro, encryption-in-transit-supported false, capability-flex false, gpu-name -, local-nvme -, accelerator-name -",
		"g4dn.xlarge":        "gpu-name t4, gpu-manufacturer nvidia, gpu-count 1, gpu-memory 16384, local-nvme 125, cpu-sustained-clock-speed-mhz 2500, ebs-bandwidth 3500, network-bandwidth 5000, encryption-in-transit-supported true",
		"c7gd.4xlarge":       "local-nvme 950, cpu-sustained-clock-speed-mhz 2600, ebs-bandwidth 10000, network-bandwidth 7500, cpu-manufacturer aws",
		"p5.48xlarge":        "local-nvme 30400, cpu-sustained-clock-speed-mhz 3600, ebs-bandwidth 80000, network-bandwidth 3200000, gpu-name h100, gpu-count 8, gpu-memory 81920",
		"m7i-flex.large":     "family m7i-flex, category m, generation 7, capability-flex true",
		"u-6tb1.112xlarge":   "category u, generation 1, family u-6tb1, size 112xlarge",
		"u7i-12tb.224xlarge": "category u, generation 7",
		"m5.metal":           "size metal",
		"inf2.xlarge":        "accelerator-name inferentia2, accelerator-manufacturer aws, accelerator-count 1, gpu-name -",
		"trn1.32xlarge":      "accelerator-name trainium, accelerator-manufacturer aws, accelerator-count 16",
		"dl2q.24xlarge":      "accelerator-name qualcomm-ai100, accelerator-manufacturer qualcomm, accelerator-count 8",
		"g4ad.16xlarge":      "gpu-name radeon-pro-v520, gpu-manufacturer amd, gpu-count 4",
		"g6f.large":          "gpu-count 0, gpu-name l4",
		"t2.micro":           "hypervisor xen",
	} {
		for pair := range strings.SplitSeq(want, ", ") {
			key, value, _ := strings.Cut(pair, " ")
			r := types[name].Requirements.Get(label.Group + "/instance-" + key)
			if value == "-" {
				assert.True(t, r.Equal(requirements.DoesNotExist(r.Key())), "%s has no %s, got %s", name, key, r)
				continue
			}
			got, ok := r.Single()
			assert.True(t, ok, "%s %s", name, key)
			assert.Equal(t, value, got, "%s %s", name, key)
		}
	}
	hypervisor, ok := types["m5.metal"].Requirements.Get(label.Hypervisor).Single()
	assert.True(t, ok)
	assert.Empty(t, hypervisor, "bare metal has the label, empty")
}

func TestPlaces(t *testing.T) {
	it := byName(t, ec2.Settings{})["m5.large"]
	zones, _ := it.Requirements.Get(corev1.LabelTopologyZone).Values()
	assert.Equal(t, []string{"us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1f"}, zones)
	ids, _ := it.Requirements.Get(instancetypes.LabelZoneID).Values()
	assert.Len(t, ids, 5)
	require.Len(t, it.Offerings, 10)
	for i, o := range it.Offerings {
		assert.True(t, o.Available)
		want := []float64{0.096, 0.03168}[i%2]
		assert.InDelta(t, want, o.Price, 1e-9)
		assert.Equal(t, []string{"on-demand", "spot"}[i%2], o.CapacityType())
		zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
		assert.Equal(t, zones[i/2], zone)
	}
}

// A pod that names a reservation must not be put on a node that has none.
func TestReservationsAreNotOpen(t *testing.T) {
	it := byName(t, ec2.Settings{})["m5.large"]
	ask := requirements.MustOf(requirements.In(instancetypes.LabelReservationID, "cr-1"))
	assert.False(t, ask.Compatible(it.Requirements, ec2.WellKnown()))
	_, ok := it.LeastPrice(ask)
	assert.False(t, ok)
}

func TestFamiliesAndTheirTypes(t *testing.T) {
	all := byName(t, ec2.Settings{})
	windows := byName(t, ec2.Settings{Family: ec2.Windows2022})
	assert.Contains(t, all, "m6g.large")
	assert.NotContains(t, windows, "m6g.large")
	assert.Equal(t, "windows", windows["m5.large"].Requirements.Labels()[corev1.LabelOSStable])
	assert.Equal(t, "10.0.20348", windows["m5.large"].Requirements.Labels()[corev1.LabelWindowsBuild])
	for name := range all {
		assert.False(t, strings.HasPrefix(name, "mac"), name)
	}
	_, buyable := all["a1.large"].LeastPrice(requirements.Set{})
	assert.False(t, buyable, "AL2023 does not run on the first Graviton")
	_, buyable = byName(t, ec2.Settings{Family: ec2.AL2})["a1.large"].LeastPrice(requirements.Set{})
	assert.True(t, buyable)
}

func TestRetiredTypesAreBoughtOnlyWhenNamed(t *testing.T) {
	all := byName(t, ec2.Settings{})
	old := all["p3.2xlarge"]
	require.True(t, old.Retired)
	_, ok := old.LeastPrice(requirements.Set{})
	assert.False(t, ok)
	ask := requirements.MustOf(requirements.In(label.Family, "p3"))
	price, ok := instancetypes.Revive([]instancetypes.InstanceType{old}, ask, ec2.Naming())[0].LeastPrice(ask)
	assert.True(t, ok)
	assert.Positive(t, price)
	broad := requirements.MustOf(requirements.In(label.Category, "p"))
	_, ok = instancetypes.Revive([]instancetypes.InstanceType{old}, broad, ec2.Naming())[0].LeastPrice(broad)
	assert.False(t, ok)
}

func TestLegacyLabels(t *testing.T) {
	assert.False(t, byName(t, ec2.Settings{})["m5.large"].Requirements.Has(label.Pods))
	assert.Equal(t, "29", byName(t, ec2.Settings{LegacyLabels: true})["m5.large"].Requirements.Labels()[label.Pods])
}

// Every label that a type carries is either open for a node yet to be bought or the older provider's.
func TestWellKnownCoversLabels(t *testing.T) {
	for name, it := range byName(t, ec2.Settings{}) {
		for r := range it.Requirements.All() {
			assert.True(t, ec2.WellKnown().Contains(r.Key()), "%s %s", name, r.Key())
		}
	}
}

func TestEveryRegionAndFamilyIsSound(t *testing.T) {
	for _, name := range catalogue.Regions() {
		r, err := catalogue.Load(name)
		require.NoError(t, err)
		for _, family := range []ec2.Family{ec2.AL2023, ec2.Windows2022, ec2.Bottlerocket} {
			types, err := ec2.Types(r, ec2.Settings{Family: family})
			require.NoError(t, err)
			require.NoError(t, instancetypes.Validate(types), "%s %s", name, family)
		}
		if testing.Short() {
			break
		}
	}
}

func TestCatalogueSurvivesJSON(t *testing.T) {
	types, err := ec2.Catalogue("us-west-1")
	require.NoError(t, err)
	data, err := kwok.Write(types)
	require.NoError(t, err)
	again, err := kwok.Read(data)
	require.NoError(t, err)
	require.Len(t, again, len(types))
	for i, want := range types {
		for key, q := range want.Allocatable() {
			got := again[i].Allocatable()[key]
			assert.Zero(t, q.Cmp(got), "%s %s", want.Name, key)
		}
		assert.Equal(t, want.Retired, again[i].Retired)
		assert.True(t, again[i].Requirements.Subset(want.Requirements), want.Name)
	}
}

func TestProvisionerDefaults(t *testing.T) {
	parse := requirements.MustParse
	for asked, want := range map[string]string{
		"": "karpenter.k8s.aws/instance-category in (c,m,r), karpenter.k8s.aws/instance-generation>2, karpenter.sh/capacity-type in (on-demand), kubernetes.io/arch in (amd64), kubernetes.io/os in (linux)",
		"node.kubernetes.io/instance-type in (t3.large), kubernetes.io/arch in (arm64)":                "kubernetes.io/arch in (arm64), node.kubernetes.io/instance-type in (t3.large), karpenter.sh/capacity-type in (on-demand), kubernetes.io/os in (linux)",
		"karpenter.sh/capacity-type in (spot,on-demand), karpenter.k8s.aws/instance-family notin (m5)": "karpenter.k8s.aws/instance-family notin (m5), karpenter.sh/capacity-type in (on-demand,spot), kubernetes.io/arch in (amd64), kubernetes.io/os in (linux)",
	} {
		got := ec2.ProvisionerDefaults(parse(asked))
		assert.True(t, parse(want).Equal(got), "%q gave %s", asked, got)
	}
	assert.True(t, ec2.ProvisionerDefaults(requirements.Impossible()).IsImpossible())
}

func ExampleProvisionerDefaults() {
	asked := requirements.MustOf(requirements.In(label.Family, "m5"), requirements.In(instancetypes.LabelCapacityType, "spot"))
	fmt.Println(ec2.ProvisionerDefaults(asked))
	// Output: karpenter.k8s.aws/instance-family in (m5), karpenter.sh/capacity-type in (spot), kubernetes.io/arch in (amd64), kubernetes.io/os in (linux)
}

func ExampleWellKnown() {
	fmt.Println(ec2.WellKnown().Contains(label.Category), ec2.WellKnown().Contains("example.com/team"))
	// Output: true false
}

func TestWithDescriptions(t *testing.T) {
	r, err := catalogue.Load("us-east-1")
	require.NoError(t, err)
	live := []describe.Description{
		{Name: "trn2u.48xlarge", Architectures: []string{"x86_64"}, Virtualizations: []string{"hvm"}, UsageClasses: []string{"on-demand"}, VCPUs: 192, MemoryMiB: 2097152},
		{Name: "zz9.large", Architectures: []string{"arm64"}, Virtualizations: []string{"hvm"}, UsageClasses: []string{"on-demand"}, VCPUs: 2, MemoryMiB: 4096},
		{Name: "x8aedz.large", Architectures: []string{"x86_64"}, Virtualizations: []string{"hvm"}, UsageClasses: []string{"on-demand"}, VCPUs: 2, MemoryMiB: 65536},
		{Name: "p3.2xlarge", Architectures: []string{"x86_64"}, Virtualizations: []string{"hvm"}, UsageClasses: []string{"on-demand"}, VCPUs: 8, MemoryMiB: 62464},
		{Name: "m5.large", Architectures: []string{"x86_64"}, Virtualizations: []string{"hvm"}, UsageClasses: []string{"spot"}, VCPUs: 3, MemoryMiB: 4096},
	}
	got := ec2.WithDescriptions(r, live)
	require.Len(t, got.Offers, 5)
	m5, p3, trn, x8, zz := got.Offers[0], got.Offers[1], got.Offers[2], got.Offers[3], got.Offers[4]
	require.Len(t, trn.Neuron, 1, "EC2 does not name its accelerators")
	assert.Equal(t, int64(16), trn.Neuron[0].Count)
	assert.Equal(t, int64(8), x8.BranchInterfaces, "other regions know the type")
	assert.Positive(t, x8.NetworkMbps)
	assert.Equal(t, int64(3), m5.VCPUs, "the answer holds")
	assert.Equal(t, int64(9), m5.BranchInterfaces, "what it does not tell is the catalogue's")
	assert.Equal(t, int64(750), m5.NetworkMbps)
	assert.False(t, p3.Retired, "the account can still buy it")
	assert.Equal(t, r.Zones, zz.Zones, "new types are offered everywhere")
	assert.Zero(t, zz.OnDemand)
	assert.Greater(t, len(r.Offers), 1300, "the argument stays as it was")

	types, err := ec2.Types(got, ec2.Settings{})
	require.NoError(t, err)
	_, ok := types[4].LeastPrice(requirements.Set{})
	assert.False(t, ok, "without a price nothing can be bought")
}
