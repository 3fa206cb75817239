//go:build unix

package binpack_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/binpack/frontier"
	"github.com/joinery-sdk/joinery/requirements"
)

// bad draws a problem that takes seconds by one or several of the things that take long: copies, different requirements, types, offerings,
// nodes, open labels with alternatives, minimums, reservations that many types share, diversity.
func bad(rng *rand.Rand) (p binpack.Problem, what string) {
	chance := func(n int) bool { return rng.IntN(n) == 0 }
	p = binpack.Problem{Resources: []string{"cpu", "memory"}, Pools: []binpack.Pool{unbounded("a", 1), unbounded("b", rng.IntN(2))}}
	types, items, copies, nodes := 20+rng.IntN(100), 100, 3, 0
	several := func(n int) int { // usually few
		if chance(3) {
			return 1 + rng.IntN(n)
		}
		return 1 + rng.IntN(10)
	}
	switch rng.IntN(4) {
	case 0:
		types = 500 + rng.IntN(1500)
	case 1:
		items = 2_000 + rng.IntN(20_000)
	case 2:
		items, copies = 1+rng.IntN(5), 10_000_000
	case 3:
		nodes = 2_000 + rng.IntN(5_000)
	}
	requirement, offerings := rng.IntN(5), several(8)
	minimums, reservations, diversity := chance(5), chance(4), chance(4)
	what = fmt.Sprintf("%d types with %d offerings, %d items, %d copies, %d nodes, requirements %d, minimums %t, reservations %t, diversity %t",
		types, offerings, items, copies, nodes, requirement, minimums, reservations, diversity)
	if minimums {
		p.Pools[0].MinValues = []binpack.MinValues{{Key: "type", Count: 30}}
	}
	for i := range types {
		t := typ(fmt.Sprintf("t%d", i), binpack.Price(1000*(1+i%50)+rng.IntN(200)), int64(1000*(1+i%50)), int64(1000*(1+rng.IntN(200))))
		t.Pool = rng.IntN(2)
		t.Provides = requirements.MustOf(requirements.In("type", t.Name), requirements.Exists("team"))
		for k := range 30 {
			t.Provides, _ = t.Provides.Intersect(requirements.MustOf(requirements.In(fmt.Sprint("b", k), "1", "2")))
		}
		for j := range offerings {
			o := binpack.Offering{Price: t.Offerings[0].Price + binpack.Price(j), Provides: requirements.MustOf(requirements.In("zone", fmt.Sprint("z", j%3)))}
			if reservations && chance(3) {
				o.Counted, o.Count, o.Reservation = true, 1+rng.IntN(5_000), fmt.Sprint("r", rng.IntN(3))
			}
			if diversity {
				o.CapacityPool = fmt.Sprint("", rng.IntN(50))
			}
			t.Offerings = append(t.Offerings, o)
		}
		p.Types = append(p.Types, t)
	}
	for i := range items {
		it := item(fmt.Sprintf("i%d", i), copies, int64(10+rng.IntN(3000)), int64(10+rng.IntN(8000)))
		switch requirement {
		case 1:
			it.Requires = requirements.AnyOf(requirements.MustOf(requirements.NotIn("host", fmt.Sprint("h", i))))
		case 2:
			var some []string
			for range 3 {
				some = append(some, fmt.Sprint("t", rng.IntN(types)))
			}
			it.Requires = requirements.AnyOf(requirements.MustOf(requirements.NotIn("type", some...)))
		case 3:
			it.Requires = requirements.AnyOf(requirements.MustOf(requirements.In("team", fmt.Sprint(rng.IntN(3)))), requirements.MustOf(requirements.In(fmt.Sprint("b", rng.IntN(30)), "1")))
		case 4:
			it.Requires = requirements.AnyOf(requirements.MustOf(requirements.In("zone", fmt.Sprint("z", rng.IntN(3)))))
		}
		if chance(10) {
			it.Tags, it.Limits = []string{fmt.Sprint(i % 7)}, []binpack.Limit{{Tag: fmt.Sprint(i % 7), Max: 1}}
		}
		p.Items = append(p.Items, it)
	}
	for i := range nodes {
		p.Nodes = append(p.Nodes, binpack.Node{Name: fmt.Sprint("n", i), Free: []int64{int64(rng.IntN(8000)), int64(rng.IntN(9000))}, Provides: requirements.MustOf(requirements.In("zone", fmt.Sprint("z", i%3)))})
	}
	if diversity {
		d := binpack.Diversity{Max: 1 + rng.IntN(500)}
		for i := range items {
			d.Items = append(d.Items, binpack.Share{Item: i, Count: 1})
		}
		p.Diversity = []binpack.Diversity{d}
	}
	return p, what
}

