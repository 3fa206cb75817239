package instancetypes_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

func quantities(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func text(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

// offer is an offering in a zone.
func offer(zone, capacityType string, price float64) instancetypes.Offering {
	return instancetypes.Offering{Price: price, Available: true, Requirements: requirements.MustOf(
		requirements.In(corev1.LabelTopologyZone, zone), requirements.In(instancetypes.LabelCapacityType, capacityType))}
}

func small() instancetypes.InstanceType {
	return instancetypes.InstanceType{
		Name: "small",
		Requirements: requirements.MustOf(
			requirements.In(corev1.LabelInstanceTypeStable, "small"), requirements.In(corev1.LabelArchStable, "amd64"),
			requirements.In(corev1.LabelTopologyZone, "a", "b"), requirements.In(instancetypes.LabelCapacityType, "spot", "on-demand")),
		Offerings: []instancetypes.Offering{offer("a", "on-demand", 0.1), offer("a", "spot", 0.04), offer("b", "on-demand", 0.1), offer("b", "spot", 0.05)},
		Capacity:  quantities("cpu", "2", "memory", "8Gi", "hugepages-2Mi", "1Gi", "pods", "29"),
		Overhead: instancetypes.Overhead{
			KubeReserved: quantities("cpu", "70m", "memory", "574Mi"), SystemReserved: quantities("cpu", "30m"), EvictionThreshold: quantities("memory", "100Mi"),
		},
	}
}

func TestAllocatable(t *testing.T) {
	s := small()
	assert.Equal(t, map[string]string{"cpu": "1900m", "memory": "6494Mi", "hugepages-2Mi": "1Gi", "pods": "29"}, text(s.Allocatable()))
	assert.Equal(t, map[string]string{"cpu": "100m", "memory": "674Mi"}, text(s.Overhead.Total()))

	s.Overhead.SystemReserved = quantities("cpu", "3", "memory", "7Ei", "nvidia.com/gpu", "1")
	assert.Equal(t, map[string]string{"cpu": "0", "memory": "0", "hugepages-2Mi": "1Gi", "pods": "29"}, text(s.Allocatable()), "never below zero, nothing that the type lacks")
	huge := quantities("memory", "9223372036854775807")
	s.Overhead = instancetypes.Overhead{KubeReserved: huge, SystemReserved: huge}
	assert.Equal(t, "0", text(s.Allocatable())["memory"], "sums do not wrap around")
	assert.Empty(t, instancetypes.InstanceType{}.Allocatable())
}

// The breakdown's own figures must add up to its result, for any overhead.
func TestBreakdownAddsUp(t *testing.T) {
	for _, s := range small().Breakdown() {
		assert.Equal(t, max(0, s.Capacity-s.KubeReserved-s.SystemReserved-s.EvictionThreshold-s.Hugepages), s.Allocatable, s.Resource)
	}
}

func TestPrices(t *testing.T) {
	s := small()
	for name, c := range map[string]struct {
		ask          requirements.Set
		least, worst float64
		ok           bool
	}{
		"anything":  {requirements.Set{}, 0.04, 0.05, true},
		"on-demand": {requirements.MustOf(requirements.In(instancetypes.LabelCapacityType, "on-demand")), 0.1, 0.1, true},
		"zone b":    {requirements.MustOf(requirements.In(corev1.LabelTopologyZone, "b")), 0.05, 0.05, true},
		"zone c":    {requirements.MustOf(requirements.In(corev1.LabelTopologyZone, "c")), 0, 0, false},
		"nothing":   {requirements.Impossible(), 0, 0, false},
	} {
		least, ok := s.LeastPrice(c.ask)
		assert.Equal(t, c.ok, ok, name)
		assert.InDelta(t, c.least, least, 1e-12, name)
		worst, ok := s.WorstLaunchPrice(c.ask)
		assert.Equal(t, c.ok, ok, name)
		assert.InDelta(t, c.worst, worst, 1e-12, name)
	}
	s.Offerings = append(s.Offerings, offer("c", "spot", 0.02))
	worst, _ := s.WorstLaunchPrice(requirements.Set{})
	assert.InDelta(t, 0.05, worst, 1e-12, "the dearest, not the last")
	s.Offerings = append(s.Offerings, offer("a", "reserved", 0.00001))
	worst, _ = s.WorstLaunchPrice(requirements.Set{})
	assert.InDelta(t, 0.00001, worst, 1e-12, "reserved comes before spot")
	for i := range s.Offerings {
		s.Offerings[i].Available = false
	}
	_, ok := s.LeastPrice(requirements.Set{})
	assert.False(t, ok, "what is not available has no price")
	assert.Zero(t, testing.AllocsPerRun(50, func() { s.LeastPrice(requirements.Set{}) }))
}

func named(name string, price float64) instancetypes.InstanceType {
	return instancetypes.InstanceType{
		Name: name, Requirements: requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, name), requirements.In("family", name[:1])),
		Offerings: []instancetypes.Offering{offer("a", "on-demand", price)}, Capacity: quantities("cpu", "4"),
	}
}

