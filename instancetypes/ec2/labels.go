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

// labeler makes requirement sets. A catalogue has a thousand types and few families, so a type's set is the cheap merge
// of what it shares with its family and the few labels of its own size.
type labeler struct {
	compiled
	region  string
	known   map[[2]string]requirements.Requirement
	placed  map[placeKey]requirements.Set
	shared  map[sharedKey]requirements.Set
	without requirements.Set // the devices of a type that has none
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
type placeKey struct {
	zones *catalogue.Zone // the first: offers in the same zones share one slice
	count int
	use   string
}

// sharedKey is what the requirements that types of a family share depend on.
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

// optional is a requirement of one value, or that nodes are known not to carry the key if there is no value.
func (l *labeler) optional(key, value string) requirements.Requirement {
	if value == "" {
		return requirements.DoesNotExist(key)
	}
	return l.in(key, value)
}

// size is a requirement of a number, or that nodes are known not to carry the key if it is 0.
func (l *labeler) size(key string, n int64) requirements.Requirement {
	if n == 0 {
		return requirements.DoesNotExist(key)
	}
	return l.in(key, strconv.FormatInt(n, 10))
}

// set is what a node of the type is, and what it can be.
func (l *labeler) set(o catalogue.Offer) requirements.Set {
	d := o.Description
	_, after, _ := strings.Cut(d.Name, ".")
	nvme := int64(0)
	if d.LocalNVMe {
		nvme = d.LocalStorageGB
	}
	own := make([]requirements.Requirement, 0, 10)
	own = append(own,
		// In the order of the keys, so that there is nothing to sort. The name is of one type: nothing to share.
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

// family is what the type shares with others, devices included where it has none.
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
func (l *labeler) place(o catalogue.Offer) (placeKey, requirements.Set) {
	key := placeKey{count: len(o.Zones), use: strings.Join(capacityTypes(o.Description), ",")}
	if key.count > 0 {
		key.zones = &o.Zones[0]
	}
	if have, ok := l.placed[key]; ok {
		return key, have
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
	return key, s
}

// capacityTypes are those of the usage classes that a node can be bought by.
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

// kebab is how names become label values.
func kebab(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }
