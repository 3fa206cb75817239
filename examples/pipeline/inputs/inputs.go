// Package inputs is what the example programs have in common: the flags that say what to read, the
// reading itself, and the exit codes that scripts rely on.
package inputs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
)

// Exit codes of the example programs.
const (
	ExitOK       = 0 // all is well
	ExitInternal = 1 // the program failed
	ExitInput    = 2 // bad usage or input
	ExitNotAll   = 3 // the answer is "not all"
	ExitDearer   = 4 // nothing is lost, but it costs more
)

// ExitError carries the exit code of a program that has printed everything it has to say.
type ExitError struct {
	Code int
	// Err is printed on stderr; nil prints nothing.
	Err error
}

// Error returns the text of Err.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Bad returns an error of usage or input.
func Bad(err error) error { return &ExitError{ExitInput, err} }

// End prints what there is to say about err and returns the exit code of a program that ended with
// it.
func End(stderr io.Writer, err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		if exit.Err != nil {
			fmt.Fprintln(stderr, exit.Err)
		}
		return exit.Code
	default:
		fmt.Fprintln(stderr, err)
		return ExitInternal
	}
}

// Flags say what to read and how to print it. Register adds them to a program.
type Flags struct {
	// Files names files or directories with manifests; "-" is standard input. None means the
	// built-in sample of the program.
	Files []string
	// InstanceTypes names a catalogue in the format of Karpenter's KWOK provider. Describe names a
	// file with the output of aws ec2 describe-instance-types. At most one of them is set; if none
	// is, types come from the embedded EC2 catalogue.
	InstanceTypes string
	Describe      string
	// Region is the region of the embedded catalogue. Empty means that of the manifests, or else
	// [pipeline.DefaultRegion].
	Region string
	// Output is the output format, one of [Flags.Formats].
	Output string
	// NoTiming leaves out how long planning took.
	NoTiming bool
	// Pictures must be set before Register. It says that the program can also draw its results: -o
	// html.
	Pictures bool
	// Pods says where objects of other kinds keep their pod templates, as KIND.GROUP=PATH.
	Pods []string
	// Answers names files with output of the AWS CLI about the region, see
	// pipeline.Market.WithAnswer.
	Answers []string
	// Replace names files whose objects replace those of the same kind and name.
	Replace []string
	// SchedulerConfig names a file with kube-scheduler's configuration, or with the file for
	// Karpenter's flag of this name, see package defaultspread.
	SchedulerConfig string
	// Stored says that an API server has stored what is read, see [manifests.Options].
	Stored bool
	// Buffers says that the program plans CapacityBuffers; other programs say that they leave them
	// out. Headroom lists buffers without an object, as [NAMESPACE/]KIND/NAME=PODS or =PERCENT%.
	Buffers  bool
	Headroom []string
}

// Register adds the common flags.
func (f *Flags) Register(set *pflag.FlagSet) {
	set.StringArrayVarP(&f.Files, "filename", "f", nil, "file, directory, or - for standard input, with YAML or JSON manifests (repeatable); without it a built-in sample")
	set.StringArrayVar(&f.Pods, "pods", nil, "KIND.GROUP=PATH: where objects of another kind keep a pod template, such as Rollout.argoproj.io=spec.template (repeatable)")
	set.StringVar(&f.InstanceTypes, "instance-types", "", "catalogue of instance types as JSON, in the format of Karpenter's KWOK provider")
	set.StringVar(&f.Describe, "describe-instance-types", "", "`FILE` with what aws ec2 describe-instance-types printed")
	set.StringArrayVar(&f.Answers, "aws", nil, "what aws ec2 describe-instance-types, describe-instance-type-offerings, describe-spot-price-history, describe-capacity-reservations or aws pricing get-products printed (repeatable)")
	set.StringVar(&f.SchedulerConfig, "scheduler-config", "", "file with kube-scheduler's KubeSchedulerConfiguration, or the file of Karpenter's flag of this name: the default topology spread of pods that have none")
	set.StringVar(&f.Region, "region", "", "EC2 region of the embedded catalogue; by default that of the nodes, pools and node classes, or else "+pipeline.DefaultRegion)
	set.StringVarP(&f.Output, "output", "o", "table", "output format: "+strings.Join(f.Formats(), ", "))
	set.BoolVar(&f.NoTiming, "no-timing", false, "leave timings out, so that the same input prints the same bytes")
}

