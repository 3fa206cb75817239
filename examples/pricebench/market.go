package pricebench

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/requirements"
)

// Region is where the types are bought.
const Region = "us-east-1"

// Ask is what every node must be: an amd64 machine of the compute, general or memory family, of the
// fifth generation or later, on demand. It is written in the labels of a node pool.
const Ask = "karpenter.k8s.aws/instance-category in (c,m,r), karpenter.k8s.aws/instance-generation>4, kubernetes.io/arch=amd64, karpenter.sh/capacity-type=on-demand"

// Zones is how many zones of the region are used.
const Zones = 3

// daemons is what one node loses to daemon pods: milli-CPU, MiB, pods.
func daemons() []int64 { return []int64{300, 512, 3} }

// Types are the types of the region as bins of milli-CPU, MiB and pods, daemons deducted; at most
// maxCPU vCPUs, 0 for any.
func Types(maxCPU int64) ([]binpack.Type, error) {
	all, err := Catalogue(maxCPU)
	if err != nil {
		return nil, err
	}
	out := make([]binpack.Type, 0, len(all))
	for _, t := range all {
		free := t.Allocatable()
		b := binpack.Type{Name: t.Name, Capacity: []int64{free.Cpu().MilliValue(), free.Memory().Value() >> 20, free.Pods().Value()}}
		for r, d := range daemons() {
			b.Capacity[r] -= d
		}
		for _, o := range t.Offerings {
			zone := requirements.MustOf(o.Requirements.Get(corev1.LabelTopologyZone))
			b.Offerings = append(b.Offerings, binpack.Offering{Provides: zone, Price: binpack.Price(o.Price*float64(binpack.PerDollar) + 0.5)})
		}
		out = append(out, b)
	}
	return out, nil
}

// Catalogue is the types of the region that suit, of at most maxCPU vCPUs, 0 for any, with an
// offering in each of the first zones.
func Catalogue(maxCPU int64) ([]instancetypes.InstanceType, error) {
	all, err := ec2.Catalogue(Region)
	if err != nil {
		return nil, err
	}
	ask := requirements.MustParse(Ask)
	var out []instancetypes.InstanceType
	for _, t := range instancetypes.Compatible(all, ask, requirements.Keys{}) {
		if maxCPU > 0 && t.Capacity.Cpu().Value() > maxCPU || metal(t) {
			continue
		}
		offers := slices.Clone(t.Offerings)
		slices.SortStableFunc(offers, func(x, y instancetypes.Offering) int {
			return cmp.Compare(x.Requirements.String(), y.Requirements.String())
		})
		t.Offerings = nil
		for _, o := range offers {
			if o.Available && o.Requirements.Overlaps(ask) && o.CapacityType() == instancetypes.CapacityTypeOnDemand && len(t.Offerings) < Zones {
				t.Offerings = append(t.Offerings, o)
			}
		}
		if len(t.Offerings) > 0 {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("pricebench: no type of %s suits", Region)
	}
	return out, nil
}

func metal(t instancetypes.InstanceType) bool {
	size, _ := t.Requirements.Get("karpenter.k8s.aws/instance-size").Single()
	return len(size) >= 5 && size[:5] == "metal"
}
