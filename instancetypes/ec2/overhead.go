package ec2

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// overhead is what the node keeps from pods, given its capacity.
func (c compiled) overhead(d describe.Description, capacity corev1.ResourceList) instancetypes.Overhead {
	kube := map[corev1.ResourceName]int64{
		corev1.ResourceCPU:              reservedMilliCPU(d.VCPUs * 1000),
		corev1.ResourceMemory:           c.reservedMemoryMiB(d) << 20,
		corev1.ResourceEphemeralStorage: 1 << 30,
	}
	for name, count := range c.kubeReserved {
		kube[name] = count
	}
	eviction := map[corev1.ResourceName]int64{}
	for name, standard := range map[corev1.ResourceName]threshold{
		corev1.ResourceMemory:           {count: 100 << 20},
		corev1.ResourceEphemeralStorage: {percent: 10, isShare: true},
	} {
		whole := resources.Capacity(name, capacity[name])
		hard, isHard := c.hard[name]
		soft, isSoft := c.soft[name]
		isSoft = isSoft && c.SoftEviction && c.softEviction
		switch {
		case isHard && isSoft:
			eviction[name] = max(hard.of(whole), soft.of(whole))
		case isHard:
			eviction[name] = hard.of(whole)
		case isSoft:
			eviction[name] = soft.of(whole)
		default:
			eviction[name] = standard.of(whole)
		}
	}
	return instancetypes.Overhead{KubeReserved: list(kube), SystemReserved: list(c.systemReserved), EvictionThreshold: list(eviction)}
}

// reservedMilliCPU is the kubelet's share of the processors, band by band, each rounded down on its own: 6% of the first
// core, 1% of the second, 0.5% of the next two, 0.25% of all others.
func reservedMilliCPU(milli int64) int64 {
	reserved := int64(0)
	for _, band := range []struct{ from, to, perTenThousand int64 }{{0, 1000, 600}, {1000, 2000, 100}, {2000, 4000, 50}, {4000, 1 << 62, 25}} {
		if milli > band.from {
			reserved += (min(milli, band.to) - band.from) * band.perTenThousand / 10_000
		}
	}
	return reserved
}

// reservedMemoryMiB is the kubelet's memory: 255 MiB and 11 for each pod that the family counts on.
func (c compiled) reservedMemoryMiB(d describe.Description) int64 {
	pods := interfacePods(d, 0, false)
	if !c.reservesPerENI {
		pods = c.pods(d)
	}
	return 255 + 11*pods
}

// list makes a resource list of counts; resources of which nothing is kept are left out.
func list(counts map[corev1.ResourceName]int64) corev1.ResourceList {
	out := make(corev1.ResourceList, len(counts))
	for name, count := range counts {
		if count != 0 {
			out[name] = resources.Quantity(name, count)
		}
	}
	return out
}
