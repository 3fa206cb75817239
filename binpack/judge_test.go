package binpack_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// judged is an instance in the format of testdata/cpsat/judge.py.
type judged struct {
	Items    []judgedItem `json:"items"`
	Types    []judgedType `json:"types"`
	Nodes    []judgedBin  `json:"nodes"`
	Pools    []judgedPool `json:"pools"`
	Spread   []judgedMost `json:"spread"`
	Supplies []int        `json:"supplies"`
}

type judgedItem struct {
	Size  []int64 `json:"size"`
	Count int     `json:"count"`
	Group string  `json:"group"`
	Apart int     `json:"apart"` // 0 means no limit on the group in one bin
}

// judgedMost limits what one capacity pool holds.
type judgedMost struct {
	Counts []int `json:"counts"` // by item
	Most   int   `json:"most"`
}

type judgedBin struct {
	Capacity []int64 `json:"capacity"`
	Source   string  `json:"source"` // the capacity pool
	May      []bool  `json:"may"`    // by item
}

type judgedType struct {
	judgedBin
	Price  int64 `json:"price"`
	Supply int   `json:"supply"`
	Pool   int   `json:"pool"`
	Usage  int64 `json:"usage"`
	Most   int   `json:"most"`
	Takes  int   `json:"takes"`
}

type judgedPool struct {
	Nodes int   `json:"nodes"`
	Price int64 `json:"price"`
	Limit int64 `json:"limit"`
}

// instance draws a problem of up to fourteen copies: zero capacities, several resources, prices of 0 and far apart, counted
// supplies alone and shared, budgets, two architectures, labels, items apart, existing nodes.
func instance(rng *rand.Rand) binpack.Problem {
	p := binpack.Problem{Resources: []string{"cpu", "memory", "gpu"}[:1+rng.IntN(3)]}
	chance := func(n int) bool { return rng.IntN(n) == 0 }
	vector := func(from, n, none int) []int64 {
		v := make([]int64, len(p.Resources))
		for r := range v {
			if v[r] = int64(from + rng.IntN(n)); chance(none) {
				v[r] = 0
			}
		}
		return v
	}
	for i := range 1 + rng.IntN(2) {
		pool := unbounded(fmt.Sprintf("pool-%d", i), 0)
		switch rng.IntN(8) {
		case 0:
			pool.MaxNodes = 1 + rng.IntN(6)
		case 1:
			pool.MaxPrice = binpack.Price(20 + rng.IntN(100))
		case 2:
			pool.Limits = []int64{int64(rng.IntN(12))}
		}
		p.Pools = append(p.Pools, pool)
	}
	spot := chance(3)
	arch, zone := []string{"amd64", "arm64"}, []string{"z1", "z2"}
	for i := range 1 + rng.IntN(5) {
		t := binpack.Type{
			Name: fmt.Sprintf("t%d", i), Pool: rng.IntN(len(p.Pools)), Capacity: vector(6, 30, 4),
			Provides: requirements.MustOf(requirements.In("arch", arch[rng.IntN(2)])),
		}
		if len(p.Pools[t.Pool].Limits) > 0 {
			t.Usage = []int64{int64(rng.IntN(5))}
		}
		for range 1 + rng.IntN(2) {
			o := binpack.Offering{Price: binpack.Price(1 + rng.IntN(40)), Provides: requirements.MustOf(requirements.In("zone", zone[rng.IntN(2)]))}
			switch rng.IntN(8) {
			case 0:
				o.Price = 0
			case 1:
				o.Price *= 1000
			}
			if chance(3) {
				o.Counted, o.Count, o.Reservation = true, rng.IntN(4), []string{"", "r"}[rng.IntN(2)]
				if chance(3) {
					o.Count, o.Takes = rng.IntN(20), 1+rng.IntN(8)
				}
			}
			if spot {
				o.CapacityPool = []string{"", "p", "q", "r"}[rng.IntN(4)]
			}
			t.Offerings = append(t.Offerings, o)
		}
		p.Types = append(p.Types, t)
	}
	groups := 1 + rng.IntN(2)
	for left, i := 1+rng.IntN(14), 0; left > 0; i++ {
		it := item(fmt.Sprintf("item-%d", i), 1+rng.IntN(min(left, 5)), vector(1, 12, 3)...)
		left -= it.Count
		if chance(3) {
			it.Requires = requirements.AnyOf(requirements.MustOf(requirements.In("arch", arch[rng.IntN(2)])))
		} else if chance(4) {
			it.Requires = requirements.AnyOf(requirements.MustOf(requirements.In("zone", zone[rng.IntN(2)])))
		}
		if chance(4) {
			it.Tags = []string{fmt.Sprint("g", rng.IntN(groups))}
			it.Limits = []binpack.Limit{{Tag: it.Tags[0], Max: 1 + rng.IntN(2)}}
		}
		p.Items = append(p.Items, it)
	}
	for range 2 {
		var d binpack.Diversity
		for i, it := range p.Items {
			if n := rng.IntN(3); spot && n > 0 {
				d.Items, d.Max = append(d.Items, binpack.Share{Item: i, Count: n}), d.Max+n*it.Count
			}
		}
		d.Max = d.Max * (1 + rng.IntN(4)) / 4
		p.Diversity = append(p.Diversity, d)
	}
	for i := range rng.IntN(3) {
		p.Nodes = append(p.Nodes, binpack.Node{
			Name: fmt.Sprintf("node-%d", i), Free: vector(0, 14, 5),
			Provides: requirements.MustOf(requirements.In("arch", arch[rng.IntN(2)]), requirements.In("zone", zone[rng.IntN(2)])),
		})
	}
	return p
}

