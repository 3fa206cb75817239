package ec2

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Settings are the choices of a cluster's owner that the arithmetic depends on. The zero value is
// AL2023 with all defaults.
type Settings struct {
	Family       Family // empty = AL2023
	Kubelet      Kubelet
	BlockDevices []BlockDevice
	// RAID0 joins the local disks, if there are any, into the node's ephemeral storage.
	RAID0 bool
	// ReservedENIs is how many interfaces of a node are not for pods.
	ReservedENIs int64
	// EFAOnly is the number of interfaces that a node class declares as EFA-only, on any card.
	// EFAOnlyFirstCard is how many of these use interfaces of the default network card, which pods
	// then cannot use.
	EFAOnly, EFAOnlyFirstCard int64
	// PrefixDelegation gives each interface slot a prefix of 16 addresses. Pods are then limited as
	// EKS recommends: 110 on types with at most 30 vCPUs, 250 on others. The AWS provider does not
	// support it.
	PrefixDelegation bool
	// FractionalGPU counts a share of a GPU as one nvidia.com/gpu, as its device plugin does. The
	// AWS provider does not.
	FractionalGPU bool
	// Attachments says how the EBS CSI driver is configured.
	Attachments Attachments
	// VMMemory says how much memory the hypervisor takes. nil means [FlatVMMemory] of 7.5%.
	VMMemory VMMemory

	// NoPodENI and NoENIDensity are the older provider's settings aws.enablePodENI=false and
	// aws.enableENILimitedPodDensity=false.
	NoPodENI, NoENIDensity bool
	// SoftEviction counts soft eviction thresholds like hard ones, as the older provider did for
	// v1alpha5.
	SoftEviction bool
	// LegacyLabels adds karpenter.k8s.aws/instance-pods, which v1alpha5 provisioners may require.
	LegacyLabels bool
}

// Kubelet is the part of a kubelet configuration that affects sizes. Nil means the default. MaxPods
// is the most pods that a node takes; PodsPerCore limits them further by its vCPUs. KubeReserved
// and SystemReserved are kept from pods, for Kubernetes itself and for the system.
type Kubelet struct {
	MaxPods, PodsPerCore         *int32
	KubeReserved, SystemReserved corev1.ResourceList
	// EvictionHard and EvictionSoft map signals, such as memory.available, to a quantity or a
	// percentage.
	EvictionHard, EvictionSoft map[string]string
}

// BlockDevice is a disk that a node class attaches.
type BlockDevice struct {
	Device string // /dev/xvda
	Bytes  int64  // 0 means not given
	Root   bool   // marked as the root volume
}

// VMMemory returns how many MiB of an instance type's memory the operating system never sees. mib
// is the memory to take it from. A result outside 0 to mib is moved into this range.
type VMMemory func(d describe.Description, mib int64) int64

// FlatVMMemory takes a fixed fraction of every type's memory, rounded up to MiB.
func FlatVMMemory(share float64) VMMemory {
	return func(_ describe.Description, mib int64) int64 {
		return int64(math.Ceil(float64(mib<<20) * share / (1 << 20)))
	}
}

// LearnedVMMemory uses the real memory in MiB that nodes of some types reported. Other types use
// rest, or the flat share of 7.5% if rest is nil. The map must not change afterwards.
func LearnedVMMemory(seenMiB map[string]int64, rest VMMemory) VMMemory {
	return func(d describe.Description, mib int64) int64 {
		if seen, ok := seenMiB[d.Name]; ok {
			return mib - seen
		}
		if rest == nil {
			return defaultVMMemory(d, mib)
		}
		return rest(d, mib)
	}
}

// defaultVMMemory is the share of 7.5% in integer arithmetic.
func defaultVMMemory(_ describe.Description, mib int64) int64 { return (mib*75 + 999) / 1000 }

// Notes says how these settings differ from the AWS provider v1.
func (s Settings) Notes() []string {
	var out []string
	when := func(yes bool, note string) {
		if yes {
			out = append(out, note)
		}
	}
	when(s.SoftEviction, "soft eviction thresholds count, as for karpenter.sh/v1alpha5")
	when(s.NoPodENI, "no vpc.amazonaws.com/pod-eni: aws.enablePodENI is false")
	when(s.NoENIDensity, "110 pods a node: aws.enableENILimitedPodDensity is false")
	when(s.PrefixDelegation, "pods by prefix delegation, at most 110 up to 30 vCPUs and 250 above")
	when(s.FractionalGPU, "a share of a GPU counts as one nvidia.com/gpu")
	when(s.VMMemory != nil, "memory taken by the hypervisor is not the flat 7.5%")
	when(s.LegacyLabels, "nodes carry karpenter.k8s.aws/instance-pods")
	return out
}

