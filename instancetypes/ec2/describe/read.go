package describe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// answer is the part of DescribeInstanceTypes that planning needs, with the names of the API.
type answer struct {
	InstanceType                  string
	BareMetal                     bool
	BurstablePerformanceSupported bool
	Hypervisor                    string
	NitroEnclavesSupport          string
	SupportedUsageClasses         []string
	SupportedVirtualizationTypes  []string
	ProcessorInfo                 struct {
		Manufacturer             string
		SupportedArchitectures   []string
		SustainedClockSpeedInGhz float64
	}
	VCpuInfo    struct{ DefaultVCpus int64 }
	MemoryInfo  struct{ SizeInMiB int64 }
	NetworkInfo struct {
		DefaultNetworkCardIndex      int64
		MaximumNetworkCards          int64
		MaximumNetworkInterfaces     int64
		Ipv4AddressesPerInterface    int64
		EncryptionInTransitSupported bool
		EfaInfo                      struct{ MaximumEfaInterfaces int64 }
		NetworkCards                 []struct {
			NetworkCardIndex         int64
			MaximumNetworkInterfaces int64
		}
	}
	EbsInfo struct {
		EbsOptimizedSupport   string
		MaximumEbsAttachments int64
		AttachmentLimitType   string
		EbsOptimizedInfo      struct{ MaximumBandwidthInMbps int64 }
	}
	InstanceStorageInfo struct {
		TotalSizeInGB int64
		NvmeSupport   string
	}
	GpuInfo struct {
		Gpus []struct {
			Name             string
			Manufacturer     string
			Count            int64
			GpuPartitionSize *float64
			LogicalGpuCount  *int64
			MemoryInfo       struct{ SizeInMiB int64 }
		}
	}
	NeuronInfo struct {
		NeuronDevices []struct {
			Name       string
			Count      int64
			CoreInfo   struct{ Count int64 }
			MemoryInfo struct{ SizeInMiB int64 }
		}
	}
	InferenceAcceleratorInfo struct {
		Accelerators []struct {
			Name         string
			Manufacturer string
			Count        int64
			MemoryInfo   struct{ SizeInMiB int64 }
		}
	}
}

// Read reads the output of `aws ec2 describe-instance-types`: an object with a list InstanceTypes.
// It also reads a bare list, and several such answers in sequence (pages). The result is sorted by
// name.
//
// The error joins every problem found. The answer is used whole or not at all, as is right for a
// file that a person provides. Fields that planning does not need may be missing or new. Fields
// that it needs must be valid (see [Description.Validate]). The cost is linear in the input.
func Read(data []byte) ([]Description, error) {
	list, odd, err := ReadUsable(data)
	if err = errors.Join(err, odd); err != nil {
		return nil, err
	}
	return list, nil
}

// ReadUsable is [Read] for answers that nobody can correct. Invalid descriptions are left out, and
// odd joins a line for each. The error says that the data is not such an answer.
func ReadUsable(data []byte) (list []Description, odd, err error) {
	var all []answer
	dec := json.NewDecoder(bytes.NewReader(data))
	pages := 0
	for ; dec.More(); pages++ {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, nil, fmt.Errorf("describe: %w", syntax(err))
		}
		var rows []answer
		var err error
		if bytes.HasPrefix(raw, []byte("[")) {
			err = json.Unmarshal(raw, &rows)
		} else {
			var page struct{ InstanceTypes *[]answer }
			if err = json.Unmarshal(raw, &page); err == nil && page.InstanceTypes == nil {
				return nil, nil, errors.New(`describe: no list "InstanceTypes": want the JSON that "aws ec2 describe-instance-types" prints`)
			}
			if err == nil {
				rows = *page.InstanceTypes
			}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("describe: %w", syntax(err))
		}
		all = append(all, rows...)
	}
	if pages == 0 {
		return nil, nil, errors.New(`describe: empty input: want the JSON that "aws ec2 describe-instance-types" prints`)
	}
	list, odd = convert(all)
	return list, odd, nil
}

// syntax says where JSON is malformed or has another type than in the API.
func syntax(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: want %s, got %s", wrong.Field, wrong.Type, wrong.Value)
	}
	if broken, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("at byte %d: %w", broken.Offset, err)
	}
	return err
}

