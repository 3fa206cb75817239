// Types lists the instance types that can be bought: what they are, what they leave for pods, where
// they are sold and at what price. It needs neither a cluster nor credentials.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/requirements"
)

func main() {
	os.Exit(inputs.End(os.Stderr, command(os.Stdin).Execute()))
}

type options struct {
	inputs.Flags
	requirements []string
	family       string
	sort         string
	pool         string
	limit        int
	buyable      bool

	maxPods, podsPerCore int32
	reservedENIs         int32
	disk                 string
	raid0                bool
	memoryOverhead       string
}

func sorts() []string { return []string{"price", "cpu", "memory", "name"} }

func command(stdin io.Reader) *cobra.Command {
	var o options
	cmd := inputs.Command(&cobra.Command{
		Use:   "types [--requirement EXPR]...",
		Short: "list the instance types that can be bought, with prices and what they leave for pods",
		Long: `Types lists the instance types that can be bought: labels, capacity, what is left for pods, zones and prices. It has
EC2's catalogue built in, and reads others. With -f, the pool and node class of the manifests decide what is listed.`,
		Example: `  types --requirement 'karpenter.k8s.aws/instance-family in (m5,m6g), kubernetes.io/arch in (arm64)'
  types --requirement 'karpenter.k8s.aws/instance-gpu-count>0' --sort price --available
  types --ami-family Bottlerocket --max-pods 110 -o json
  types -f cluster/ --pool default            # what this pool can buy
  types --describe-instance-types answer.json # what your account sees`,
	}, func(cmd *cobra.Command, out io.Writer) error { return o.run(cmd, out, stdin) })
	usual := cmd.Args
	cmd.Args = func(c *cobra.Command, args []string) error {
		if usual(c, args) == nil {
			return nil
		}
		return inputs.Bad(fmt.Errorf("%q: choose types with --requirement%s, and name files with -f (see %s --help)", args[0], o.meant(args[0]), c.CommandPath()))
	}
	flags := cmd.Flags()
	o.Register(flags)
	flags.Lookup("filename").Usage = "file, directory, or - for standard input, with a pool or a node class (repeatable)"
	flags.Lookup("no-timing").Hidden = true // nothing is timed here; scripts pass it to every program
	flags.Lookup("pods").Hidden, flags.Lookup("scheduler-config").Hidden = true, true
	flags.StringArrayVar(&o.requirements, "requirement", nil, "requirement on the types, in the text form of package requirements (repeatable; all must hold)")
	flags.StringVar(&o.family, "ami-family", "", "AMI family: AL2, AL2023 (default), Bottlerocket, Ubuntu, Windows2019, Windows2022, Windows2025, Custom")
	flags.StringVar(&o.sort, "sort", "price", "order: price, cpu, memory or name")
	flags.StringVar(&o.pool, "pool", "", "pool to list for, if the manifests have several")
	flags.IntVar(&o.limit, "limit", 0, "list at most this many types; 0 means all")
	flags.BoolVar(&o.buyable, "available", false, "leave out types without an available offering")
	flags.Int32Var(&o.maxPods, "max-pods", 0, "kubelet's maxPods")
	flags.Int32Var(&o.podsPerCore, "pods-per-core", 0, "kubelet's podsPerCore")
	flags.Int32Var(&o.reservedENIs, "reserved-enis", 0, "number of network interfaces that pods do not use")
	flags.StringVar(&o.disk, "disk", "", "size of the root volume, such as 50Gi")
	flags.BoolVar(&o.raid0, "raid0", false, "join local disks into the ephemeral storage")
	flags.StringVar(&o.memoryOverhead, "vm-memory-overhead", "", "share of memory that the hypervisor takes (default 0.075)")
	families := make([]string, 0, len(ec2.Families()))
	for _, f := range ec2.Families() {
		families = append(families, string(f))
	}
	inputs.Complete(cmd, "output", o.Formats()...)
	inputs.Complete(cmd, "sort", sorts()...)
	inputs.Complete(cmd, "ami-family", families...)
	return cmd
}

// meant suggests the requirement that a word stands for: that of a type, such as m6a.large, or of a
// family, such as m6a or m6a.*. It is empty if the region sells neither.
func (o *options) meant(word string) string {
	types, err := ec2.Catalogue(cmp.Or(o.Region, "us-east-1"))
	if err != nil {
		return ""
	}
	family := strings.TrimSuffix(strings.TrimSuffix(word, "*"), ".")
	for _, t := range types {
		switch own, _ := t.Requirements.Get(label.Family).Single(); {
		case t.Name == word:
			return fmt.Sprintf(", such as '%s in (%s)'", corev1.LabelInstanceTypeStable, word)
		case own != "" && own == family:
			return fmt.Sprintf(", such as '%s in (%s)'", label.Family, own)
		}
	}
	return ""
}

func (o *options) run(cmd *cobra.Command, out io.Writer, stdin io.Reader) error {
	if err := o.check(cmd.Flags()); err != nil {
		return err
	}
	ask, err := o.ask()
	if err != nil {
		return err
	}
	var read *manifests.Snapshot
	if len(o.Files) > 0 {
		if read, err = o.Manifests("", stdin); err != nil {
			return err
		}
	}
	market, err := o.Market(read)
	if err != nil {
		return err
	}
	entries, notes, err := o.list(market, ask, read)
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
	}
	if o.Output == "json" || o.Output == "yaml" {
		return encode(out, o.Output, entries)
	}
	return draw(out, terminal.StyleOf(cmd.OutOrStdout()), entries, o.Output == "wide", market)
}

// combinations says which flags go together.
func combinations() []inputs.Combination {
	class := []string{"ami-family", "reserved-enis", "disk", "raid0", "vm-memory-overhead"}
	return []inputs.Combination{
		{Flag: "filename", Does: "has the node class", Without: class},
		{Flag: "instance-types", Does: "says what its types leave for pods", Without: slices.Concat(class, []string{"max-pods", "pods-per-core"})},
		{Flag: "pool", Does: "chooses a pool of files", With: []string{"filename"}},
	}
}

func (o *options) check(flags *pflag.FlagSet) error {
	if err := o.Check(); err != nil {
		return err
	}
	if err := inputs.Combined(flags, combinations()...); err != nil {
		return err
	}
	if len(o.Pods) > 0 || o.SchedulerConfig != "" {
		return inputs.Bad(errors.New("--pods and --scheduler-config are about pods, and types lists none: leave them out"))
	}
	if o.limit < 0 {
		return inputs.Bad(fmt.Errorf("--limit %d: want 0 or more", o.limit))
	}
	if slices.Contains(sorts(), o.sort) {
		return nil
	}
	hint := ""
	if near, ok := requirements.Nearest(o.sort, sorts()); ok {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return inputs.Bad(fmt.Errorf("--sort %q: want one of %s%s", o.sort, strings.Join(sorts(), ", "), hint))
}

// ask is what all --requirement flags say together.
func (o *options) ask() (requirements.Set, error) {
	var all requirements.Set
	for _, text := range o.requirements {
		set, err := requirements.Parse(text)
		if err != nil {
			return all, inputs.Bad(fmt.Errorf("--requirement: %w", err))
		}
		if all, err = all.Intersect(set); err != nil {
			return all, inputs.Bad(fmt.Errorf("--requirement: %w", err))
		}
	}
	all, err := requirements.KubernetesAliases().Set(all)
	if err != nil {
		return all, inputs.Bad(fmt.Errorf("--requirement: %w", err))
	}
	return all, nil
}
