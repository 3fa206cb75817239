package simulate_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/scheduling"
)

func TestDbg22(t *testing.T) {
	draw, size := 54, 60
	o := fragment.Options{Nodes: size, Seed: rand.New(rand.NewPCG(uint64(draw), uint64(size))).Uint64(), Constrained: draw%2 == 1}
	for _, b := range []string{`{nodes: "100%"}`, `{nodes: "10%"}`} {
		o.Pool = strings.Replace(fragment.Pool, `{nodes: "100%"}`, b, 1)
		c, err := fragment.Generate(o)
		require.NoError(t, err)
		guarded(c, o.Seed)
		kept := untouchable(c)
		s := c.Snapshot
		price := func(s scheduling.Snapshot) (stay, rest float64, n, of int) {
			held := map[string]bool{}
			for _, p := range s.Pods {
				if kept[p.Labels["app"]] {
					held[p.Spec.NodeName] = true
				}
			}
			out := s
			out.Nodes, out.Pods = nil, nil
			sim, nominated, err := simulate.New(s)
			require.NoError(t, err)
			_ = sim
			cl := simulate.Cluster(c.Manifests, s, nominated, fragment.Now())
			pr := map[string]float64{}
			for i := range cl.Nodes {
				pr[cl.Nodes[i].Name()] = cl.Nodes[i].PricePerHour.Dollars()
			}
			for _, x := range s.Nodes {
				if held[x.Name] {
					out.Nodes = append(out.Nodes, x)
					stay += pr[x.Name]
					n++
				}
			}
			of = len(s.Nodes)
			for _, p := range s.Pods {
				if held[p.Spec.NodeName] {
					out.Pods = append(out.Pods, p)
					continue
				}
				q := *p
				q.Spec.NodeName, q.Status = "", corev1.PodStatus{}
				out.Pods = append(out.Pods, &q)
			}
			packed, err := plan.Make(t.Context(), out, &plan.Options{Packing: &binpack.Options{Strategy: binpack.CostAware{}}})
			require.NoError(t, err)
			t.Logf("unplaced %d", len(packed.Unplaced()))
			return stay, packed.Packing.Cost.Dollars(), n, of
		}
		st, re, n, of := price(s)
		t.Logf("%s start: kept %d of %d nodes $%.3f + new $%.3f = %.3f", b, n, of, st, re, st+re)
		for at, last := fragment.Now(), fragment.Now(); ; at = at.Add(time.Hour) {
			sim, nominated, err := simulate.New(s)
			require.NoError(t, err)
			r, err := giveback.Make(t.Context(), simulate.Cluster(c.Manifests, s, nominated, at), sim, nil)
			require.NoError(t, err)
			if len(r.Commands) > 0 {
				t.Logf("%s: $%.3f -> $%.3f, %d commands, %d evictions, gone %d", at.Format("02 15:04"), r.PricePerHour.Dollars(), r.PricePerHourAfter.Dollars(), len(r.Commands), r.Evictions, len(r.Commands[0].Nodes))
			}
			for i := range r.Commands {
				if s, err = simulate.Apply(s, &r.Commands[i], at); err != nil {
					require.NoError(t, err)
				}
			}
			if len(r.Commands) > 0 {
				last = at
				continue
			}
			if at.Sub(last) > 24*time.Hour {
				st, re, n, of := price(s)
				t.Logf("end $%.3f: kept %d of %d nodes $%.3f + new $%.3f = %.3f", r.PricePerHourAfter.Dollars(), n, of, st, re, st+re)
				// without budgets
				o.Pool = fragment.Pool
				f, _ := fragment.Generate(o)
				s.Pools = f.Snapshot.Pools
				sim, nominated, err := simulate.New(s)
				require.NoError(t, err)
				r, err := giveback.Make(t.Context(), simulate.Cluster(c.Manifests, s, nominated, at), sim, nil)
				require.NoError(t, err)
				t.Logf("freed: $%.3f -> $%.3f", r.PricePerHour.Dollars(), r.PricePerHourAfter.Dollars())
				break
			}
			at = at.Add(8 * time.Hour)
		}
	}
}

func TestDbg22b(t *testing.T) {
	for _, draw := range []int{22, 23, 26, 27, 30, 31, 34, 35, 38, 39, 42, 43, 46, 47, 50, 51, 55, 59, 63, 67} {
	  for _, size := range []int{20, 60} {
		o := fragment.Options{Nodes: size, Seed: rand.New(rand.NewPCG(uint64(draw), uint64(size))).Uint64(), Constrained: draw%2 == 1}
		c, err := fragment.Generate(o)
		require.NoError(t, err)
		guarded(c, o.Seed)
		kept := untouchable(c)
		s := c.Snapshot
		held := map[string]bool{}
		for _, p := range s.Pods {
			if kept[p.Labels["app"]] {
				held[p.Spec.NodeName] = true
			}
		}
		out := s
		out.Nodes, out.Pods = nil, nil
		sim, nominated, err := simulate.New(s)
		require.NoError(t, err)
		cl := simulate.Cluster(c.Manifests, s, nominated, fragment.Now())
		stay := 0.0
		pr := map[string]float64{}
		for i := range cl.Nodes {
			pr[cl.Nodes[i].Name()] = cl.Nodes[i].PricePerHour.Dollars()
		}
		for _, x := range s.Nodes {
			if held[x.Name] {
				out.Nodes = append(out.Nodes, x)
				stay += pr[x.Name]
			}
		}
		for _, p := range s.Pods {
			if held[p.Spec.NodeName] {
				out.Pods = append(out.Pods, p)
				continue
			}
			q := *p
			q.Spec.NodeName, q.Status = "", corev1.PodStatus{}
			out.Pods = append(out.Pods, &q)
		}
		packed, err := plan.Make(t.Context(), out, &plan.Options{Packing: &binpack.Options{Strategy: binpack.CostAware{}}})
		require.NoError(t, err)
		a, err := giveback.Make(t.Context(), cl, sim, nil)
		require.NoError(t, err)
		b, err := giveback.Make(t.Context(), cl, sim, &giveback.Options{Objective: policy.AnySaving()})
		require.NoError(t, err)
		sc := stay + packed.Packing.Cost.Dollars()
		t.Logf("draw %d, %d nodes, %d kept: from $%.3f, scratch %.3f (unplaced %d), default %.3f (%+.1f%%, %d ev), any %.3f (%+.1f%%, %d ev)", draw, size, len(out.Nodes), a.PricePerHour.Dollars(), sc, len(packed.Unplaced()), a.PricePerHourAfter.Dollars(), 100*(a.PricePerHourAfter.Dollars()/sc-1), a.Evictions, b.PricePerHourAfter.Dollars(), 100*(b.PricePerHourAfter.Dollars()/sc-1), b.Evictions)
	  }
	}
}
