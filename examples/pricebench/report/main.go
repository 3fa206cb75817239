// Report measures the price-aware strategy on the workloads of package pricebench and writes a table: cost, proven bound,
// gap, time and memory of the same run. Each row has a process of its own, so that memory is its own.
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
	MaxCPU   int64 // 0 is any
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
	for _, w := range workloads(*data) {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), w.Name) {
			continue
		}
		for _, maxCPU := range []int64{0, 64, 16} {
			for _, n := range []int{20, 30, 40, 50, 60, 75, 100, 500, 1000, 5000, 10_000, 50_000, 100_000} {
				if n > *most {
					continue
				}
				m, err := inProcess(request{w.Name, maxCPU, n, *seed, *effort, *data}, stderr)
				if err != nil {
					return err
				}
				fmt.Fprintln(stderr, m.line())
				rows = append(rows, m)
			}
		}
	}
	text := document(rows, orLibrary(*data, *effort), *effort, *seed, time.Now())
	if *out == "" {
		_, err := io.WriteString(stdout, text)
		return err
	}
	return os.WriteFile(*out, []byte(text), 0o644)
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
