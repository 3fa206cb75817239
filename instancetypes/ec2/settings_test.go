package ec2_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

// breakdown returns the steps of a type of us-east-1 under the given settings.
func breakdown(t *testing.T, name string, s ec2.Settings) map[corev1.ResourceName]instancetypes.Step {
	t.Helper()
	r, err := catalogue.Load("us-east-1")
	require.NoError(t, err)
	r.Offers = slices.DeleteFunc(r.Offers, func(o catalogue.Offer) bool { return o.Name != name })
	types, err := ec2.Types(r, s)
	require.NoError(t, err)
	for _, it := range types {
		if it.Name == name {
			out := map[corev1.ResourceName]instancetypes.Step{}
			for _, step := range it.Breakdown() {
				out[step.Resource] = step
			}
			return out
		}
	}
	require.Fail(t, "no such type", name)
	return nil
}

func TestPodsAndReservedMemory(t *testing.T) {
	for _, c := range []struct {
		name      string
		settings  ec2.Settings
		pods, mib int64
	}{
		{"t3.large", ec2.Settings{}, 35, 640},
		{"m6idn.32xlarge", ec2.Settings{}, 394, 4589},
		{"m5.xlarge", ec2.Settings{}, 58, 893},
		// Whoever limits pods gets no memory back, unless the family counts the pods that are allowed.
		{"t3.large", ec2.Settings{Family: ec2.AL2, Kubelet: ec2.Kubelet{MaxPods: new(int32(10))}}, 10, 640},
		{"t3.large", ec2.Settings{Family: ec2.AL2023, Kubelet: ec2.Kubelet{MaxPods: new(int32(10))}}, 10, 640},
		{"t3.large", ec2.Settings{Family: ec2.Custom, Kubelet: ec2.Kubelet{MaxPods: new(int32(10))}}, 10, 640},
		{"t3.large", ec2.Settings{Family: ec2.Ubuntu, Kubelet: ec2.Kubelet{MaxPods: new(int32(10))}}, 10, 640},
		{"t3.large", ec2.Settings{Family: ec2.Bottlerocket, Kubelet: ec2.Kubelet{MaxPods: new(int32(10))}}, 10, 365},
		{"t3.large", ec2.Settings{Family: ec2.Windows2022, Kubelet: ec2.Kubelet{MaxPods: new(int32(10))}}, 10, 365},
		{"t3.large", ec2.Settings{ReservedENIs: 1}, 24, 640},
		{"t3.large", ec2.Settings{Family: ec2.Bottlerocket, ReservedENIs: 1}, 24, 519},
		{"t3.large", ec2.Settings{Family: ec2.Windows2019, ReservedENIs: 1}, 110, 1465},
		{"t3.large", ec2.Settings{ReservedENIs: 1_000_000}, 0, 640},
		{"t3.large", ec2.Settings{ReservedENIs: 3}, 0, 640}, // not even those on the host's network
		{"t3.large", ec2.Settings{NoENIDensity: true}, 110, 640},
		{"m6idn.32xlarge", ec2.Settings{EFAOnly: 1, EFAOnlyFirstCard: 1}, 345, 4589},
		{"m5.xlarge", ec2.Settings{Kubelet: ec2.Kubelet{MaxPods: new(int32(20)), PodsPerCore: new(int32(4))}}, 16, 893},
		{"m5.2xlarge", ec2.Settings{Kubelet: ec2.Kubelet{MaxPods: new(int32(20)), PodsPerCore: new(int32(4))}}, 20, 893},
		{"m5.xlarge", ec2.Settings{Family: ec2.Bottlerocket, Kubelet: ec2.Kubelet{PodsPerCore: new(int32(4))}}, 58, 893},
		{"m5.xlarge", ec2.Settings{Kubelet: ec2.Kubelet{PodsPerCore: new(int32(0))}}, 58, 893},
		{"m5.large", ec2.Settings{PrefixDelegation: true}, 110, 574},
		{"m5.16xlarge", ec2.Settings{PrefixDelegation: true}, 250, 8362},
		{"t3.nano", ec2.Settings{PrefixDelegation: true}, 34, 299},
	} {
		steps := breakdown(t, c.name, c.settings)
		assert.Equal(t, c.pods, steps[corev1.ResourcePods].Capacity, "%s %+v", c.name, c.settings)
		assert.Equal(t, c.mib<<20, steps[corev1.ResourceMemory].KubeReserved, "%s %+v", c.name, c.settings)
	}
}

