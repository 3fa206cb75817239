package scenario

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// Label keys of the made-up cloud, beside those of Kubernetes and Karpenter.
const (
	// LabelFamily is the kind of machine: c, m, r, g (with accelerators) or a (arm64).
	LabelFamily = "cloud.example.com/family"
	// LabelCPU is the number of CPUs, for Gt and Lt.
	LabelCPU = "cloud.example.com/cpu"
	// ResourceGPU is what machines of family g have.
	ResourceGPU corev1.ResourceName = "cloud.example.com/gpu"
)

// Type is an instance type in the JSON shape of Karpenter's KWOK provider, with two optional fields
// more.
type Type struct {
	Name             string              `json:"name"`
	Architecture     string              `json:"architecture"`
	OperatingSystems []corev1.OSName     `json:"operatingSystems"`
	Resources        corev1.ResourceList `json:"resources"`
	Offerings        []Offering          `json:"offerings"`
	// Requirements are further labels of the type.
	Requirements []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
	// Overhead is what of Resources pods cannot use.
	Overhead corev1.ResourceList `json:"overhead,omitempty"`
}

// Offering is a zone and a capacity type that a Type can be bought in.
type Offering struct {
	// Price is in USD per hour.
	Price        float64                          `json:"Price"`
	Available    bool                             `json:"Available"`
	Requirements []corev1.NodeSelectorRequirement `json:"Requirements"`
}

// WellKnownLabels are the keys that a node may have though its pool does not mention them.
func WellKnownLabels() []string { return []string{LabelFamily, LabelCPU} }

// Zones are those of the made-up cloud.
func Zones() []string { return []string{"zone-a", "zone-b", "zone-c"} }

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func offering(zone, capacityType string, price float64) Offering {
	return Offering{Price: price, Available: true, Requirements: []corev1.NodeSelectorRequirement{
		in(karpv1.CapacityTypeLabelKey, capacityType), in(corev1.LabelTopologyZone, zone),
	}}
}

func quantity(format string, args ...any) resource.Quantity {
	return resource.MustParse(fmt.Sprintf(format, args...))
}

// Linear is a catalogue in the manner of Karpenter's benchmark: type i has i CPUs, 2i GiB and room
// for 10i pods, at a price in proportion, spot in two zones and on demand in three.
func Linear(n int) []Type {
	var all []Type
	for i := 1; i <= n; i++ {
		t := Type{
			Name: fmt.Sprintf("linear-%d", i), Architecture: "amd64", OperatingSystems: []corev1.OSName{corev1.Linux},
			Resources: corev1.ResourceList{
				corev1.ResourceCPU: quantity("%d", i), corev1.ResourceMemory: quantity("%dGi", 2*i), corev1.ResourcePods: quantity("%d", 10*i),
			},
			Requirements: []corev1.NodeSelectorRequirement{in(LabelFamily, "linear"), in(LabelCPU, fmt.Sprint(i))},
			Overhead:     corev1.ResourceList{corev1.ResourceCPU: quantity("100m"), corev1.ResourceMemory: quantity("10Mi")},
		}
		price := 0.1*float64(i) + 0.1*float64(2*i)*1.073741824
		for z, zone := range Zones() {
			if z < 2 {
				t.Offerings = append(t.Offerings, offering(zone, karpv1.CapacityTypeSpot, price))
			}
			t.Offerings = append(t.Offerings, offering(zone, karpv1.CapacityTypeOnDemand, price))
		}
		all = append(all, t)
	}
	return all
}

