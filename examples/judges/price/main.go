// Price plans the pods of package pricebench with Karpenter and with Joinery, has kube-scheduler judge both plans, and writes
// what they cost.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/examples/pricebench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "price:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("price", flag.ContinueOnError)
	set.SetOutput(stderr)
	sizes := set.String("sizes", "100,1000,5000", "numbers of pods")
	only := set.String("only", "second mix,mix,bimodal,distinct", "workloads, separated by commas")
	limits := set.String("limits", "0,64,16", "most vCPUs of a node; 0 is any number")
	judged := set.Int("judge", 5000, "the most pods that kube-scheduler judges")
	out := set.String("o", "", "file to write the table to; empty is standard output")
	if err := set.Parse(args); err != nil {
		return err
	}
	numbers, err := ints(*sizes)
	if err != nil {
		return fmt.Errorf("-sizes: %w", err)
	}
	most, err := ints(*limits)
	if err != nil {
		return fmt.Errorf("-limits: %w", err)
	}
	var rows []row
	for _, name := range strings.Split(*only, ",") {
		w, ok := workload(strings.TrimSpace(name))
		if !ok {
			return fmt.Errorf("-only: there is no workload %q", name)
		}
		for _, maxCPU := range most {
			for _, n := range numbers {
				r, err := compare(ctx, w, n, int64(maxCPU), *judged)
				if err != nil {
					return fmt.Errorf("%s, %d pods: %w", w.Name, n, err)
				}
				fmt.Fprintln(stderr, r.line())
				rows = append(rows, r)
			}
		}
	}
	text := document(rows, time.Now())
	if *out == "" {
		_, err := io.WriteString(stdout, text)
		return err
	}
	return os.WriteFile(*out, []byte(text), 0o644)
}

func workload(name string) (pricebench.Workload, bool) {
	for _, w := range pricebench.Workloads() {
		if w.Name == name {
			return w, true
		}
	}
	return pricebench.Workload{}, false
}

func ints(list string) ([]int, error) {
	var out []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q: want numbers", word)
		}
		out = append(out, n)
	}
	return out, nil
}

func document(rows []row, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# What Karpenter pays for the same pods

Written by `+"`make bench-price`"+` on %s: Karpenter v1.14.1 and Joinery at default effort, the pods and types of
examples/pricebench (seed 1), without daemons. Price is that of the cheapest offering of each node. Accepted says how many of the placed pods
kube-scheduler's own plugins let on to their planned nodes; larger plans are not judged (a dash). Bound is proved for what
Joinery places. A row counts where both place the same number of pods and both plans are accepted whole.

| workload | vCPU | pods | | placed | accepted | nodes | USD/h | over bound | price | seconds |
| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`, now.Format(time.DateOnly))
	counted, dearer := 0, 0
	for i := range rows {
		fmt.Fprintln(&b, rows[i].line())
		if rows[i].counts() {
			counted++
			if rows[i].ours.price > rows[i].theirs.price*(1+1e-9) {
				dearer++
			}
		}
	}
	fmt.Fprintf(&b, "\n%d rows, %d count, ours is dearer in %d.\n", len(rows), counted, dearer)
	return b.String()
}
