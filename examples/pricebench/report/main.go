// Report measures the price-aware strategy on the workloads of package pricebench and writes a
// table: cost, proven bound, gap, time and memory of the same run. Each row has a process of its
// own, so that memory is its own.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/examples/pricebench"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// request is one row to be measured.
type request struct {
	Workload string
	Variant  string `json:",omitempty"`
	MaxCPU   int64  // 0 is any
	Pods     int
	Seed     uint64
	Effort   string
	Data     string
}

// measured is what one row came to.
type measured struct {
	request
	Kept, Shapes, Bins int
	Cost, Bound, FFD   float64 // dollars an hour
	Gap                float64 // percent
	Kind               string
	Seconds            float64
	MB                 float64
	Verified           bool
}

func run(args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("report", flag.ContinueOnError)
	set.SetOutput(stderr)
	out := set.String("o", "", "file to write to; empty is standard output")
	data := set.String("data", filepath.Join("..", "shared", "data"), "folder of the public trace and of OR-Library")
	effort := set.String("effort", "default", "fast, default or best")
	only := set.String("only", "", "workloads to measure, separated by commas; empty means all")
	most := set.Int("most", 100_000, "the most pods")
	seed := set.Uint64("seed", 1, "which draw of the pods to measure")
	row := set.String("row", "", "measure this one row, given as JSON, and print it as JSON (used by the program itself)")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *row != "" {
		var r request
		if err := json.Unmarshal([]byte(*row), &r); err != nil {
			return fmt.Errorf("-row: %w", err)
		}
		m, err := measure(r)
		if err != nil {
			return err
		}
		return json.NewEncoder(stdout).Encode(m)
	}
	var rows []measured
	for _, r := range requests(*data, *only, *most, *seed, *effort) {
		m, err := inProcess(r, stderr)
		if err != nil {
			return err
		}
		fmt.Fprintln(stderr, m.line())
		rows = append(rows, m)
	}
	text := document(rows, orLibrary(*data, *effort), *effort, *seed, time.Now())
	if *out == "" {
		_, err := io.WriteString(stdout, text)
		return err
	}
	return os.WriteFile(*out, []byte(text), 0o644)
}

// requests are the rows: every workload and limit of node size, then variants of three of them,
// then other draws.
func requests(data, only string, most int, seed uint64, effort string) []request {
	var out []request
	add := func(r request) {
		if r.Pods <= most && (only == "" || slices.Contains(strings.Split(only, ","), r.Workload) || slices.Contains(strings.Split(only, ","), r.Variant)) {
			r.Effort, r.Data = effort, data
			out = append(out, r)
		}
	}
	all := workloads(data)
	for _, w := range all {
		for _, maxCPU := range []int64{0, 64, 16} {
			for _, n := range []int{20, 30, 40, 50, 60, 75, 100, 110, 200, 300, 500, 1000, 5000, 10_000, 50_000, 100_000} {
				add(request{Workload: w.Name, MaxCPU: maxCPU, Pods: n, Seed: seed})
			}
		}
	}
	for _, v := range pricebench.Variants() {
		for _, w := range []string{"mix", "distinct", "second mix"} {
			for _, n := range []int{50, 100, 500, 1000, 5000} {
				add(request{Workload: w, Variant: v.Name, Pods: n, Seed: seed})
			}
		}
	}
	for _, w := range all {
		for _, n := range []int{75, 110, 200, 300, 500} {
			add(request{Workload: w.Name, MaxCPU: 64, Pods: n, Seed: seed + 1000})
		}
	}
	return out
}

// inProcess measures a row in a process of its own.
func inProcess(r request, stderr io.Writer) (measured, error) {
	var m measured
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return m, err
	}
	cmd := exec.Command(self, "-row", string(text))
	cmd.Stderr = stderr
	answer, err := cmd.Output()
	if err != nil {
		return m, fmt.Errorf("%+v: %w", r, err)
	}
	return m, json.Unmarshal(answer, &m)
}
