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

// WellKnown returns the keys that are undecided for an EC2 node that is not bought yet.
func WellKnown() requirements.Keys {
	return instancetypes.WellKnown().Union(label.Keys()).
		Union(requirements.KeysOf(instancetypes.LabelReservationID, instancetypes.LabelZoneID))
}

// Naming returns the keys by which a retired type can be named explicitly, see
// [instancetypes.Revive].
func Naming() requirements.Keys {
	return requirements.KeysOf(corev1.LabelInstanceTypeStable, label.Family)
}

// scheme splits a family into category and generation: m5 into m and 5, u-6tb1 into u and 1. It
// does not match mac-m4.
var scheme = regexp.MustCompile(`^([a-z]+)(?:-[0-9]+tb)?([0-9]+).*\.`)

// labeler builds requirement sets. A catalogue has a thousand types but few families. So a type's
// set is a cheap merge of what its family shares and the few labels of its own size.
type labeler struct {
	compiled
	region  string
	known   map[[2]string]requirements.Requirement
	placed  map[placeKey]requirements.Set
	shared  map[sharedKey]requirements.Set
	without requirements.Set // for the devices of a type without any
}

func newLabeler(c compiled, region string) *labeler {
	l := &labeler{
		compiled: c, region: region, known: map[[2]string]requirements.Requirement{},
		placed: map[placeKey]requirements.Set{}, shared: map[sharedKey]requirements.Set{},
	}
	l.without = l.devices(describe.Description{})
	return l
}

// placeKey is what the requirements of place and payment depend on.
type placeKey struct{ zones, use string }

// sharedKey is what the shared requirements of a family depend on.
type sharedKey struct {
	place                                  placeKey
	family, category, generation           string
	architecture, manufacturer, hypervisor string
	encrypts, devices                      bool
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

// optional returns a requirement of one value. Without a value it says that nodes do not have the
// key.
func (l *labeler) optional(key, value string) requirements.Requirement {
	if value == "" {
		return requirements.DoesNotExist(key)
	}
	return l.in(key, value)
}

// size returns a requirement of a number. If the number is 0, it says that nodes do not have the
// key.
func (l *labeler) size(key string, n int64) requirements.Requirement {
	if n == 0 {
		return requirements.DoesNotExist(key)
	}
	return l.in(key, strconv.FormatInt(n, 10))
}

// set returns what a node of the type is and what it can be.
func (l *labeler) set(o catalogue.Offer) requirements.Set {
	d := o.Description
	_, after, _ := strings.Cut(d.Name, ".")
	nvme := int64(0)
	if d.LocalNVMe {
		nvme = d.LocalStorageGB
	}
	own := make([]requirements.Requirement, 0, 10)
	own = append(own,
		// The keys are in order, so there is nothing to sort. The name belongs to one type, so it
		// is not shared.
		l.in(label.CPU, strconv.FormatInt(d.VCPUs, 10)),
		l.in(label.CPUSustainedClockSpeed, strconv.FormatInt(d.ClockMHz, 10)),
		l.size(label.EBSBandwidth, d.EBSMbps),
		l.size(label.LocalNVMe, nvme),
		l.in(label.Memory, strconv.FormatInt(d.MemoryMiB, 10)),
		l.size(label.NetworkBandwidth, d.NetworkMbps),
	)
	if l.LegacyLabels {
		own = append(own, l.in(label.Pods, strconv.FormatInt(l.pods(d), 10)))
	}
	own = append(own, l.optional(label.Size, after), requirements.In(corev1.LabelInstanceTypeStable, d.Name))
	mine, _ := requirements.Of(own...) // each key once
	s, _ := l.family(o).Intersect(mine)
	if len(d.GPUs)+len(d.Neuron)+len(d.Accelerators) > 0 {
		s, _ = s.Intersect(l.devices(d))
	}
	return s
}

// family returns what the type shares with others, including devices if it has none.
func (l *labeler) family(o catalogue.Offer) requirements.Set {
	d := o.Description
	at, place := l.place(o)
	key := sharedKey{
		place: at, architecture: architecture(d), manufacturer: strings.ToLower(d.CPUManufacturer), hypervisor: d.Hypervisor,
		encrypts: d.EncryptionInTransit, devices: len(d.GPUs)+len(d.Neuron)+len(d.Accelerators) > 0,
	}
	key.family, _, _ = strings.Cut(d.Name, ".")
	if m := scheme.FindStringSubmatch(d.Name); m != nil {
		key.category, key.generation = m[1], m[2]
	}
	if have, ok := l.shared[key]; ok {
		return have
	}
	var b requirements.Builder
	b.AddSet(place)
	if !key.devices {
		b.AddSet(l.without)
	}
	b.Add(l.in(corev1.LabelArchStable, key.architecture))
	b.Add(l.optional(label.Category, key.category))
	b.Add(l.optional(label.Generation, key.generation))
	b.Add(l.optional(label.Family, key.family))
	b.Add(l.optional(label.CPUManufacturer, key.manufacturer))
	b.Add(l.in(label.Hypervisor, key.hypervisor))
	b.Add(l.in(label.EncryptionInTransit, strconv.FormatBool(key.encrypts)))
	b.Add(l.in(label.CapabilityFlex, strconv.FormatBool(strings.Contains(key.family, "-flex"))))
	s, _ := b.Set() // each key once
	l.shared[key] = s
	return s
}

// devices returns the labels of GPUs and accelerators, for types with exactly one kind.
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

// place returns where the type can be and how it can be bought. Types for which both are equal
// share the result.
func (l *labeler) place(o catalogue.Offer) (placeKey, requirements.Set) {
	names, ids := make([]string, 0, len(o.Zones)), make([]string, 0, len(o.Zones))
	for _, z := range o.Zones {
		names = append(names, z.Name)
		if z.ID != "" {
			ids = append(ids, z.ID)
		}
	}
	key := placeKey{zones: strings.Join(slices.Concat(names, ids), ","), use: strings.Join(capacityTypes(o.Description), ",")}
	if have, ok := l.placed[key]; ok {
		return key, have
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
	// A type that is offered nowhere, or only in ways that nodes cannot use, is impossible.
	s, _ := requirements.Of(rs...)
	l.placed[key] = s
	return key, s
}

// capacityTypes returns the capacity types of the usage classes by which a node can be bought.
func capacityTypes(d describe.Description) []string {
	out := make([]string, 0, 2)
	for _, use := range []string{instancetypes.CapacityTypeOnDemand, instancetypes.CapacityTypeSpot} {
		if slices.Contains(d.UsageClasses, use) {
			out = append(out, use)
		}
	}
	if len(out) == 0 && slices.Contains(d.UsageClasses, "capacity-block") {
		return []string{instancetypes.CapacityTypeReserved}
	}
	return out
}

// kebab turns names into label values.
func kebab(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }
