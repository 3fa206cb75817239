package deprovision_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/scheduling"
)

// clusters is how many clusters are drawn: the full count, or a part of it, where the environment asks for long tests (make test-long), or
// as many as it names.
func clusters(usual, full int) int {
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		return max(usual, full/parts)
	}
	if n, err := strconv.Atoi(os.Getenv("JOINERY_CLUSTERS")); err == nil {
		return n
	}
	if testing.Short() {
		return usual / 10
	}
	return usual
}

func now() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }

// tally is what was seen over many clusters.
type tally struct {
	clusters, commands, evictions int
	saved                         deprovision.Price // an hour
	methods                       map[string]int
	// others are places of pods that move by themselves, refused how many were refused in any of the worlds, and late how many of
	// those that are tried after all commands.
	others, refused, late int
}

func (a *tally) add(b tally) {
	a.clusters += b.clusters
	a.commands += b.commands
	a.evictions += b.evictions
	a.saved += b.saved
	a.others += b.others
	a.refused += b.refused
	a.late += b.late
	for m, n := range b.methods {
		if a.methods == nil {
			a.methods = map[string]int{}
		}
		a.methods[m] += n
	}
}

func few(n int) string {
	if n < 2 {
		return strconv.Itoa(n)
	}
	return "several"
}

func (a *tally) see(c *giveback.Command) {
	what := fmt.Sprintf("%s %s %s to %s", c.Method, c.Kind, few(len(c.Nodes)), few(len(c.NewNodes)))
	if len(c.Waves) > 0 {
		what += " in waves"
	}
	a.add(tally{commands: 1, evictions: len(c.Placements), saved: c.SavingsPerHour, methods: map[string]int{what: 1}})
}

// each draws clusters on all cores. What went wrong is reported in the order of the seeds; JOINERY_FROM is the first of them.
func each(t *testing.T, count int, check func(ctx context.Context, seed uint64) (tally, error)) {
	first, _ := strconv.ParseUint(os.Getenv("JOINERY_FROM"), 10, 64)
	sums, errs := make([]tally, count), make([]error, count)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(count); i = next.Add(1) - 1 {
				sums[i], errs[i] = check(t.Context(), first+uint64(i))
				sums[i].clusters = 1
			}
		})
	}
	wg.Wait()
	var all tally
	for i := range count {
		all.add(sums[i])
		assert.NoError(t, errs[i], "seed %d", first+uint64(i))
	}
	t.Logf("%d clusters, %d commands, %d evictions, $%.4f saved, %d places kept for others, %d of them refused and %d after all commands; by method: %v", all.clusters, all.commands, all.evictions, all.saved.Dollars(), all.others, all.refused, all.late, all.methods)
	require.Positive(t, all.commands)
}

func TestCommandsAreAccepted(t *testing.T) {
	each(t, clusters(40, 1000), func(ctx context.Context, seed uint64) (seen tally, err error) {
		w, err := draw(ctx, seed, true)
		if err != nil {
			return seen, err
		}
		r1 := rand.New(rand.NewPCG(seed, 5))
		half := 30 * time.Minute
		switch seed % 5 {
		case 3:
			for _, n := range w.snapshot.Nodes[:min(2, len(w.snapshot.Nodes))] {
				w.interrupted = append(w.interrupted, deprovision.Interruption{Node: n.Name, Deadline: now().Add(time.Duration(r1.IntN(60)) * time.Minute)})
			}
		case 2:
			w.broken = map[string]*eligibility.Repair{}
			for _, n := range w.snapshot.Nodes[:min(3, len(w.snapshot.Nodes))] {
				w.broken[n.Name] = &eligibility.Repair{Since: now().Add(-time.Duration(r1.IntN(60)) * time.Minute), Why: "it is broken"}
			}
		case 4: // all of a pool's nodes are older
			w.snapshot.Pools[r1.IntN(len(w.snapshot.Pools))].Disruption.ExpireAfter = &half
		}
		o := &giveback.Options{SpotToSpot: seed%2 == 0, SpotFlexibility: 3}
		switch seed % 4 {
		case 1:
			o.Objective = policy.Balanced(2)
		case 2:
			o.Objective = policy.AnySaving()
		case 3:
			o.MaxEvictions = 3 + r1.IntN(10)
		}
		r, c, err := give(ctx, w, w.snapshot, o)
		if err != nil {
			return seen, err
		}
		s := w.snapshot
		taken, largest := map[string]int{}, map[string]int{}
		if err := once(&r); err != nil {
			return seen, err
		}
		for i := range r.Commands {
			cmd := &r.Commands[i]
			voluntary := cmd.Method != eligibility.Interruption && cmd.Method != eligibility.Expiration
			if err := respects(w, s, cmd); err != nil && voluntary {
				return seen, fmt.Errorf("command %d: %w", i, err)
			}
			if s, err = w.judge(ctx, s, cmd); err != nil {
				return seen, fmt.Errorf("command %d, %s: %w", i, brief(cmd), err)
			}
			for _, part := range waves(cmd) {
				leave := map[string]int{}
				for _, n := range part.Nodes {
					if leave[n.Pool]++; voluntary && len(cmd.Waves) == 0 {
						taken[n.Pool]++
					}
				}
				for pool, n := range leave {
					if voluntary && len(cmd.Waves) > 0 {
						largest[pool] = max(largest[pool], n)
					}
				}
			}
			seen.see(cmd)
		}
		for _, p := range w.snapshot.Pools {
			nodes := 0
			for i := range c.Nodes {
				if c.Nodes[i].PoolName() == p.Name {
					nodes++
				}
			}
			for _, b := range p.Disruption.Budgets {
				if n := taken[p.Name] + largest[p.Name]; n > b.Allowed(nodes) {
					return seen, fmt.Errorf("pool %s loses %d of %d nodes at once, and its budgets allow %d", p.Name, n, nodes, b.Allowed(nodes))
				}
			}
		}
		if len(r.Verdicts) != len(w.snapshot.Nodes) {
			return seen, fmt.Errorf("%d verdicts for %d nodes", len(r.Verdicts), len(w.snapshot.Nodes))
		}
		return seen, nil
	})
}