// Formats returns the values of --output.
func (f *Flags) Formats() []string {
	out := []string{"table", "wide", "json", "yaml"}
	if f.Pictures {
		out = append(out, "html")
	}
	return out
}

// Check reports invalid flags.
func (f *Flags) Check() error {
	if err := OneOf("output", f.Output, f.Formats()...); err != nil {
		return err
	}
	if f.InstanceTypes != "" && len(f.Answers) > 0 {
		return Bad(errors.New("--instance-types and --aws cannot be combined"))
	}
	if f.InstanceTypes != "" && f.Describe != "" {
		return Bad(errors.New("--instance-types and --describe-instance-types cannot be combined"))
	}
	if f.InstanceTypes != "" && f.Region != "" {
		return Bad(errors.New("--instance-types and --region cannot be combined: the file has its own prices"))
	}
	return nil
}

// Sample returns a remark that the input is the built-in sample. It is empty if the flags name
// files.
func (f *Flags) Sample() string {
	if len(f.Files) > 0 {
		return ""
	}
	return "built-in sample; -f FILE reads your own manifests"
}

// CheckStdin returns an error if manifests are piped in and no flag reads them. Without -f - they
// would be ignored, and the sample would be planned instead. Empty input and a terminal do not
// count as input.
func (f *Flags) CheckStdin(stdin io.Reader) error {
	if len(f.Files) > 0 || !hasInput(stdin) {
		return nil
	}
	return Bad(errors.New("standard input has data, which only -f - reads: add -f -, or < /dev/null for the built-in sample"))
}

// patience is how long a pipe may take to show that it is empty.
const patience = time.Second

// hasInput reports whether there is something to read. A pipe that neither ends nor sends anything
// counts as one that will.
func hasInput(stdin io.Reader) bool {
	if stdin == nil {
		return false
	}
	if file, ok := stdin.(*os.File); ok {
		info, err := file.Stat()
		switch {
		case err != nil:
			return false
		case info.Mode().IsRegular():
			return info.Size() > 0
		case info.Mode()&os.ModeNamedPipe == 0:
			return false
		}
	}
	got := make(chan bool, 1)
	go func() { // a read cannot be interrupted; the program ends without it
		n, _ := io.ReadFull(stdin, make([]byte, 1))
		got <- n > 0
	}()
	select {
	case some := <-got:
		return some
	case <-time.After(patience):
		return true
	}
}

// Market opens the catalogue that the flags name, for the given manifests. If the flags name no
// region, Region is set to the one found.
func (f *Flags) Market(read *manifests.Snapshot) (*pipeline.Market, error) {
	if f.InstanceTypes != "" {
		data, err := readFile("--instance-types", f.InstanceTypes)
		if err != nil {
			return nil, err
		}
		m, err := pipeline.KWOKMarket(filepath.Base(f.InstanceTypes), data)
		if err != nil {
			return nil, Bad(fmt.Errorf("%s: %s", f.InstanceTypes, without("kwok", err)))
		}
		return m, nil
	}
	if f.Region == "" && read != nil {
		region, err := pipeline.RegionOf(read)
		if err != nil {
			return nil, Bad(fmt.Errorf("--region: %w", err))
		}
		f.Region = region
	}
	f.Region = cmp.Or(f.Region, pipeline.DefaultRegion)
	m, err := pipeline.EC2Market(f.Region)
	if err != nil {
		return nil, Bad(fmt.Errorf("--region: %s", without("catalogue", err)))
	}
	if f.Describe != "" {
		data, err := readFile("--describe-instance-types", f.Describe)
		if err != nil {
			return nil, err
		}
		if m, err = pipeline.DescribedMarket(f.Region, data); err != nil {
			return nil, Bad(fmt.Errorf("%s: %s", f.Describe, without("describe", err)))
		}
	}
	for _, name := range f.Answers {
		data, err := readFile("--aws", name)
		if err != nil {
			return nil, err
		}
		if m, err = m.WithAnswer(data); err != nil {
			return nil, Bad(fmt.Errorf("%s: %w", name, err))
		}
	}
	return m, nil
}