func names(types []instancetypes.InstanceType) []string {
	var out []string
	for _, t := range types {
		out = append(out, t.Name)
	}
	return out
}

func TestByPrice(t *testing.T) {
	gone := named("gone", 0.01)
	gone.Offerings[0].Available = false
	types := []instancetypes.InstanceType{gone, named("d", 2), named("b", 1), named("c", 1), named("a", 3)}
	assert.Equal(t, []string{"b", "c", "d", "a", "gone"}, names(instancetypes.ByPrice(types, requirements.Set{})))
	assert.Equal(t, []string{"gone", "d", "b", "c", "a"}, names(types), "the argument keeps its order")
}

func TestCompatibleAndFitting(t *testing.T) {
	types := []instancetypes.InstanceType{small(), named("big", 1)}
	ask := requirements.MustOf(requirements.In(corev1.LabelArchStable, "amd64"), requirements.In("team", "x"))
	assert.Empty(t, instancetypes.Compatible(types, ask, instancetypes.WellKnown()), "nobody carries the label team")
	open := instancetypes.WellKnown().Union(requirements.KeysOf("team"))
	assert.Equal(t, []string{"small", "big"}, names(instancetypes.Compatible(types, ask, open)), "big does not say its architecture")
	elsewhere := requirements.MustOf(requirements.In(corev1.LabelTopologyZone, "b"))
	assert.Equal(t, []string{"small"}, names(instancetypes.Compatible(types, elsewhere, open)))

	assert.Equal(t, []string{"big"}, names(instancetypes.Fitting(types, quantities("cpu", "1901m"))))
	assert.Equal(t, []string{"small", "big"}, names(instancetypes.Fitting(types, quantities("cpu", "1900m"))))
	assert.Empty(t, instancetypes.Fitting(types, quantities("nvidia.com/gpu", "1")))
}

func TestMinValues(t *testing.T) {
	types := []instancetypes.InstanceType{named("a1", 1), named("a2", 2), named("b1", 3), named("c1", 4)}
	anything := requirements.Set{}
	for name, c := range map[string]struct {
		min  map[string]int
		want int
		ok   bool
	}{
		"none":      {nil, 0, true},
		"zero":      {map[string]int{"family": 0}, 0, true},
		"one":       {map[string]int{"family": 1}, 1, true},
		"two":       {map[string]int{"family": 2}, 3, true},
		"two keys":  {map[string]int{"family": 2, corev1.LabelInstanceTypeStable: 4}, 4, true},
		"too many":  {map[string]int{"family": 4}, 4, false},
		"unlabeled": {map[string]int{"other": 1}, 4, false},
	} {
		n, err := instancetypes.MinValues(types, anything, c.min)
		assert.Equal(t, c.want, n, name)
		assert.Equal(t, c.ok, err == nil, name)
	}
	_, err := instancetypes.MinValues(types, requirements.MustOf(requirements.In("family", "a", "b")), map[string]int{"family": 3})
	var short *instancetypes.MinValuesError
	require.ErrorAs(t, err, &short, "values that are not asked for do not count")
	assert.Equal(t, &instancetypes.MinValuesError{Key: "family", Want: 3, Have: 2}, short)
}

