package bound_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

var (
	claims = flag.Int("claims", 16, "how many random plans to make claims of")
	from   = flag.Uint64("from", 1, "the seed of the first; the others follow")
	pins   = flag.Int("pins", 3, "plans of each with workloads tied to zones")
)

// mostTypes limits how many of the types that a plan buys are left out, one at a time.
const mostTypes = 4

// found is what other plans of the same pods cost.
type found struct {
	err     error
	plans   int // others that place at least the same pods
	refuted []string
	cost    binpack.Price
	// chosen is the least cost of plans that keep weights, preferences and the domains of hard spreads, the plan's own among them.
	chosen binpack.Price
	by     string
}

// No plan of the same pods is cheaper than the bound, whatever is taken away: zones, pools, weights, preferences.
func TestNobodyPlacesThemBelowTheBound(t *testing.T) {
	for _, set := range []struct {
		name   string
		priced bool
	}{{"one price for all zones", false}, {"prices by zone", true}} {
		t.Run(set.name, func(t *testing.T) {
			out := make([]found, *claims)
			inParallel(*claims, func(i int) {
				seed := *from + uint64(i)
				s, err := replay.Snapshot(scenario.Generate(seed, scenario.Options{Pods: 20 + int(seed*37%61), Limits: seed%4 == 0}))
				if err == nil && set.priced {
					s = zonePrices(s, seed)
				}
				if err != nil {
					out[i].err = err
					return
				}
				out[i] = look(t.Context(), s)
			})
			plans, saved, bought := 0, 0.0, 0
			for i, f := range out {
				require.NoError(t, f.err, "seed %d", *from+uint64(i))
				plans += f.plans
				for _, r := range f.refuted {
					t.Errorf("seed %d: %s", *from+uint64(i), r)
				}
				if f.cost > 0 {
					bought++
					saved += 1 - float64(f.chosen)/float64(f.cost)
					if f.chosen < f.cost-f.cost/20 {
						t.Logf("seed %d: %v is %.1f%% cheaper", *from+uint64(i), f.by, 100-100*float64(f.chosen)/float64(f.cost))
					}
				}
			}
			fmt.Printf("%s: %d claims, %d other plans; the cheapest that keeps weights, preferences and the domains of hard spreads is %.2f%% cheaper in the mean of %d\n",
				set.name, len(out), plans, 100*saved/float64(max(1, bought)), bought)
		})
	}
}

// look makes a plan and other plans of the pods that it places.
func look(ctx context.Context, s scheduling.Snapshot) found {
	p, err := plan.Make(ctx, s, nil)
	if err != nil {
		return found{err: err}
	}
	if err := p.Bound.Verify(); err != nil {
		return found{err: err}
	}
	if p.Bound.Kind == "" {
		return found{err: errors.New("the plan is no packing of its relaxation")}
	}
	f := found{cost: p.Cost(), chosen: p.Cost(), by: "the plan"}
	refused := map[string]bool{}
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			refused[pod.Namespace+"/"+pod.Name] = true
		}
	}
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool { return refused[pod.Namespace+"/"+pod.Name] })
	alone, err := scheduling.Compile(s, nil) // pods that are not placed have spreads that nothing else has
	if err != nil {
		return found{err: err}
	}
	var types []string // those that the plan buys
	for _, n := range p.NewNodes() {
		if name := n.InstanceType.Name; !slices.Contains(types, name) && len(types) < mostTypes {
			types = append(types, name)
		}
	}
	for _, o := range others(s, types, *pins) {
		q, err := plan.Make(ctx, o.snapshot, o.options)
		if err != nil {
			f.err = fmt.Errorf("%s: %w", o.name, err)
			return f
		}
		if len(q.Unplaced()) > 0 || len(q.Bindings()) < len(p.Bindings()) {
			continue
		}
		f.plans++
		if q.Cost() < p.Bound.Price {
			f.refuted = append(f.refuted, fmt.Sprintf("%s costs %v, and the claim is %v", o.name, q.Cost().Dollars(), p.Bound.Price.Dollars()))
		}
		if o.chosen && q.Cost() < f.chosen && maps.EqualFunc(domains(alone), domains(q.Problem), slices.Equal) {
			f.chosen, f.by = q.Cost(), o.name
		}
	}
	return f
}

func inParallel(n int, do func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