// forJudge returns what the plan places, and where that could go.
func forJudge(p *binpack.Problem, plan *binpack.Plan) judged {
	var out judged
	copies := 0
	for i, it := range p.Items {
		j := judgedItem{Size: it.Size, Count: it.Count - plan.Unplaced[i]}
		copies += j.Count
		if len(it.Tags) > 0 {
			j.Group, j.Apart = it.Tags[0], it.Limits[0].Max
		}
		out.Items = append(out.Items, j)
	}
	may := func(set requirements.Set) []bool {
		labels := map[string]string{}
		for r := range set.All() {
			labels[r.Key()], _ = r.Single()
		}
		var out []bool
		for _, it := range p.Items {
			out = append(out, it.Requires.Matches(labels))
		}
		return out
	}
	supply := map[string]int{}
	for _, t := range p.Types {
		for j, o := range t.Offerings {
			set, err := t.Provides.Intersect(o.Provides)
			if err != nil {
				continue
			}
			k := judgedType{judgedBin{t.Capacity, o.CapacityPool, may(set)}, int64(o.Price), -1, t.Pool, 0, copies, max(o.Takes, 1)}
			if len(t.Usage) > 0 {
				k.Usage = t.Usage[0]
			}
			if o.Counted {
				name := o.Reservation
				if name == "" {
					name = fmt.Sprint(t.Name, "/", j)
				}
				s, known := supply[name]
				if !known {
					s = len(out.Supplies)
					supply[name] = s
					out.Supplies = append(out.Supplies, o.Count)
				}
				out.Supplies[s] = min(out.Supplies[s], o.Count)
				k.Supply, k.Most = s, min(o.Count/k.Takes, copies)
			}
			out.Types = append(out.Types, k)
		}
	}
	for _, n := range p.Nodes {
		out.Nodes = append(out.Nodes, judgedBin{n.Free, n.CapacityPool, may(n.Provides)})
	}
	for _, pool := range p.Pools {
		j := judgedPool{pool.MaxNodes, int64(pool.MaxPrice), -1}
		if len(pool.Limits) > 0 {
			j.Limit = pool.Limits[0]
		}
		out.Pools = append(out.Pools, j)
	}
	for _, d := range p.Diversity {
		most := judgedMost{make([]int, len(p.Items)), d.Max}
		for _, s := range d.Items {
			most.Counts[s.Item] = s.Count
		}
		out.Spread = append(out.Spread, most)
	}
	return out
}

// OR-Tools CP-SAT, an independent solver, finds the lowest price for what a plan places. No bound exceeds it, no price is below
// it, and a plan is called optimal only if it is.
func TestPlansBeforeCPSAT(t *testing.T) {
	python := filepath.Join("..", ".cache", "moto", "bin", "python")
	if err := exec.Command(python, "-c", "import ortools").Run(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("OR-Tools is not there: make moto")
		}
		t.Skip("OR-Tools is not there: make moto")
	}
	rng := rand.New(rand.NewPCG(61, 62))
	var plans []*binpack.Plan
	var lines bytes.Buffer
	var problems []binpack.Problem
	for range rounds(t, 200, 2_000) {
		p := instance(rng)
		within(30*time.Second, func() {
			in, plan := lawfulBy(t, p, nil)
			plans, problems = append(plans, plan), append(problems, *in.Problem())
			require.NoError(t, json.NewEncoder(&lines).Encode(forJudge(in.Problem(), plan)))
		})
	}
	cmd := exec.Command(python, filepath.Join("testdata", "cpsat", "judge.py"))
	cmd.Stdin, cmd.Stderr = &lines, os.Stderr
	answer, err := cmd.Output()
	require.NoError(t, err)
	words := bufio.NewScanner(bytes.NewReader(answer))
	optimal, claimed, unsolved := 0, 0, 0
	spread, missed := 0, 0 // with diversity, and not at the optimum
	for i, plan := range plans {
		require.True(t, words.Scan())
		best, err := strconv.ParseInt(words.Text(), 10, 64)
		require.NoError(t, err)
		if best == -2 {
			unsolved++
			continue
		}
		require.LessOrEqual(t, int64(plan.Bound.Price), best, "the bound %+v of instance %d: %+v", plan.Bound, i, problems[i])
		require.LessOrEqual(t, best, int64(plan.Objective), "the price of instance %d", i)
		diverse := slices.ContainsFunc(problems[i].Diversity, func(d binpack.Diversity) bool { return len(d.Items) > 0 })
		if diverse {
			spread++
		}
		if best == int64(plan.Objective) {
			optimal++
		} else {
			if diverse {
				missed++
			}
			t.Logf("instance %d: %d, optimum %d, bound %d (%s)", i, plan.Objective, best, plan.Bound.Price, plan.Bound.Kind)
		}
		if plan.Bound.Price == plan.Objective {
			claimed++
		}
	}
	require.Less(t, unsolved, len(plans)/50+1)
	t.Logf("%d instances: %d at the optimum, %d of them proved, %d not solved by the judge in time; of %d with diversity %d not at the optimum",
		len(plans), optimal, claimed, unsolved, spread, missed)
	require.LessOrEqual(t, len(plans)-optimal-missed, max(1, len(plans)/200)) // a single miss proves nothing
	require.LessOrEqual(t, missed, max(1, spread/50))
}