// The values of a label are those of the offerings that can be bought, wherever the label is written.
func TestMinValuesCountsOfferings(t *testing.T) {
	zone, capacity := corev1.LabelTopologyZone, instancetypes.LabelCapacityType
	of := func(labels string, offers ...instancetypes.Offering) instancetypes.InstanceType {
		return instancetypes.InstanceType{Name: "t", Requirements: requirements.MustParse(labels), Offerings: offers}
	}
	offers := []instancetypes.Offering{instancetypes.Offer("a", "spot", 1), instancetypes.Offer("b", "on-demand", 1), instancetypes.Offer("c", "spot", 1).Stock("", 0)}
	for name, c := range map[string]struct {
		types []instancetypes.InstanceType
		ask   string
		key   string
		have  int
	}{
		"zones of offerings":         {[]instancetypes.InstanceType{of("", offers...)}, "", zone, 2},
		"capacity types":             {[]instancetypes.InstanceType{of("", offers...)}, "", capacity, 2},
		"zones of the type, too":     {[]instancetypes.InstanceType{of(zone+" in (a,b,c,d)", offers...)}, "", zone, 2},
		"what is asked for":          {[]instancetypes.InstanceType{of("", offers...)}, zone + " in (b,c)", zone, 1},
		"what another label allows":  {[]instancetypes.InstanceType{of("", offers...)}, capacity + "=spot", zone, 1},
		"of several types":           {[]instancetypes.InstanceType{of("", offers[0]), of("", offers[0], offers[1])}, "", zone, 2},
		"labels of the type":         {[]instancetypes.InstanceType{of("team in (x,y,z)", offers...)}, "", "team", 3},
		"none can be bought":         {[]instancetypes.InstanceType{of("team in (x,y,z)", offers[2])}, "", "team", 0},
		"a type without an offering": {[]instancetypes.InstanceType{of("team in (x,y,z)")}, "", "team", 3},
	} {
		ask := requirements.Set{}
		if c.ask != "" {
			ask = requirements.MustParse(c.ask)
		}
		_, err := instancetypes.MinValues(c.types, ask, map[string]int{c.key: c.have})
		require.NoError(t, err, name)
		_, err = instancetypes.MinValues(c.types, ask, map[string]int{c.key: c.have + 1})
		var short *instancetypes.MinValuesError
		require.ErrorAs(t, err, &short, name)
		assert.Equal(t, c.have, short.Have, name)
	}
}

func TestTruncate(t *testing.T) {
	types := []instancetypes.InstanceType{named("c1", 4), named("b1", 3), named("a2", 2), named("a1", 1)}
	got, err := instancetypes.Truncate(types, 3, requirements.Set{}, map[string]int{"family": 2})
	require.NoError(t, err)
	assert.Equal(t, []string{"a1", "a2", "b1"}, names(got))
	got, err = instancetypes.Truncate(types, 2, requirements.Set{}, map[string]int{"family": 2})
	require.Error(t, err, "the two cheapest are of one family")
	assert.Equal(t, []string{"a1", "a2"}, names(got))
	got, err = instancetypes.Truncate(types, -1, requirements.Set{}, nil)
	require.NoError(t, err)
	assert.Empty(t, got)
}

func TestRevive(t *testing.T) {
	old := named("p3", 3)
	old.Retired, old.Offerings[0].Available = true, false
	noPrice := named("p2", 0)
	noPrice.Retired, noPrice.Offerings[0].Available = true, false
	gone := named("m4", 1)
	gone.Offerings[0].Available = false
	types := []instancetypes.InstanceType{old, noPrice, named("m5", 1), gone}
	keys := requirements.KeysOf(corev1.LabelInstanceTypeStable, "family")
	available := func(ask requirements.Set) []string {
		return names(instancetypes.Compatible(instancetypes.Revive(types, ask, keys), ask, keys))
	}
	assert.Equal(t, []string{"m5"}, available(requirements.Set{}))
	assert.Equal(t, []string{"m5"}, available(requirements.MustOf(requirements.NotIn("family", "x"))), "not ruled out is not named")
	assert.Equal(t, []string{"p3"}, available(requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, "p3", "p2"))), "p2 has no price")
	assert.Equal(t, []string{"p3"}, available(requirements.MustOf(requirements.In("family", "p"))))
	assert.Empty(t, available(requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, "m4"))), "sold out is not retired")
	assert.False(t, types[0].Offerings[0].Available, "the argument stays as it was")
}

func TestValidate(t *testing.T) {
	require.NoError(t, instancetypes.Validate([]instancetypes.InstanceType{small(), named("b", 1)}))
	require.NoError(t, instancetypes.Validate(nil))
	for want, spoil := range map[string]func(*instancetypes.InstanceType){
		"[1].name: empty":                   func(i *instancetypes.InstanceType) { i.Name = "" },
		"is the name of [0], too":           func(i *instancetypes.InstanceType) { i.Name = "small" },
		"contradict each other":             func(i *instancetypes.InstanceType) { i.Requirements = requirements.Impossible() },
		"this cannot be bought":             func(i *instancetypes.InstanceType) { i.Offerings[0].Requirements = requirements.Impossible() },
		"price (b): NaN":                    func(i *instancetypes.InstanceType) { i.Offerings[0].Price = math.NaN() },
		"price (b): +Inf":                   func(i *instancetypes.InstanceType) { i.Offerings[0].Price = math.Inf(1) },
		"price (b): -1":                     func(i *instancetypes.InstanceType) { i.Offerings[0].Price = -1 },
		"no machine costs that much":        func(i *instancetypes.InstanceType) { i.Offerings[0].Price = 1e7 },
		"reservationCount (b): -1":          func(i *instancetypes.InstanceType) { i.Offerings[0].ReservationCount = -1 },
		"the same offering as offerings[0]": func(i *instancetypes.InstanceType) { i.Offerings = append(i.Offerings, i.Offerings[0]) },
		"capacity[cpu] (b): -1":             func(i *instancetypes.InstanceType) { i.Capacity = quantities("cpu", "-1") },
		"capacity[memory] (b): 1Ei":         func(i *instancetypes.InstanceType) { i.Capacity = quantities("memory", "1Ei") },
		"overhead.kubeReserved[cpu]":        func(i *instancetypes.InstanceType) { i.Overhead.KubeReserved = quantities("cpu", "-1") },
		"overhead.systemReserved[cpu]":      func(i *instancetypes.InstanceType) { i.Overhead.SystemReserved = quantities("cpu", "-1") },
		"overhead.evictionThreshold[cpu]":   func(i *instancetypes.InstanceType) { i.Overhead.EvictionThreshold = quantities("cpu", "-1") },
	} {
		broken := named("b", 1)
		spoil(&broken)
		err := instancetypes.Validate([]instancetypes.InstanceType{small(), broken})
		var invalid *instancetypes.InvalidError
		if assert.ErrorAs(t, err, &invalid, want) {
			assert.ErrorContains(t, err, want)
		}
	}
}

// An offering that contradicts its type can never be bought, whatever the label is. A label on which both agree, or from
// which the offering chooses, is fine.
func TestValidateComparesOfferingsWithTheirType(t *testing.T) {
	for ask, want := range map[string]string{
		"topology.kubernetes.io/zone in (z)":            `[0].offerings[0].requirements (t): contradict those of the type, so this cannot be bought: requirements: topology.kubernetes.io/zone: "topology.kubernetes.io/zone in (z)" and "topology.kubernetes.io/zone in (a)" have nothing in common`,
		"karpenter.sh/capacity-type in (on-demand)":     "karpenter.sh/capacity-type",
		"!karpenter.sh/capacity-type":                   "karpenter.sh/capacity-type",
		"topology.kubernetes.io/zone notin (a)":         "topology.kubernetes.io/zone",
		"topology.kubernetes.io/zone in (a,z)":          "",
		"topology.kubernetes.io/zone":                   "",
		"karpenter.sh/capacity-type in (spot),x in (y)": "",
	} {
		it := instancetypes.InstanceType{Name: "t", Requirements: requirements.MustParse(ask), Offerings: []instancetypes.Offering{instancetypes.Offer("a", "spot", 1)}}
		err := instancetypes.Validate([]instancetypes.InstanceType{it})
		var invalid *instancetypes.InvalidError
		if want == "" {
			assert.NoError(t, err, ask)
		} else if assert.ErrorAs(t, err, &invalid, ask) {
			assert.ErrorContains(t, err, want)
			assert.Equal(t, "[0].offerings[0].requirements", invalid.Path)
		}
		it.Offerings[0].Available = false // nor can it be later
		assert.Equal(t, want != "", instancetypes.Validate([]instancetypes.InstanceType{it}) != nil, ask)
	}
	alike := instancetypes.New("t", map[string]string{corev1.LabelTopologyZone: "z"}, quantities("cpu", "1"), instancetypes.Offer("a", "spot", 1))
	assert.Error(t, instancetypes.Validate([]instancetypes.InstanceType{alike}))
}