func TestEviction(t *testing.T) {
	kubelet := func(hard, soft map[string]string) ec2.Settings {
		return ec2.Settings{Kubelet: ec2.Kubelet{EvictionHard: hard, EvictionSoft: soft}}
	}
	older := func(s ec2.Settings) ec2.Settings { s.SoftEviction = true; return s }
	one := func(v string) map[string]string { return map[string]string{"memory.available": v} }
	disk := func(v string) map[string]string { return map[string]string{"nodefs.available": v} }
	const mib, gib = int64(1 << 20), int64(1 << 30)
	for name, c := range map[string]struct {
		settings     ec2.Settings
		memory, disk int64
	}{
		"defaults":                {ec2.Settings{}, 100 * mib, 2 * gib},
		"hard":                    {kubelet(one("500Mi"), nil), 500 * mib, 2 * gib},
		"share of capacity":       {kubelet(one("10%"), nil), 794506036, 2 * gib}, // ceil(7577 MiB / 10)
		"100% turns it off":       {kubelet(one("100%"), nil), 0, 2 * gib},
		"disk":                    {kubelet(disk("5Gi"), nil), 100 * mib, 5 * gib},
		"soft does not count":     {kubelet(nil, one("500Mi")), 100 * mib, 2 * gib},
		"soft counts in v1alpha5": {older(kubelet(nil, one("500Mi"))), 500 * mib, 2 * gib},
		"even below the default":  {older(kubelet(nil, one("50Mi"))), 50 * mib, 2 * gib},
		"the greater counts":      {older(kubelet(one("200Mi"), one("500Mi"))), 500 * mib, 2 * gib},
		"hard may be greater":     {older(kubelet(one("700Mi"), one("500Mi"))), 700 * mib, 2 * gib},
	} {
		steps := breakdown(t, "m5.large", c.settings)
		assert.Equal(t, c.memory, steps[corev1.ResourceMemory].EvictionThreshold, name)
		assert.Equal(t, c.disk, steps[corev1.ResourceEphemeralStorage].EvictionThreshold, name)
	}
	s := older(kubelet(nil, one("500Mi")))
	s.Family = ec2.Bottlerocket
	assert.Equal(t, 100*mib, breakdown(t, "m5.large", s)[corev1.ResourceMemory].EvictionThreshold, "Bottlerocket never had soft thresholds")
}

func TestReserved(t *testing.T) {
	s := ec2.Settings{Kubelet: ec2.Kubelet{
		KubeReserved:   corev1.ResourceList{"cpu": resource.MustParse("200m")},
		SystemReserved: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")},
	}}
	steps := breakdown(t, "m5.large", s)
	assert.Equal(t, int64(200), steps["cpu"].KubeReserved)
	assert.Equal(t, int64(574<<20), steps["memory"].KubeReserved, "keys that are not set keep their default")
	assert.Equal(t, int64(1700), steps["cpu"].Allocatable)
	assert.Equal(t, int64(6903-1024)<<20, steps["memory"].Allocatable)
}

