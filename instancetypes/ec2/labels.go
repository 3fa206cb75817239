package ec2

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/requirements"
)

// WellKnown is the set of keys that an EC2 node yet to be bought leaves open.
func WellKnown() requirements.Keys {
	return instancetypes.WellKnown().Union(label.Keys()).
		Union(requirements.KeysOf(instancetypes.LabelReservationID, instancetypes.LabelZoneID))
}

// Naming is the set of keys by which a retired type is named outright: see [instancetypes.Revive].
func Naming() requirements.Keys {
	return requirements.KeysOf(corev1.LabelInstanceTypeStable, label.Family)
}

// scheme splits a family into category and generation: m5 is m and 5, u-6tb1 is u and 1, mac-m4 is neither.
var scheme = regexp.MustCompile(`^([a-z]+)(?:-[0-9]+tb)?([0-9]+).*\.`)

// labeler makes requirement sets and shares equal parts among types: a catalogue has a thousand types and few different
// values of each key.
type labeler struct {
	compiled
	region  string
	known   map[[2]string]requirements.Requirement
	placed  map[placeKey]requirements.Set
	without requirements.Set // the devices of a type that has none
}

func newLabeler(c compiled, region string) *labeler {
	l := &labeler{compiled: c, region: region, known: map[[2]string]requirements.Requirement{}, placed: map[placeKey]requirements.Set{}}
	l.without = l.devices(describe.Description{})
	return l
}

// placeKey is what the shared part of a type's requirements depends on.
type placeKey struct {
	zones *catalogue.Zone // the first: offers in the same zones share one slice
	count int
	use   string
}

func (l *labeler) in(key, value string) requirements.Requirement {
	at := [2]string{key, value}
	r, ok := l.known[at]
	if !ok {
		r = requirements.In(key, value)
		l.known[at] = r
	}
	return r
}

// set is what a node of the type is, and what it can be.
func (l *labeler) set(o catalogue.Offer) requirements.Set {
	d := o.Description
	var b requirements.Builder
	// Whole sets first: they grow the builder in few steps.
	b.AddSet(l.place(o))
	if len(d.GPUs)+len(d.Neuron)+len(d.Accelerators) == 0 {
		b.AddSet(l.without)
	} else {
		b.AddSet(l.devices(d))
	}
	value := func(key, v string) { b.Add(l.in(key, v)) }
	number := func(key string, n int64) { value(key, strconv.FormatInt(n, 10)) }
	// What a type does not have, its nodes are known not to carry.
	optional := func(key, v string) {
		if v == "" {
			b.Add(requirements.DoesNotExist(key))
		} else {
			value(key, v)
		}
	}
	size := func(key string, n int64) {
		if n == 0 {
			b.Add(requirements.DoesNotExist(key))
		} else {
			number(key, n)
		}
	}
	family, after, _ := strings.Cut(d.Name, ".")
	category, generation := "", ""
	if m := scheme.FindStringSubmatch(d.Name); m != nil {
		category, generation = m[1], m[2]
	}
	value(corev1.LabelInstanceTypeStable, d.Name)
	value(corev1.LabelArchStable, architecture(d))
	optional(label.Category, category)
	optional(label.Generation, generation)
	optional(label.Family, family)
	optional(label.Size, after)
	number(label.CPU, d.VCPUs)
	number(label.Memory, d.MemoryMiB)
	optional(label.CPUManufacturer, strings.ToLower(d.CPUManufacturer))
	number(label.CPUSustainedClockSpeed, d.ClockMHz)
	size(label.EBSBandwidth, d.EBSMbps)
	size(label.NetworkBandwidth, d.NetworkMbps)
	nvme := int64(0)
	if d.LocalNVMe {
		nvme = d.LocalStorageGB
	}
	size(label.LocalNVMe, nvme)
	value(label.Hypervisor, d.Hypervisor)
	value(label.EncryptionInTransit, strconv.FormatBool(d.EncryptionInTransit))
	value(label.CapabilityFlex, strconv.FormatBool(strings.Contains(family, "-flex")))
	if l.LegacyLabels {
		number(label.Pods, l.pods(d))
	}
	s, _ := b.Set() // each key is added once
	return s
}

