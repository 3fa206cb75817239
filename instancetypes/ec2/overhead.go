package ec2

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// keeper computes overheads. Types share equal lists, because few different lists occur.
type keeper struct {
	compiled
	system corev1.ResourceList
	kube   map[[2]int64]corev1.ResourceList // by milli-cpu and MiB
	evict  map[[2]int64]corev1.ResourceList // by bytes of memory and disk
}

func newKeeper(c compiled) *keeper {
	return &keeper{compiled: c, system: list(c.systemReserved), kube: map[[2]int64]corev1.ResourceList{}, evict: map[[2]int64]corev1.ResourceList{}}
}

// overhead returns what the node keeps from pods, for the given capacity.
func (k *keeper) overhead(d describe.Description, capacity corev1.ResourceList) instancetypes.Overhead {
	reserved := [2]int64{reservedMilliCPU(d.VCPUs * 1000), k.reservedMemoryMiB(d)}
	kube, ok := k.kube[reserved]
	if !ok {
		counts := map[corev1.ResourceName]int64{
			corev1.ResourceCPU:              reserved[0],
			corev1.ResourceMemory:           reserved[1] << 20,
			corev1.ResourceEphemeralStorage: 1 << 30,
		}
		maps.Copy(counts, k.kubeReserved)
		kube = list(counts)
		k.kube[reserved] = kube
	}
	threatened := [2]int64{
		k.threshold(corev1.ResourceMemory, capacity, threshold{count: 100 << 20}),
		k.threshold(corev1.ResourceEphemeralStorage, capacity, threshold{percent: 10, isShare: true}),
	}
	evict, ok := k.evict[threatened]
	if !ok {
		evict = list(map[corev1.ResourceName]int64{corev1.ResourceMemory: threatened[0], corev1.ResourceEphemeralStorage: threatened[1]})
		k.evict[threatened] = evict
	}
	return instancetypes.Overhead{KubeReserved: kube, SystemReserved: k.system, EvictionThreshold: evict}
}

// threshold returns what the kubelet keeps free of a resource: the greatest of the thresholds that
// are set and apply, or the default.
func (c compiled) threshold(name corev1.ResourceName, capacity corev1.ResourceList, standard threshold) int64 {
	whole := resources.Capacity(name, capacity[name])
	hard, isHard := c.hard[name]
	soft, isSoft := c.soft[name]
	isSoft = isSoft && c.SoftEviction && c.softEviction
	switch {
	case isHard && isSoft:
		return max(hard.of(whole), soft.of(whole))
	case isHard:
		return hard.of(whole)
	case isSoft:
		return soft.of(whole)
	}
	return standard.of(whole)
}

// reservedMilliCPU returns the kubelet's share of the processors: 6% of the first core, 1% of the
// second, 0.5% of the next two, 0.25% of all others. Each band is rounded down separately.
func reservedMilliCPU(milli int64) int64 {
	reserved := int64(0)
	for _, band := range []struct{ from, to, perTenThousand int64 }{{0, 1000, 600}, {1000, 2000, 100}, {2000, 4000, 50}, {4000, 1 << 62, 25}} {
		if milli > band.from {
			reserved += (min(milli, band.to) - band.from) * band.perTenThousand / 10_000
		}
	}
	return reserved
}

// reservedMemoryMiB returns the kubelet's memory: 255 MiB plus 11 MiB for each pod that the family
// counts on.
func (c compiled) reservedMemoryMiB(d describe.Description) int64 {
	pods := interfacePods(d, 0, false)
	if !c.reservesPerENI {
		pods = c.pods(d)
	}
	return 255 + 11*pods
}

// list turns counts into a resource list. Resources with a count of 0 are left out.
func list(counts map[corev1.ResourceName]int64) corev1.ResourceList {
	out := make(corev1.ResourceList, len(counts))
	for name, count := range counts {
		if count != 0 {
			out[name] = resources.Quantity(name, count)
		}
	}
	return out
}