func TestEphemeralStorage(t *testing.T) {
	const gib = int64(1 << 30)
	disk := func(device string, gibs int64, root bool) ec2.BlockDevice {
		return ec2.BlockDevice{Device: device, Bytes: gibs * gib, Root: root}
	}
	for name, c := range map[string]struct {
		typ      string
		settings ec2.Settings
		want     int64
	}{
		"default":                      {"m5.large", ec2.Settings{}, 20 * gib},
		"Windows":                      {"m5.large", ec2.Settings{Family: ec2.Windows2022}, 50 * gib},
		"the family's device":          {"m5.large", ec2.Settings{Family: ec2.AL2, BlockDevices: []ec2.BlockDevice{disk("/dev/xvdb", 10, false), disk("/dev/xvda", 50, false)}}, 50 * gib},
		"another device":               {"m5.large", ec2.Settings{Family: ec2.AL2, BlockDevices: []ec2.BlockDevice{disk("/dev/xvdb", 50, false)}}, 20 * gib},
		"Bottlerocket's data":          {"m5.large", ec2.Settings{Family: ec2.Bottlerocket, BlockDevices: []ec2.BlockDevice{disk("/dev/xvda", 4, false), disk("/dev/xvdb", 80, false)}}, 80 * gib},
		"Ubuntu's device":              {"m5.large", ec2.Settings{Family: ec2.Ubuntu, BlockDevices: []ec2.BlockDevice{disk("/dev/sda1", 30, false)}}, 30 * gib},
		"root wins":                    {"m5.large", ec2.Settings{BlockDevices: []ec2.BlockDevice{disk("/dev/xvda", 50, false), disk("/dev/sdf", 70, true)}}, 70 * gib},
		"Custom takes the last":        {"m5.large", ec2.Settings{Family: ec2.Custom, BlockDevices: []ec2.BlockDevice{disk("/dev/a", 50, false), disk("/dev/b", 60, false)}}, 60 * gib},
		"Custom without disks":         {"m5.large", ec2.Settings{Family: ec2.Custom}, 20 * gib},
		"snapshot size unknown":        {"m5.large", ec2.Settings{BlockDevices: []ec2.BlockDevice{disk("/dev/xvda", 0, false)}}, 20 * gib},
		"RAID0":                        {"i4i.xlarge", ec2.Settings{RAID0: true, BlockDevices: []ec2.BlockDevice{disk("/dev/xvda", 50, true)}}, 937_000_000_000},
		"RAID0 where there is no disk": {"m5.large", ec2.Settings{RAID0: true}, 20 * gib},
	} {
		assert.Equal(t, c.want, breakdown(t, c.typ, c.settings)[corev1.ResourceEphemeralStorage].Capacity, name)
	}
}

func TestHypervisorMemory(t *testing.T) {
	capacity := func(s ec2.Settings) int64 { return breakdown(t, "m5.large", s)[corev1.ResourceMemory].Capacity >> 20 }
	assert.Equal(t, int64(7577), capacity(ec2.Settings{}))
	assert.Equal(t, int64(7577), capacity(ec2.Settings{VMMemory: ec2.FlatVMMemory(0.075)}))
	assert.Equal(t, int64(8192), capacity(ec2.Settings{VMMemory: ec2.FlatVMMemory(0)}))
	assert.Equal(t, int64(7372), capacity(ec2.Settings{VMMemory: ec2.FlatVMMemory(0.1)}))
	learned := ec2.LearnedVMMemory(map[string]int64{"m5.large": 7800}, nil)
	assert.Equal(t, int64(7800), capacity(ec2.Settings{VMMemory: learned}))
	assert.Equal(t, int64(15155), breakdown(t, "m5.xlarge", ec2.Settings{VMMemory: learned})[corev1.ResourceMemory].Capacity>>20)
	mad := func(describe.Description, int64) int64 { return -1 << 40 }
	assert.Equal(t, int64(8192), capacity(ec2.Settings{VMMemory: mad}), "nobody adds memory")
}

// The two forms of the flat share must agree on every type that is sold.
func TestFlatShareIsExact(t *testing.T) {
	types, err := catalogue.Types()
	require.NoError(t, err)
	for _, d := range types {
		for _, mib := range []int64{d.MemoryMiB, d.MemoryMiB - 64} {
			assert.Equal(t, (mib*75+999)/1000, ec2.FlatVMMemory(0.075)(d, mib), d.Name)
		}
	}
}