// Validate returns every fault of the settings, joined, with its field.
func (s Settings) Validate() error {
	_, err := s.compile()
	return err
}

// compiled is Settings in integers.
type compiled struct {
	Settings
	traits
	kubeReserved, systemReserved map[corev1.ResourceName]int64
	hard, soft                   map[corev1.ResourceName]threshold
}

// threshold is an eviction threshold: a count, or hundredths of the capacity if percent is set.
type threshold struct {
	count   int64
	percent float64
	isShare bool
}

// signals returns the eviction signals that reduce allocatable.
func signals() map[string]corev1.ResourceName {
	return map[string]corev1.ResourceName{"memory.available": corev1.ResourceMemory, "nodefs.available": corev1.ResourceEphemeralStorage}
}

// compile checks the settings. The error joins every fault, with paths from Settings.
func (s Settings) compile() (compiled, error) {
	if s.Family == "" {
		s.Family = AL2023
	}
	if s.VMMemory == nil {
		s.VMMemory = defaultVMMemory
	}
	c := compiled{Settings: s, traits: s.Family.traits()}
	var errs []error
	bad := func(path, format string, args ...any) {
		errs = append(errs, fmt.Errorf("ec2: settings: "+path+": "+format, args...))
	}
	if !s.Family.known() {
		_, err := ParseFamily(string(s.Family))
		bad("family", "%w", err)
	}
	if p := s.Kubelet.MaxPods; p != nil && *p < 0 {
		bad("kubelet.maxPods", "%d: want 0 or more", *p)
	}
	if p := s.Kubelet.PodsPerCore; p != nil && *p < 0 {
		bad("kubelet.podsPerCore", "%d: want 0 or more", *p)
	}
	if s.ReservedENIs < 0 || s.EFAOnly < 0 || s.EFAOnlyFirstCard < 0 {
		bad("reservedENIs, efaOnly", "want 0 or more")
	}
	for i, b := range s.BlockDevices {
		if b.Bytes < 0 {
			bad(fmt.Sprintf("blockDevices[%d].bytes", i), "%d: want 0 or more", b.Bytes)
		}
	}
	reserved := func(path string, list corev1.ResourceList) map[corev1.ResourceName]int64 {
		out := map[corev1.ResourceName]int64{}
		for _, name := range resources.Names(list) {
			q := list[name]
			if out[name] = resources.Request(name, q); out[name] < 0 {
				bad(path+"["+string(name)+"]", "%s: want no negative quantity", q.String())
			}
		}
		return out
	}
	c.kubeReserved = reserved("kubelet.kubeReserved", s.Kubelet.KubeReserved)
	c.systemReserved = reserved("kubelet.systemReserved", s.Kubelet.SystemReserved)
	thresholds := func(path string, by map[string]string) map[corev1.ResourceName]threshold {
		out := map[corev1.ResourceName]threshold{}
		for _, signal := range []string{"memory.available", "nodefs.available"} {
			text, ok := by[signal]
			if !ok {
				continue
			}
			t, err := parseThreshold(signals()[signal], text)
			if err != nil {
				bad(path+"["+signal+"]", "%w", err)
			}
			out[signals()[signal]] = t
		}
		return out
	}
	c.hard = thresholds("kubelet.evictionHard", s.Kubelet.EvictionHard)
	c.soft = thresholds("kubelet.evictionSoft", s.Kubelet.EvictionSoft)
	return c, errors.Join(errs...)
}

func parseThreshold(name corev1.ResourceName, text string) (threshold, error) {
	if share, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(share, 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return threshold{}, fmt.Errorf("%q: want a percentage from 0%% to 100%%", text)
		}
		if p == 100 { // for the kubelet this switches the threshold off
			p = 0
		}
		return threshold{percent: p, isShare: true}, nil
	}
	q, err := resources.Parse(text)
	if err != nil || q.Sign() < 0 {
		return threshold{}, fmt.Errorf("%q: want a quantity such as 100Mi or a percentage such as 5%%", text)
	}
	return threshold{count: resources.Request(name, q)}, nil
}

// of returns the threshold for a capacity.
func (t threshold) of(capacity int64) int64 {
	if t.isShare {
		return int64(math.Ceil(float64(capacity) / 100 * t.percent))
	}
	return t.count
}