// once checks that no pod moves twice, that no node is bought to be given back, and that a node which is given back takes no pod.
func once(r *giveback.Result) error {
	moved, bought, gone := map[*corev1.Pod]bool{}, map[string]bool{}, map[string]bool{}
	for i := range r.Commands {
		for _, n := range r.Commands[i].Nodes {
			gone[n.Name] = true
		}
	}
	for i := range r.Commands {
		c := &r.Commands[i]
		for _, n := range c.NewNodes {
			bought[n.Name] = true
		}
		for _, n := range c.Nodes {
			if bought[n.Name] {
				return fmt.Errorf("command %d gives %s back, which the plan buys", i, n.Name)
			}
		}
		for _, p := range c.Placements {
			if moved[p.Pod] || gone[p.Node] {
				return fmt.Errorf("command %d moves %s to %s, and it moves again", i, p.Pod.Name, p.Node)
			}
			moved[p.Pod] = true
		}
	}
	if len(moved) != r.Evictions {
		return fmt.Errorf("%d pods move, and %d evictions are reported", len(moved), r.Evictions)
	}
	return nil
}

// fresh is the first command of a later plan if it moves only pods which the plan before it left where they were: that plan should
// have had it. It moves each pod at most once, so it could not have a command that moves a pod a second time, nor one
// after that, which may need the capacity that it frees.
func fresh(before, after *giveback.Result) *giveback.Command {
	moved := map[string]bool{}
	for i := range before.Commands {
		for _, p := range before.Commands[i].Pods() {
			moved[p.Namespace+"/"+p.Name] = true
		}
	}
	if len(after.Commands) == 0 {
		return nil
	}
	c := &after.Commands[0]
	if slices.ContainsFunc(c.Pods(), func(p *corev1.Pod) bool { return moved[p.Namespace+"/"+p.Name] }) {
		return nil
	}
	return c
}

// carryOut plans the cluster and carries out the commands. It returns the plan and the cluster after it.
func (w *world) carryOut(ctx context.Context, o *giveback.Options, seen *tally) (giveback.Result, scheduling.Snapshot, error) {
	s := w.snapshot
	r, _, err := give(ctx, w, s, o)
	if err != nil {
		return r, s, err
	}
	for i := range r.Commands {
		seen.see(&r.Commands[i])
		if s, err = w.judge(ctx, s, &r.Commands[i]); err != nil {
			return r, s, fmt.Errorf("command %d, %s: %w", i, brief(&r.Commands[i]), err)
		}
	}
	return r, s, nil
}

// A consolidated cluster is quiet when it is planned again, under every policy: a plan that is made again begins with no command that
// moves only pods which have not moved. What would move a pod once more is excused and counted. In every other cluster pods are pending
// and nodes leave, and still do when it is planned again; where the places that are kept for them are others then, a command is excused
// and counted, too.
func TestConsolidatedStaysQuiet(t *testing.T) {
	var twice, dealt atomic.Int64
	policies := []giveback.Objective{policy.AnySaving(), policy.Balanced(2), {}}
	each(t, clusters(20, 500), func(ctx context.Context, seed uint64) (seen tally, err error) {
		w, err := draw(ctx, seed, false)
		if err != nil {
			return seen, err
		}
		if seed%2 == 1 {
			w.disturb(rand.New(rand.NewPCG(seed, 9)))
		}
		for _, pol := range policies {
			r, s, err := w.carryOut(ctx, &giveback.Options{Objective: pol}, &seen)
			if err != nil {
				return seen, fmt.Errorf("policy %+v, %w", pol, err)
			}
			again, _, err := give(ctx, w, s, &giveback.Options{Objective: pol})
			if err != nil {
				return seen, err
			}
			if seed%2 == 1 && len(again.Commands) > 0 {
				same, err := samePlaces(w.snapshot, s)
				if err != nil {
					return seen, err
				}
				if !same {
					dealt.Add(1)
					continue
				}
			}
			if c := fresh(&r, &again); c != nil {
				return seen, fmt.Errorf("policy %+v is not quiet after %d commands: %s saves $%.4f (%s)", pol, len(r.Commands), brief(c), c.SavingsPerHour.Dollars(), c.Why)
			}
			if len(again.Commands) > 0 {
				twice.Add(1)
			}
		}
		return seen, nil
	})
	t.Logf("%d plans would go on if pods moved twice, and %d because other places are kept for pods that move by themselves", twice.Load(), dealt.Load())
}

// samePlaces reports whether the same places are kept in both snapshots for pods that move by themselves.
func samePlaces(a, b scheduling.Snapshot) (bool, error) {
	var places [2]map[types.NamespacedName]string
	for i, s := range []scheduling.Snapshot{a, b} {
		sim, _, err := simulate.New(s)
		if err != nil {
			return false, err
		}
		places[i] = map[types.NamespacedName]string{}
		for _, p := range sim.Reserved() {
			places[i][key(p.Pod)] = p.Node
		}
	}
	return maps.Equal(places[0], places[1]), nil
}
