// Versus plans the same pods with Karpenter and with Joinery in one process, lets kube-scheduler
// judge both plans, and writes a table: pods placed, nodes, price, pods accepted, seconds over
// compile and solve.
//
// Both read the same objects and the same catalogue from memory. The time is from these objects to
// the plan. Nothing is kept between runs, except what Karpenter caches in its instance types. Runs
// alternate, and the median counts. Karpenter gets two workers, Joinery needs one.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/binpack"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "versus:", err)
		os.Exit(1)
	}
}

// run is the program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("versus", flag.ContinueOnError)
	set.SetOutput(stderr)
	sizes := set.String("sizes", "1000,5000,20000", "numbers of pods")
	names := set.String("families", "", "families to run, of "+strings.Join(familyNames(), ", ")+"; empty means all")
	runs := set.Int("runs", 5, "runs of up to 5,000 pods; larger ones run less often")
	growth := set.String("growth", "5000,50000", "two numbers of diverse pods between which Joinery's growth is measured; empty leaves it out")
	effort := set.String("effort", "fast,default", "Joinery's efforts, of fast, default and best; each has a row")
	judged := set.Int("judge", 5000, "the most pods that kube-scheduler judges; its time grows with the square of their number")
	patience := set.Duration("patience", 15*time.Minute, "how long Karpenter may take for one plan; it is left out of a size where it takes longer")
	out := set.String("o", "", "file to write the table to; empty is standard output")
	if err := set.Parse(args); err != nil {
		return err
	}
	numbers, err := ints(*sizes)
	if err != nil {
		return fmt.Errorf("-sizes: %w", err)
	}
	chosen, err := familiesNamed(*names)
	if err != nil {
		return fmt.Errorf("-families: %w", err)
	}
	efforts, err := effortsNamed(*effort)
	if err != nil {
		return err
	}
	var ends []int
	if *growth != "" {
		if ends, err = ints(*growth); err != nil || len(ends) != 2 {
			return fmt.Errorf("-growth %q: want two numbers", *growth)
		}
	}
	if *runs < 1 {
		return fmt.Errorf("-runs %d: want 1 or more", *runs)
	}
	var rows []row
	for _, f := range chosen {
		for _, n := range numbers {
			r, err := compare(ctx, f, n, runsOf(*runs, n), efforts, *judged, *patience)
			if err != nil {
				return fmt.Errorf("%s, %d pods: %w", f.name, n, err)
			}
			fmt.Fprintln(stderr, r.line())
			rows = append(rows, r)
		}
	}
	var grown []point
	for _, e := range efforts {
		for _, n := range ends {
			p, err := measure(ctx, families()[0], n, *runs, e)
			if err != nil {
				return err
			}
			grown = append(grown, p)
		}
	}
	text := document(rows, grown, time.Now())
	if *out == "" {
		_, err = io.WriteString(stdout, text)
		return err
	}
	return os.WriteFile(*out, []byte(text), 0o644)
}

// runsOf is how often a size runs: large ones less often, for they vary less and take longer.
func runsOf(most, pods int) int {
	switch {
	case pods > 10_000:
		return min(most, 1)
	case pods > 5000:
		return min(most, 3)
	}
	return most
}

func effortsNamed(list string) ([]binpack.Effort, error) {
	var out []binpack.Effort
	for word := range strings.SplitSeq(list, ",") {
		e := binpack.Effort(strings.TrimSpace(word))
		if !slices.Contains([]binpack.Effort{binpack.EffortFast, binpack.EffortDefault, binpack.EffortBest}, e) {
			return nil, fmt.Errorf("-effort %q: want fast, default or best", word)
		}
		out = append(out, e)
	}
	return out, nil
}

func ints(list string) ([]int, error) {
	var out []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > 1_000_000 {
			return nil, fmt.Errorf("%q: want numbers from 1 to 1,000,000", word)
		}
		out = append(out, n)
	}
	return out, nil
}

// median of an odd or even number of durations; the later of the two in the middle.
func median(list []time.Duration) time.Duration {
	sorted := slices.SortedFunc(slices.Values(list), cmp.Compare[time.Duration])
	return sorted[len(sorted)/2]
}