func TestDevices(t *testing.T) {
	for _, c := range []struct {
		typ      string
		settings ec2.Settings
		want     map[corev1.ResourceName]int64
	}{
		{"m5.large", ec2.Settings{}, map[corev1.ResourceName]int64{ec2.ResourcePodENI: 9, ec2.ResourceEFA: 0, ec2.ResourceNVIDIA: 0}},
		{"m5.large", ec2.Settings{NoPodENI: true}, map[corev1.ResourceName]int64{ec2.ResourcePodENI: 0}},
		{"m5.large", ec2.Settings{Family: ec2.Windows2022}, map[corev1.ResourceName]int64{ec2.ResourcePrivateIPv4: 9}},
		{"t3.small", ec2.Settings{}, map[corev1.ResourceName]int64{ec2.ResourcePodENI: 0}},
		{"i3.large", ec2.Settings{}, map[corev1.ResourceName]int64{ec2.ResourcePodENI: 0}},
		{"m5.metal", ec2.Settings{}, map[corev1.ResourceName]int64{ec2.ResourcePodENI: 120}},
		{"g4dn.8xlarge", ec2.Settings{}, map[corev1.ResourceName]int64{ec2.ResourceNVIDIA: 1, ec2.ResourceEFA: 1}},
		{"g4ad.16xlarge", ec2.Settings{}, map[corev1.ResourceName]int64{ec2.ResourceAMD: 4, ec2.ResourceNVIDIA: 0}},
		{"p5.48xlarge", ec2.Settings{}, map[corev1.ResourceName]int64{ec2.ResourceNVIDIA: 8, ec2.ResourceEFA: 32}},
		{"p5.48xlarge", ec2.Settings{EFAOnly: 3}, map[corev1.ResourceName]int64{ec2.ResourceEFA: 3}},
		{"dl1.24xlarge", ec2.Settings{}, map[corev1.ResourceName]int64{ec2.ResourceGaudi: 8}},
		{"inf2.24xlarge", ec2.Settings{}, map[corev1.ResourceName]int64{ec2.ResourceNeuron: 6, ec2.ResourceNeuronCore: 12}},
		{"trn1.32xlarge", ec2.Settings{}, map[corev1.ResourceName]int64{ec2.ResourceNeuron: 16, ec2.ResourceNeuronCore: 32, ec2.ResourceEFA: 8}},
		{"g6f.large", ec2.Settings{}, map[corev1.ResourceName]int64{ec2.ResourceNVIDIA: 0}},
		{"g6f.large", ec2.Settings{FractionalGPU: true}, map[corev1.ResourceName]int64{ec2.ResourceNVIDIA: 1}},
		{"g4dn.xlarge", ec2.Settings{FractionalGPU: true}, map[corev1.ResourceName]int64{ec2.ResourceNVIDIA: 1}},
	} {
		steps := breakdown(t, c.typ, c.settings)
		for name, want := range c.want {
			_, has := steps[name]
			assert.Equal(t, want, steps[name].Allocatable, "%s %s", c.typ, name)
			assert.Equal(t, want > 0, has, "%s: what it lacks is left out: %s", c.typ, name)
		}
	}
}

func TestSettingsRefused(t *testing.T) {
	bad := ec2.Settings{
		Family: "AL22", ReservedENIs: -1, BlockDevices: []ec2.BlockDevice{{Bytes: -1}},
		Kubelet: ec2.Kubelet{
			MaxPods: new(int32(-1)), PodsPerCore: new(int32(-1)), KubeReserved: corev1.ResourceList{"cpu": resource.MustParse("-1")},
			EvictionHard: map[string]string{"memory.available": "101%"}, EvictionSoft: map[string]string{"nodefs.available": "lots"},
		},
	}
	_, err := ec2.Types(catalogue.Region{}, bad)
	for _, want := range []string{`did you mean "AL2"?`, "reservedENIs", "blockDevices[0]", "maxPods: -1", "podsPerCore: -1", "kubeReserved[cpu]", "evictionHard[memory.available]", "evictionSoft[nodefs.available]"} {
		assert.ErrorContains(t, err, want)
	}
	assert.NoError(t, ec2.Settings{}.Validate())
}