// Cloud is a catalogue in the manner of a large cloud: five families, sizes from 2 to 96 CPUs,
// prices per family, spot at a third with zones that differ a little, and gaps: some families are
// not sold in some zones, and the largest not as spot.
func Cloud() []Type {
	families := []struct {
		name, arch      string
		memory          int // GiB per CPU
		price           float64
		gpu             int // CPUs per GPU, 0 for none
		zones           []int
		largest, spotTo int
	}{
		{name: "c", arch: "amd64", memory: 2, price: 0.0425, zones: []int{0, 1, 2}, largest: 96, spotTo: 64},
		{name: "m", arch: "amd64", memory: 4, price: 0.048, zones: []int{0, 1, 2}, largest: 96, spotTo: 96},
		{name: "r", arch: "amd64", memory: 8, price: 0.063, zones: []int{0, 1}, largest: 64, spotTo: 32},
		{name: "a", arch: "arm64", memory: 4, price: 0.0385, zones: []int{1, 2}, largest: 64, spotTo: 64},
		{name: "g", arch: "amd64", memory: 4, price: 0.13, gpu: 4, zones: []int{0, 2}, largest: 48, spotTo: 16},
	}
	zones := Zones()
	var all []Type
	for _, f := range families {
		for _, cpus := range []int{2, 4, 8, 16, 32, 48, 64, 96} {
			if cpus > f.largest || f.gpu > cpus {
				continue
			}
			t := Type{
				Name: fmt.Sprintf("%s.%d", f.name, cpus), Architecture: f.arch, OperatingSystems: []corev1.OSName{corev1.Linux},
				Resources: corev1.ResourceList{
					corev1.ResourceCPU:              quantity("%d", cpus),
					corev1.ResourceMemory:           quantity("%dGi", cpus*f.memory),
					corev1.ResourcePods:             quantity("%d", min(29*max(cpus/2, 1), 110)),
					corev1.ResourceEphemeralStorage: quantity("100Gi"),
				},
				Requirements: []corev1.NodeSelectorRequirement{in(LabelFamily, f.name), in(LabelCPU, fmt.Sprint(cpus))},
				Overhead: corev1.ResourceList{
					corev1.ResourceCPU: quantity("%dm", 60+cpus*5), corev1.ResourceMemory: quantity("%dMi", 350+cpus*f.memory*10),
				},
			}
			if f.gpu > 0 {
				t.Resources[ResourceGPU] = quantity("%d", cpus/f.gpu)
			}
			price := f.price * float64(cpus)
			for _, z := range f.zones {
				t.Offerings = append(t.Offerings, offering(zones[z], karpv1.CapacityTypeOnDemand, price))
				if cpus <= f.spotTo {
					t.Offerings = append(t.Offerings, offering(zones[z], karpv1.CapacityTypeSpot, price*(0.30+0.02*float64(z))))
				}
			}
			all = append(all, t)
		}
	}
	return all
}

// CatalogueJSON is the file that --instance-types of the example programs reads.
func CatalogueJSON(types []Type) ([]byte, error) { return json.MarshalIndent(types, "", "  ") }

// InstanceTypes converts the catalogue to Karpenter's own type.
func InstanceTypes(types []Type) []*cloudprovider.InstanceType {
	var all []*cloudprovider.InstanceType
	for _, t := range types {
		it := &cloudprovider.InstanceType{
			Name: t.Name,
			Requirements: scheduling.NewRequirements(
				scheduling.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, t.Name),
				scheduling.NewRequirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, t.Architecture),
			),
			Capacity: t.Resources.DeepCopy(),
			Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: t.Overhead.DeepCopy()},
		}
		var systems []string
		for _, os := range t.OperatingSystems {
			systems = append(systems, string(os))
		}
		it.Requirements.Add(scheduling.NewRequirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, systems...))
		it.Requirements.Add(scheduling.NewNodeSelectorRequirements(t.Requirements...).Values()...)
		values := map[string][]string{}
		for _, o := range t.Offerings {
			it.Offerings = append(it.Offerings, &cloudprovider.Offering{
				Price: o.Price, Available: o.Available, Requirements: scheduling.NewNodeSelectorRequirements(o.Requirements...),
			})
			for _, r := range o.Requirements {
				values[r.Key] = append(values[r.Key], r.Values...)
			}
		}
		for key, v := range values {
			slices.Sort(v)
			it.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, slices.Compact(v)...))
		}
		all = append(all, it)
	}
	return all
}