// Keys and values that no label can have are rejected in types and in offerings, however the requirements were made.
func TestValidateRejectsWhatIsNoLabel(t *testing.T) {
	long := strings.Repeat("x", 64)
	with := func(s requirements.Set) (out []instancetypes.InstanceType) {
		return []instancetypes.InstanceType{{Name: "t", Requirements: s}, {Name: "u", Offerings: []instancetypes.Offering{{Requirements: s, Price: 1}}}}
	}
	for name, s := range map[string]requirements.Set{
		"key with a space":   requirements.FromLabels(map[string]string{"a b": "x"}),
		"empty key":          requirements.FromLabels(map[string]string{"": "x"}),
		"two slashes":        requirements.FromLabels(map[string]string{"a/b/c": "x"}),
		"capital prefix":     requirements.FromLabels(map[string]string{"Example.com/b": "x"}),
		"long key":           requirements.MustOf(requirements.Exists(long)),
		"absent key":         requirements.MustOf(requirements.DoesNotExist("a b")),
		"node name":          requirements.MustOf(requirements.In(requirements.NodeNameKey, "n")),
		"value with a space": requirements.FromLabels(map[string]string{"a": "x y"}),
		"long value":         requirements.FromLabels(map[string]string{"a": long}),
		"one of many":        requirements.MustOf(requirements.In("a", "x", "y", "-z")),
		"negative number":    requirements.MustOf(requirements.In("a", "-1")),
		"excluded value":     requirements.MustOf(requirements.NotIn("a", "x y")),
		"beside numbers":     requirements.MustOf(requirements.Gte("a", 5).Union(requirements.In("a", "x y"))),
		"excluded, numbers":  requirements.MustOf(requirements.NotIn("a", "x y").Intersect(requirements.Gte("a", 9).Complement())),
	} {
		err := instancetypes.Validate(with(s))
		if assert.Error(t, err, name) {
			assert.ErrorContains(t, err, "[0].requirements (t)", name)
			assert.ErrorContains(t, err, "[1].offerings[0].requirements (u)", name)
		}
	}
	require.NoError(t, instancetypes.Validate(with(requirements.MustParse("a>5, b<7, d notin (x_1.y,12), example.com/e, !f"))))
	require.ErrorContains(t, instancetypes.Validate([]instancetypes.InstanceType{instancetypes.New("no name", nil, quantities("cpu", "1"))}), `"no name" is not a value of the label node.kubernetes.io/instance-type`)
}

func ExampleInstanceType_Allocatable() {
	t := instancetypes.InstanceType{
		Capacity: quantities("cpu", "2", "memory", "7577Mi"),
		Overhead: instancetypes.Overhead{KubeReserved: quantities("cpu", "70m", "memory", "574Mi"), EvictionThreshold: quantities("memory", "100Mi")},
	}
	left := t.Allocatable()
	fmt.Println(left.Cpu(), left.Memory())
	// Output: 1930m 6903Mi
}

func ExampleInstanceType_Breakdown() {
	t := instancetypes.InstanceType{Capacity: quantities("cpu", "2"), Overhead: instancetypes.Overhead{KubeReserved: quantities("cpu", "70m")}}
	for _, s := range t.Breakdown() {
		fmt.Println(s.Resource, s.Capacity, "-", s.KubeReserved, "=", s.Allocatable)
	}
	// Output: cpu 2000 - 70 = 1930
}

func ExampleInstanceType_LeastPrice() {
	t := instancetypes.InstanceType{Offerings: []instancetypes.Offering{offer("a", "on-demand", 0.1), offer("b", "spot", 0.04)}}
	fmt.Println(t.LeastPrice(requirements.Set{}))
	fmt.Println(t.LeastPrice(requirements.MustOf(requirements.In(corev1.LabelTopologyZone, "a"))))
	fmt.Println(t.LeastPrice(requirements.MustOf(requirements.In(corev1.LabelTopologyZone, "c"))))
	// Output:
	// 0.04 true
	// 0.1 true
	// 0 false
}

func ExampleByPrice() {
	for _, t := range instancetypes.ByPrice([]instancetypes.InstanceType{named("large", 0.2), named("small", 0.1)}, requirements.Set{}) {
		fmt.Println(t.Name)
	}
	// Output:
	// small
	// large
}

func ExampleCompatible() {
	types := []instancetypes.InstanceType{named("small", 0.1), named("large", 0.2)}
	ask := requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, "large"))
	for _, t := range instancetypes.Compatible(types, ask, instancetypes.WellKnown()) {
		fmt.Println(t.Name)
	}
	// Output: large
}