func TestNotes(t *testing.T) {
	assert.Empty(t, ec2.Settings{Family: ec2.Bottlerocket}.Notes())
	s := ec2.Settings{SoftEviction: true, NoPodENI: true, NoENIDensity: true, PrefixDelegation: true, FractionalGPU: true, LegacyLabels: true, VMMemory: ec2.FlatVMMemory(0)}
	assert.Len(t, s.Notes(), 7, "every departure is named")
}

func TestWithGlobal(t *testing.T) {
	s, err := ec2.Settings{}.WithGlobal(map[string]string{
		"aws.enablePodENI": "false", "aws.enableENILimitedPodDensity": "false",
		"aws.vmMemoryOverheadPercent": "0.1", "aws.reservedENIs": "1", "aws.clusterName": "x",
	})
	require.NoError(t, err)
	assert.True(t, s.NoPodENI)
	assert.True(t, s.NoENIDensity)
	assert.Equal(t, int64(1), s.ReservedENIs)
	assert.Equal(t, int64(7372), breakdown(t, "m5.large", s)[corev1.ResourceMemory].Capacity>>20)

	s, err = ec2.Settings{}.WithGlobal(map[string]string{"aws.enablePodENI": "true", "aws.vmMemoryOverheadPercent": "0.075"})
	require.NoError(t, err)
	assert.Empty(t, s.Notes())

	_, err = ec2.Settings{}.WithGlobal(map[string]string{"aws.enablePodENI": "yes please", "aws.vmMemoryOverheadPercent": "7.5", "aws.reservedENIs": "-1", "aws.enableENILimitedPodDensity": ""})
	for _, want := range []string{"aws.enablePodENI", "aws.vmMemoryOverheadPercent", "aws.reservedENIs", "aws.enableENILimitedPodDensity"} {
		assert.ErrorContains(t, err, want)
	}
}

func ExampleTypes() {
	region, err := catalogue.Load("us-east-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	types, err := ec2.Types(region, ec2.Settings{Family: ec2.AL2, BlockDevices: []ec2.BlockDevice{{Device: "/dev/xvda", Bytes: 50 << 30}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range types {
		if t.Name == "m5.large" {
			left := t.Allocatable()
			fmt.Println(left.Cpu(), left.Memory(), left.Pods(), left.StorageEphemeral())
		}
	}
	// Output: 1930m 6903Mi 29 44Gi
}

func ExampleCatalogue() {
	types, err := ec2.Catalogue("us-east-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range types {
		if t.Name == "m5.large" {
			left := t.Allocatable()
			fmt.Println(left.Cpu(), left.Memory(), left.Pods())
		}
	}
	_, err = ec2.Catalogue("us-esat-1")
	fmt.Println(err)
	// Output:
	// 1930m 6903Mi 29
	// catalogue: no region "us-esat-1" (did you mean "us-east-1"?)
}

func ExampleParseFamily() {
	family, err := ec2.ParseFamily("bottlerocket")
	fmt.Println(family, err)
	_, err = ec2.ParseFamily("AL2032")
	fmt.Println(err)
	// Output:
	// Bottlerocket <nil>
	// ec2: no AMI family "AL2032": want one of AL2, AL2023, Bottlerocket, Custom, Ubuntu, Windows2019, Windows2022, Windows2025 (did you mean "AL2023"?)
}

func ExampleSettings_Notes() {
	fmt.Println(ec2.Settings{SoftEviction: true}.Notes())
	// Output: [soft eviction thresholds count, as for karpenter.sh/v1alpha5]
}