// without returns the text of an error without the name of the package that it is of: users know
// flags, files and fields.
func without(pkg string, err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), pkg+": "), ": ")
}

// maxCatalogue limits a catalogue file; EC2's own answer is about 10 MB.
const maxCatalogue = 256 << 20

func readFile(flag, name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, Bad(fmt.Errorf("%s: %w", flag, err))
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCatalogue+1))
	if err != nil {
		return nil, Bad(fmt.Errorf("%s: %w", flag, err))
	}
	if len(data) > maxCatalogue {
		return nil, Bad(fmt.Errorf("%s: %s is larger than %d MB", flag, name, maxCatalogue>>20))
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
}

func stored(stdin io.Reader) bool {
	s, ok := stdin.(interface{ Stored() bool })
	return ok && s.Stored()
}

// Keep reads stdin into memory, for callers that read it more than once, and records in the flags
// whether it came from a cluster.
func (f *Flags) Keep(stdin io.Reader) ([]byte, error) {
	f.Stored = f.Stored || stored(stdin)
	return io.ReadAll(stdin)
}

// Manifests reads the files that the flags name and those in beside, or the sample if there are
// none. If stdin has a method Stored that returns true, it comes from a cluster, see
// [manifests.Options].
func (f *Flags) Manifests(sample string, stdin io.Reader, beside ...manifests.File) (*manifests.Snapshot, error) {
	opts := pipeline.ReadOptions()
	opts.Stdin, opts.Files, opts.Replace, opts.Stored = stdin, beside, f.Replace, f.Stored || stored(stdin)
	if f.SchedulerConfig != "" {
		data, err := readFile("--scheduler-config", f.SchedulerConfig)
		if err != nil {
			return nil, err
		}
		if data, err = yaml.YAMLToJSON(data); err == nil {
			opts.Spread, err = defaultspread.Decode(data)
		}
		if err != nil {
			return nil, Bad(fmt.Errorf("%s: %s", f.SchedulerConfig, without("defaultspread", err)))
		}
	}
	own := map[string]string{} // what was written, by the name of its buffer
	for _, text := range f.Headroom {
		b, err := headroom(text)
		if err != nil {
			return nil, err
		}
		own[b.String()] = text
		opts.Buffers = append(opts.Buffers, b)
	}
	for _, text := range f.Pods {
		where, err := manifests.ParsePodsOf(text)
		if err != nil {
			return nil, Bad(fmt.Errorf("--pods %w", err))
		}
		opts.PodsOf = append(opts.PodsOf, where)
	}
	var m *manifests.Snapshot
	var err error
	if len(f.Files)+len(beside) == 0 {
		m, err = manifests.Parse([]manifests.File{{Name: "sample.yaml", Data: []byte(sample)}}, opts)
	} else {
		m, err = manifests.Read(f.Files, opts)
	}
	if err != nil {
		return nil, Bad(err)
	}
	var faults []error
	for i := range m.Buffers { // a buffer of the input may wait for its workload; one that is asked for may not
		if text, asked := own[m.Buffers[i].String()]; asked && m.Buffers[i].Why != "" {
			faults = append(faults, fmt.Errorf("--headroom %q: %s", text, m.Buffers[i].Why))
		}
	}
	if len(faults) > 0 {
		return nil, Bad(errors.Join(faults...))
	}
	if n := len(m.Buffers); n > 0 && !f.Buffers {
		m.Notes = append(m.Notes, fmt.Sprintf("CapacityBuffers are ignored here: %d; provision plans them", n))
	}
	return m, nil
}