func ExampleMinValues() {
	types := []instancetypes.InstanceType{named("a1", 1), named("b1", 2)}
	_, err := instancetypes.MinValues(types, requirements.Set{}, map[string]int{"family": 3})
	fmt.Println(err)
	// Output: instancetypes: minValues of family: want 3 different values, these types have 2
}

func ExampleTruncate() {
	types := []instancetypes.InstanceType{named("c", 3), named("b", 2), named("a", 1)}
	cheapest, err := instancetypes.Truncate(types, 2, requirements.Set{}, nil)
	fmt.Println(len(cheapest), cheapest[0].Name, err)
	// Output: 2 a <nil>
}

func ExampleRevive() {
	old := named("p3", 3)
	old.Retired, old.Offerings[0].Available = true, false
	ask := requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, "p3"))
	revived := instancetypes.Revive([]instancetypes.InstanceType{old}, ask, requirements.KeysOf(corev1.LabelInstanceTypeStable))
	fmt.Println(revived[0].Offerings[0].Available)
	// Output: true
}

func ExampleValidate() {
	fmt.Println(instancetypes.Validate([]instancetypes.InstanceType{{Name: "a", Offerings: []instancetypes.Offering{{Price: -1}}}}))
	// Output: instancetypes: [0].offerings[0].price (a): -1: want no negative price
}

func BenchmarkByPrice(b *testing.B) {
	var types []instancetypes.InstanceType
	for i := range 1000 {
		types = append(types, named(fmt.Sprintf("t%03d", i), float64((i*7919)%1000)))
	}
	require.Equal(b, "t000", instancetypes.ByPrice(types, requirements.Set{})[0].Name)
	for b.Loop() {
		instancetypes.ByPrice(types, requirements.Set{})
	}
}

func ExampleInstanceType_WorstLaunchPrice() {
	t := instancetypes.InstanceType{Offerings: []instancetypes.Offering{offer("a", "on-demand", 0.1), offer("a", "spot", 0.04), offer("b", "spot", 0.05)}}
	fmt.Println(t.WorstLaunchPrice(requirements.Set{}))
	// Output: 0.05 true
}

func ExampleFitting() {
	for _, t := range instancetypes.Fitting([]instancetypes.InstanceType{named("small", 1), {Name: "none"}}, quantities("cpu", "2")) {
		fmt.Println(t.Name)
	}
	// Output: small
}

func ExampleWellKnown() {
	fmt.Println(instancetypes.WellKnown().Contains(instancetypes.LabelCapacityType), instancetypes.WellKnown().Contains("example.com/team"))
	// Output: true false
}

// A request of volumes is held by a type without a limit, and by one whose limit is high enough.
func TestFittingCountsVolumes(t *testing.T) {
	const volumes = corev1.ResourceName("attachable-volumes-csi-disk.example.com")
	of := func(name string, n string) instancetypes.InstanceType {
		out := instancetypes.InstanceType{Name: name, Capacity: corev1.ResourceList{"cpu": resource.MustParse("4")}}
		if n != "" {
			out.Capacity[volumes] = resource.MustParse(n)
		}
		return out
	}
	var names []string
	for _, it := range instancetypes.Fitting([]instancetypes.InstanceType{of("any", ""), of("few", "2"), of("enough", "3")}, corev1.ResourceList{"cpu": resource.MustParse("1"), volumes: resource.MustParse("3")}) {
		names = append(names, it.Name)
	}
	assert.Equal(t, []string{"any", "enough"}, names)
}

// A deep copy is equal, and no change of it shows in the original.
func TestClone(t *testing.T) {
	s := small()
	s.Offerings[0].List = &instancetypes.PriceList{Name: "list"}
	types := []instancetypes.InstanceType{s}
	copied := instancetypes.Clone(types)
	assert.Equal(t, types, copied)
	copied[0].Name, copied[0].Offerings[0].Price, copied[0].Offerings[0].List.Name = "other", 7, "other"
	for _, list := range []corev1.ResourceList{copied[0].Capacity, copied[0].Overhead.KubeReserved, copied[0].Overhead.SystemReserved, copied[0].Overhead.EvictionThreshold} {
		list["new"] = resource.MustParse("1")
	}
	want := small()
	want.Offerings[0].List = &instancetypes.PriceList{Name: "list"}
	assert.Equal(t, []instancetypes.InstanceType{want}, types)
}