// convert leaves out invalid descriptions, and all but the first of types that are described twice.
func convert(all []answer) (out []Description, odd error) {
	out = make([]Description, 0, len(all))
	var errs []error
	seen := map[string]bool{}
	for i, a := range all {
		d := a.description()
		err := d.Validate()
		if err == nil && seen[d.Name] {
			err = errors.New("it is described twice")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("describe: InstanceTypes[%d] (%q): %w", i, a.InstanceType, err))
			continue
		}
		seen[d.Name] = true
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Description) int { return strings.Compare(a.Name, b.Name) })
	return out, errors.Join(errs...)
}

func (a answer) description() Description {
	d := Description{
		Name: a.InstanceType, Architectures: a.ProcessorInfo.SupportedArchitectures,
		Virtualizations: a.SupportedVirtualizationTypes, UsageClasses: a.SupportedUsageClasses,
		VCPUs: a.VCpuInfo.DefaultVCpus, MemoryMiB: a.MemoryInfo.SizeInMiB,
		// Some answers pad the manufacturer's name.
		CPUManufacturer: strings.TrimSpace(a.ProcessorInfo.Manufacturer), ClockMHz: thousandths(a.ProcessorInfo.SustainedClockSpeedInGhz),
		Hypervisor: a.Hypervisor, BareMetal: a.BareMetal, Burstable: a.BurstablePerformanceSupported,
		NitroEnclaves: a.NitroEnclavesSupport == "supported",
		MaxInterfaces: a.NetworkInfo.MaximumNetworkInterfaces, DefaultCardInterfaces: a.NetworkInfo.MaximumNetworkInterfaces,
		NetworkCards:     max(a.NetworkInfo.MaximumNetworkCards, int64(len(a.NetworkInfo.NetworkCards))),
		IPv4PerInterface: a.NetworkInfo.Ipv4AddressesPerInterface, EFAInterfaces: a.NetworkInfo.EfaInfo.MaximumEfaInterfaces,
		EncryptionInTransit: a.NetworkInfo.EncryptionInTransitSupported,
		EBSAttachments:      a.EbsInfo.MaximumEbsAttachments, SharedAttachments: a.EbsInfo.AttachmentLimitType != "dedicated",
		LocalStorageGB: a.InstanceStorageInfo.TotalSizeInGB,
		LocalNVMe:      a.InstanceStorageInfo.NvmeSupport != "" && a.InstanceStorageInfo.NvmeSupport != "unsupported",
	}
	if a.EbsInfo.EbsOptimizedSupport == "default" {
		d.EBSMbps = a.EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps
	}
	for _, card := range a.NetworkInfo.NetworkCards {
		if card.NetworkCardIndex == a.NetworkInfo.DefaultNetworkCardIndex {
			d.DefaultCardInterfaces = card.MaximumNetworkInterfaces
		}
	}
	for _, g := range a.GpuInfo.Gpus {
		gpu := GPU{Name: g.Name, Manufacturer: g.Manufacturer, Count: g.Count, MemoryMiB: g.MemoryInfo.SizeInMiB, Share: 1000, Logical: g.Count}
		if g.GpuPartitionSize != nil {
			gpu.Share = thousandths(*g.GpuPartitionSize)
		}
		if g.LogicalGpuCount != nil {
			gpu.Logical = *g.LogicalGpuCount
		}
		d.GPUs = append(d.GPUs, gpu)
	}
	for _, n := range a.NeuronInfo.NeuronDevices {
		d.Neuron = append(d.Neuron, NeuronDevice{Name: n.Name, Count: n.Count, Cores: n.CoreInfo.Count, MemoryMiB: n.MemoryInfo.SizeInMiB})
	}
	for _, x := range a.InferenceAcceleratorInfo.Accelerators {
		d.Accelerators = append(d.Accelerators, Accelerator{Name: x.Name, Manufacturer: x.Manufacturer, Count: x.Count, MemoryMiB: x.MemoryInfo.SizeInMiB})
	}
	return d
}

// thousandths rounds to the nearest thousandth. An impossible value becomes negative, which
// Validate rejects.
func thousandths(v float64) int64 {
	if !(v >= 0 && v <= 1e6) {
		return -1
	}
	return int64(math.Round(v * 1000))
}
