// Package line is the text form of the embedded catalogue, with one instance type per line, so that
// a new source is a readable diff. The generator writes it, and package catalogue reads it.
package line

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

// Type is one line about an instance type.
type Type struct {
	describe.Description
	Retired bool   // described by an older source only
	Source  string // letter of the source of the description; empty for the main one
}

// Spaces in names would break the line apart.
var (
	blanks   = strings.NewReplacer(" ", "_")
	unblanks = strings.NewReplacer("_", " ")
)

// Encode writes a type without a line end. Facts that are zero or usual are left out.
func Encode(t Type) string {
	var b strings.Builder
	b.WriteString(t.Name)
	word := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	when := func(yes bool, w string) {
		if yes {
			word("%s", w)
		}
	}
	number := func(key string, v int64) {
		if v != 0 {
			word("%s=%d", key, v)
		}
	}
	word("arch=%s", strings.Join(t.Architectures, ","))
	number("vcpu", t.VCPUs)
	number("mib", t.MemoryMiB)
	when(t.CPUManufacturer != "", "cpu="+blanks.Replace(t.CPUManufacturer))
	number("mhz", t.ClockMHz)
	when(t.Hypervisor != "", "hv="+t.Hypervisor)
	when(t.BareMetal, "metal")
	when(t.Burstable, "burst")
	when(t.NitroEnclaves, "enclaves")
	when(t.EncryptionInTransit, "encrypts")
	word("use=%s", strings.Join(t.UsageClasses, ","))
	if v := strings.Join(t.Virtualizations, ","); v != "hvm" {
		word("virt=%s", v)
	}
	word("eni=%dx%d", t.DefaultCardInterfaces, t.IPv4PerInterface)
	if t.NetworkCards != 1 || t.MaxInterfaces != t.DefaultCardInterfaces {
		word("cards=%d:%d", t.NetworkCards, t.MaxInterfaces)
	}
	number("branch", t.BranchInterfaces)
	number("efa", t.EFAInterfaces)
	number("net", t.NetworkMbps)
	number("ebs", t.EBSMbps)
	if t.EBSAttachments != 0 {
		shared := ""
		if t.SharedAttachments {
			shared = "s"
		}
		word("vol=%d%s", t.EBSAttachments, shared)
	}
	if t.LocalStorageGB != 0 {
		nvme := ""
		if t.LocalNVMe {
			nvme = "nvme"
		}
		word("disk=%d%s", t.LocalStorageGB, nvme)
	}
	for _, g := range t.GPUs {
		word("gpu=%s/%s/%d/%d", blanks.Replace(g.Manufacturer), blanks.Replace(g.Name), g.Count, g.MemoryMiB)
		if g.Share != 1000 || g.Logical != g.Count {
			fmt.Fprintf(&b, "/%d/%d", g.Share, g.Logical)
		}
	}
	for _, n := range t.Neuron {
		word("neuron=%s/%d/%d/%d", blanks.Replace(n.Name), n.Count, n.Cores, n.MemoryMiB)
	}
	for _, a := range t.Accelerators {
		word("accel=%s/%s/%d/%d", blanks.Replace(a.Manufacturer), blanks.Replace(a.Name), a.Count, a.MemoryMiB)
	}
	when(t.Retired, "retired")
	when(t.Source != "", "src="+t.Source)
	return b.String()
}

// Decode reads what Encode writes. The words after the name may come in any order.
func Decode(text string) (Type, error) {
	name, rest, _ := strings.Cut(text, " ")
	t := Type{Description: describe.Description{Name: name, NetworkCards: 1, Virtualizations: []string{"hvm"}}}
	interfaces := int64(-1)
	p := parser{}
	for rest != "" {
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "arch":
			t.Architectures = p.list(value)
		case "vcpu":
			t.VCPUs = p.number(value)
		case "mib":
			t.MemoryMiB = p.number(value)
		case "cpu":
			t.CPUManufacturer = unblanks.Replace(value)
		case "mhz":
			t.ClockMHz = p.number(value)
		case "hv":
			t.Hypervisor = value
		case "metal":
			t.BareMetal = true
		case "burst":
			t.Burstable = true
		case "enclaves":
			t.NitroEnclaves = true
		case "encrypts":
			t.EncryptionInTransit = true
		case "use":
			t.UsageClasses = p.list(value)
		case "virt":
			t.Virtualizations = p.list(value)
		case "eni":
			count, each, _ := strings.Cut(value, "x")
			t.DefaultCardInterfaces, t.IPv4PerInterface = p.number(count), p.number(each)
		case "cards":
			cards, all, _ := strings.Cut(value, ":")
			t.NetworkCards, interfaces = p.number(cards), p.number(all)
		case "branch":
			t.BranchInterfaces = p.number(value)
		case "efa":
			t.EFAInterfaces = p.number(value)
		case "net":
			t.NetworkMbps = p.number(value)
		case "ebs":
			t.EBSMbps = p.number(value)
		case "vol":
			value, t.SharedAttachments = strings.CutSuffix(value, "s")
			t.EBSAttachments = p.number(value)
		case "disk":
			value, t.LocalNVMe = strings.CutSuffix(value, "nvme")
			t.LocalStorageGB = p.number(value)
		case "gpu":
			t.GPUs = append(t.GPUs, p.gpu(value))
		case "neuron":
			f := p.fields(value, 4)
			t.Neuron = append(t.Neuron, describe.NeuronDevice{Name: unblanks.Replace(f[0]), Count: p.number(f[1]), Cores: p.number(f[2]), MemoryMiB: p.number(f[3])})
		case "accel":
			f := p.fields(value, 4)
			t.Accelerators = append(t.Accelerators, describe.Accelerator{Manufacturer: unblanks.Replace(f[0]), Name: unblanks.Replace(f[1]), Count: p.number(f[2]), MemoryMiB: p.number(f[3])})
		case "retired":
			t.Retired = true
		case "src":
			t.Source = value
		default:
			p.fail(fmt.Errorf("unknown word %q", word))
		}
	}
	t.MaxInterfaces = t.DefaultCardInterfaces
	if interfaces >= 0 {
		t.MaxInterfaces = interfaces
	}
	if p.err != nil {
		return Type{}, fmt.Errorf("%q: %w", name, p.err)
	}
	return t, nil
}

// parser keeps the first error, so that a line can be read without checking every word.
type parser struct{ err error }

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *parser) number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		p.fail(err)
	}
	return n
}

func (p *parser) list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func (p *parser) fields(s string, n int) []string {
	f := strings.Split(s, "/")
	if len(f) != n {
		p.fail(fmt.Errorf("%q: want %d fields", s, n))
		return make([]string, n)
	}
	return f
}

func (p *parser) gpu(s string) describe.GPU {
	f := strings.Split(s, "/")
	if len(f) != 4 && len(f) != 6 {
		p.fail(fmt.Errorf("%q: want 4 or 6 fields", s))
		return describe.GPU{}
	}
	g := describe.GPU{Manufacturer: unblanks.Replace(f[0]), Name: unblanks.Replace(f[1]), Count: p.number(f[2]), MemoryMiB: p.number(f[3]), Share: 1000}
	g.Logical = g.Count
	if len(f) == 6 {
		g.Share, g.Logical = p.number(f[4]), p.number(f[5])
	}
	return g
}