// devices are the labels of GPUs and accelerators: of types with exactly one kind.
func (l *labeler) devices(d describe.Description) requirements.Set {
	var b requirements.Builder
	put := func(key, v string) { b.Add(l.in(key, v)) }
	none := func(keys ...string) {
		for _, key := range keys {
			b.Add(requirements.DoesNotExist(key))
		}
	}
	if len(d.GPUs) == 1 {
		g := d.GPUs[0]
		put(label.GPUName, kebab(g.Name))
		put(label.GPUManufacturer, kebab(g.Manufacturer))
		put(label.GPUCount, strconv.FormatInt(g.Count, 10))
		put(label.GPUMemory, strconv.FormatInt(g.MemoryMiB, 10))
	} else {
		none(label.GPUName, label.GPUManufacturer, label.GPUCount, label.GPUMemory)
	}
	switch {
	case len(d.Neuron) > 0:
		put(label.AcceleratorName, kebab(d.Neuron[0].Name))
		put(label.AcceleratorManufacturer, "aws")
		put(label.AcceleratorCount, strconv.FormatInt(d.Neuron[0].Count, 10))
	case len(d.Accelerators) == 1:
		a := d.Accelerators[0]
		put(label.AcceleratorName, kebab(a.Name))
		put(label.AcceleratorManufacturer, kebab(a.Manufacturer))
		put(label.AcceleratorCount, strconv.FormatInt(a.Count, 10))
	default:
		none(label.AcceleratorName, label.AcceleratorManufacturer, label.AcceleratorCount)
	}
	s, _ := b.Set() // each key once
	return s
}

// place is where the type can be and how it can be bought; shared by all types of which both are alike.
func (l *labeler) place(o catalogue.Offer) requirements.Set {
	key := placeKey{count: len(o.Zones), use: strings.Join(capacityTypes(o.Description), ",")}
	if key.count > 0 {
		key.zones = &o.Zones[0]
	}
	if have, ok := l.placed[key]; ok {
		return have
	}
	names, ids := make([]string, 0, len(o.Zones)), make([]string, 0, len(o.Zones))
	for _, z := range o.Zones {
		names = append(names, z.Name)
		if z.ID != "" {
			ids = append(ids, z.ID)
		}
	}
	rs := []requirements.Requirement{
		requirements.In(corev1.LabelTopologyRegion, l.region),
		requirements.In(corev1.LabelTopologyZone, names...),
		requirements.In(instancetypes.LabelCapacityType, capacityTypes(o.Description)...),
		requirements.In(label.Tenancy, "default", "dedicated"),
		requirements.DoesNotExist(instancetypes.LabelReservationID),
		requirements.DoesNotExist(label.ReservationType),
		requirements.DoesNotExist(label.ReservationInterruptible),
		requirements.DoesNotExist(label.PlacementGroupID),
		requirements.DoesNotExist(label.PlacementGroupPartition),
	}
	if len(ids) == len(names) {
		rs = append(rs, requirements.In(instancetypes.LabelZoneID, ids...))
	}
	if l.windowsBuild == "" {
		rs = append(rs, requirements.In(corev1.LabelOSStable, "linux"), requirements.DoesNotExist(corev1.LabelWindowsBuild))
	} else {
		rs = append(rs, requirements.In(corev1.LabelOSStable, "windows"), requirements.In(corev1.LabelWindowsBuild, l.windowsBuild))
	}
	// Offered nowhere, or as nothing that a node can be, is impossible, and so is the type then.
	s, _ := requirements.Of(rs...)
	l.placed[key] = s
	return s
}

// capacityTypes are those of the usage classes that a node can be bought by.
func capacityTypes(d describe.Description) []string {
	out := make([]string, 0, 2)
	for _, use := range []string{instancetypes.CapacityTypeOnDemand, instancetypes.CapacityTypeSpot} {
		if slices.Contains(d.UsageClasses, use) {
			out = append(out, use)
		}
	}
	return out
}

// kebab is how names become label values.
func kebab(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }
