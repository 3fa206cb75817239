// Price plans the pods of package pricebench with Karpenter and with Joinery, has kube-scheduler
// judge both plans, and writes what they cost.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
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
	draws := set.Int("draws", 10, "how many draws of the second mix are compared at 1,000 and 5,000 pods, open catalogue")
	judged := set.Int("judge", 5000, "the most pods that kube-scheduler judges")
	patience := set.Int("work", 60_000_000, "how much one row may ask of Karpenter, in pods times pods times nodes: a larger one gets fewer pods; 0 is any")
	most := set.Duration("for", 7*time.Minute, "no row is begun after so long")
	out := set.String("o", "", "file to write the table to, again after each row; empty is standard output, at the end")
	if err := set.Parse(args); err != nil {
		return err
	}
	todo, err := schedule(*only, *limits, *sizes, *draws, *patience)
	if err != nil {
		return err
	}
	begun := time.Now()
	var done []row
	left := 0
	for _, c := range todo {
		if time.Since(begun) > *most {
			left++
			continue
		}
		r, err := compare(ctx, c.workload, c.pods, c.maxCPU, c.seed, *judged)
		if err != nil {
			return fmt.Errorf("%s, %d pods: %w", c.workload.Name, c.pods, err)
		}
		fmt.Fprintln(stderr, r.line())
		done = append(done, r)
		if *out != "" {
			if err := os.WriteFile(*out, []byte(document(done, len(todo)-len(done), begun)), 0o644); err != nil {
				return err
			}
		}
	}
	if left > 0 {
		fmt.Fprintf(stderr, "%d comparisons were left out after %s\n", left, *most)
	}
	if *out == "" {
		_, err := io.WriteString(stdout, document(done, left, begun))
		return err
	}
	return nil
}

// comparison is one that is to be made.
type comparison struct {
	workload pricebench.Workload
	maxCPU   int64
	pods     int
	seed     uint64
}

// schedule puts first what takes Karpenter little time. Where nodes are small it would take minutes
// for thousands of pods, so a row has fewer of them then, if a patience is given.
func schedule(only, limits, sizes string, draws, patience int) ([]comparison, error) {
	numbers, err := ints(sizes)
	if err != nil {
		return nil, fmt.Errorf("-sizes: %w", err)
	}
	most, err := ints(limits)
	if err != nil {
		return nil, fmt.Errorf("-limits: %w", err)
	}
	var out []comparison
	for name := range strings.SplitSeq(only, ",") {
		w, ok := workload(strings.TrimSpace(name))
		if !ok {
			return nil, fmt.Errorf("-only: there is no workload %q", name)
		}
		for _, maxCPU := range most {
			for _, n := range numbers {
				c := comparison{w, int64(maxCPU), n, 1}
				for patience > 0 && c.work() > patience && c.pods > 500 {
					c.pods -= 500
				}
				if !slices.ContainsFunc(out, c.same) {
					out = append(out, c)
				}
			}
		}
		if w.Name == "second mix" {
			for _, n := range []int{1000, 5000} {
				for seed := 2; seed <= draws; seed++ {
					out = append(out, comparison{w, 0, n, uint64(seed)})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b comparison) int { return cmp.Compare(a.work(), b.work()) })
	return out, nil
}

func (c comparison) same(o comparison) bool {
	return c.workload.Name == o.workload.Name && c.maxCPU == o.maxCPU && c.pods == o.pods && c.seed == o.seed
}

// work grows with the time that Karpenter takes: pods times the nodes that it opens for them.
func (c comparison) work() int {
	nodes := 1
	if c.maxCPU > 0 {
		nodes += int(400 / c.maxCPU)
	}
	return c.pods * c.pods * nodes
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

// document is the tables of what has been compared.
func document(rows []row, left int, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# What Karpenter pays for the same pods

Written by `+"`make bench-price`"+` on %s: Karpenter v1.15.0 and Joinery at default effort, the pods and types of
examples/pricebench, without daemons. Price is that of the cheapest offering of each node. Accepted says how many of the placed pods
kube-scheduler's own plugins let on to their planned nodes; larger plans are not judged (a dash). Bound is proved for what
Joinery places. A row counts where both place the same number of pods and both plans are accepted whole. Limited to small
nodes, Karpenter takes minutes for 5,000 pods, so these rows have fewer.
`, now.Format(time.DateOnly))
	if left > 0 {
		fmt.Fprintf(&b, "\n%d comparisons, those that take Karpenter longest, were left out for the sake of time; -for allows for more.\n", left)
	}
	drawn := map[int][]row{}
	var table []row
	for _, r := range rows {
		if r.seed == 1 {
			table = append(table, r)
		}
		if r.workload == "second mix" && r.maxCPU == 0 && r.pods >= 1000 && r.counts() {
			drawn[r.pods] = append(drawn[r.pods], r)
		}
	}
	writeDraws(&b, drawn)
	order := []string{"second mix", "mix", "bimodal", "distinct"}
	slices.SortStableFunc(table, func(a, b row) int {
		return cmp.Or(slices.Index(order, a.workload)-slices.Index(order, b.workload), cmp.Compare(limitOrder(a), limitOrder(b)), cmp.Compare(a.pods, b.pods))
	})
	b.WriteString(`
## All workloads, the first draw

| workload | vCPU | pods | | placed | accepted | nodes | USD/h | over bound | price | seconds |
| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`)
	counted, dearer := 0, 0
	for i := range table {
		fmt.Fprintln(&b, table[i].line())
		if table[i].counts() {
			counted++
			if table[i].ours.price > table[i].theirs.price*(1+1e-9) {
				dearer++
			}
		}
	}
	fmt.Fprintf(&b, "\n%d rows, %d count, ours is dearer in %d.\n", len(table), counted, dearer)
	return b.String()
}

// limitOrder puts any size first, then the large ones.
func limitOrder(r row) int64 {
	if r.maxCPU == 0 {
		return math.MinInt64
	}
	return -r.maxCPU
}

// writeDraws writes how much the saving varies with the draw.
func writeDraws(b *strings.Builder, drawn map[int][]row) {
	b.WriteString(`
## The second mix, open catalogue, draw by draw

What is saved at 1,000 pods depends on the draw: Karpenter buys two nodes then, and of which type the second is decides how far its
price is above the bound, below which no plan can go. Ours stays close to the bound in all.

| pods | draw | bound | Karpenter | over bound | Joinery | over bound | price |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`)
	var sizes []int
	for n := range drawn {
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	for _, n := range sizes {
		rows := drawn[n]
		slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.seed, b.seed) })
		ours, theirs, least, most := 0.0, 0.0, math.Inf(1), math.Inf(-1)
		for _, r := range rows {
			fmt.Fprintf(b, "| %d | %d | %.3f | %.3f | %+.1f%% | %.3f | %+.1f%% | %+.1f%% |\n", n, r.seed, r.bound,
				r.theirs.price, 100*(r.theirs.price/r.bound-1), r.ours.price, 100*(r.ours.price/r.bound-1), r.saving())
			ours, theirs = ours+r.ours.price, theirs+r.theirs.price
			least, most = min(least, r.saving()), max(most, r.saving())
		}
		if len(rows) > 1 {
			fmt.Fprintf(b, "| %d | all %d | | %.3f | | %.3f | | %+.1f%% (from %+.1f%% to %+.1f%%) |\n", n, len(rows), theirs, ours, 100*(ours/theirs-1), least, most)
		}
	}
}