// tangled has n items that one bin holds, each with two alternatives of open labels, of which the last item makes the first wrong.
func tangled(n int) binpack.Problem {
	provides := "a in (1,2), c in (1,2)"
	for i := range n {
		provides += fmt.Sprintf(", b%d in (1,2)", i)
	}
	x := typ("x", 10, int64(10*n+1))
	x.Provides = requirements.MustParse(provides)
	p := one([]string{"cpu"}, []binpack.Type{x})
	for i := range n {
		it := item(fmt.Sprintf("i%02d", i), 1, 10)
		it.Requires = requirements.AnyOf(requirements.MustParse("a=1"), requirements.MustParse(fmt.Sprintf("b%d=1", i)))
		p.Items = append(p.Items, it)
	}
	last := item("last", 1, 1)
	last.Requires = requirements.AnyOf(requirements.MustParse("a=2, c=1"), requirements.MustParse("a=2, c=2"))
	p.Items = append(p.Items, last)
	return p
}

// late is by how much f ends after its context, in a few tries at best: by its own processor time where other work slows the machine down.
func late(tb testing.TB, timeout time.Duration, f func(ctx context.Context)) time.Duration {
	tb.Helper()
	least := time.Hour
	for range 5 {
		ctx, cancel := context.WithTimeout(tb.Context(), timeout)
		start, used := time.Now(), processorTime(tb)
		f(ctx)
		least = min(least, time.Since(start)-timeout, processorTime(tb)-used-timeout)
		cancel()
		if least <= promptly {
			break
		}
	}
	return least
}

// promptly is how late an entry may end after its context, which [BenchmarkCancellation] asserts on an idle machine.
const promptly = 100 * time.Millisecond

// soon requires that f does not go on after its context. What it asks is lax, for slow machines and the race detector: what ignores a context
// takes many seconds.
func soon(tb testing.TB, timeout time.Duration, what string, f func(ctx context.Context)) {
	tb.Helper()
	if by := late(tb, timeout, f); by > 10*promptly {
		tb.Errorf("%v late after %v: %s", by, timeout, what)
	}
}

// processorTime is what the process has used of all processors.
func processorTime(tb testing.TB) time.Duration {
	var usage syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// entries calls each entry with a bad problem and a context that ends soon.
func entries(tb testing.TB, rounds int, ends func(timeout time.Duration, what string, f func(ctx context.Context))) {
	rng := rand.New(rand.NewPCG(71, 72))
	for k := range rounds {
		p, what := bad(rng)
		timeout := []time.Duration{0, 5, 20, 50}[rng.IntN(4)] * time.Millisecond
		for _, o := range []binpack.Options{{Effort: binpack.EffortFast}, {}, {Effort: binpack.EffortBest}, {Strategy: binpack.FirstFitDecreasing{}}, {Strategy: binpack.FirstFitDecreasing{}, Draft: true}} {
			ends(timeout, fmt.Sprintf("%d: Pack %+v of %s", k, o, what), func(ctx context.Context) {
				_, err := binpack.Pack(ctx, p, &o)
				require.NoError(tb, err)
			})
		}
		ends(timeout, fmt.Sprintf("%d: Frontier of %s", k, what), func(ctx context.Context) {
			_, err := frontier.Of(ctx, p, nil)
			require.NoError(tb, err)
		})
	}
}

// Every entry ends soon after its context does, with a lawful plan.
func TestEveryEntryEndsWithItsContext(t *testing.T) {
	entries(t, alone(t, 15, 60), func(timeout time.Duration, what string, f func(ctx context.Context)) { soon(t, timeout, what, f) })
}

// The time from the end of a context to the answer is 100 ms at most, and most of it is spent on reading the problem.
func BenchmarkCancellation(b *testing.B) {
	most := time.Duration(0)
	for b.Loop() {
		entries(b, 60, func(timeout time.Duration, what string, f func(ctx context.Context)) {
			by := late(b, timeout, f)
			assert.LessOrEqual(b, by, promptly, "after %v: %s", timeout, what)
			most = max(most, by)
		})
	}
	b.ReportMetric(float64(most.Milliseconds()), "ms-late")
}

// Alternatives of open labels are not tried in all combinations.
func TestTangledAlternatives(t *testing.T) {
	for _, n := range []int{8, 16, 24, 40} {
		p := tangled(n)
		soon(t, 2*time.Second, fmt.Sprintf("Pack of %d tangled items", n), func(ctx context.Context) {
			plan, err := binpack.Pack(ctx, p, nil)
			require.NoError(t, err)
			require.Len(t, plan.Bins, 1)
		})
	}
}
