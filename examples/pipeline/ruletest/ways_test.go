package ruletest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
	"github.com/joinery-sdk/joinery/instancetypes"
)

// zonal is a small market of zones and pods of two sizes, of which all plans can be listed.
type zonal struct {
	zones   int
	cpus    []int       // of each type
	prices  [][]float64 // by type and zone; 0 means that it is not for sale
	stock   [][]int     // by type and zone; 0 means any number
	pods    [2]int      // of 1 and of 2 cpu
	pinned  int         // the zone of the larger pods, or -1
	running int         // the zone of a running pod, or -1
}

func zone(i int) string { return string(rune('a' + i)) }

func drawZonal(r *rand.Rand) zonal {
	z := zonal{zones: 2 + r.IntN(3), cpus: []int{1 + r.IntN(2)}, pods: [2]int{1 + r.IntN(6), r.IntN(3)}, pinned: -1, running: -1}
	if r.IntN(2) == 0 {
		z.cpus = append(z.cpus, 4)
	}
	if z.pods[1] > 0 && z.cpus[0] == 1 && len(z.cpus) == 1 {
		z.cpus[0] = 3
	}
	for _, cpu := range z.cpus {
		var prices []float64
		var stock []int
		for range z.zones {
			price, count := float64(cpu*(1+r.IntN(10)))/100, 0
			if r.IntN(6) == 0 {
				price = 0
			}
			if r.IntN(3) == 0 {
				count = 1 + r.IntN(3)
			}
			prices, stock = append(prices, price), append(stock, count)
		}
		z.prices, z.stock = append(z.prices, prices), append(z.stock, stock)
	}
	if r.IntN(3) == 0 {
		z.pinned = r.IntN(z.zones)
	}
	if r.IntN(3) == 0 {
		z.running = r.IntN(z.zones)
	}
	return z
}

func (z *zonal) scenario(pool ruletest.NodePool) ruletest.Scenario {
	var types []instancetypes.InstanceType
	for i, cpu := range z.cpus {
		var offers []instancetypes.Offering
		for k, price := range z.prices[i] {
			switch o := instancetypes.Offer(zone(k), instancetypes.CapacityTypeOnDemand, price); {
			case price == 0:
			case z.stock[i][k] > 0:
				offers = append(offers, o.Stock(fmt.Sprint("stock-", i, k), z.stock[i][k]))
			default:
				offers = append(offers, o)
			}
		}
		types = append(types, instancetypes.New(fmt.Sprint("t", i), nil, corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewQuantity(int64(cpu), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("16Gi"),
		}, offers...))
	}
	s := ruletest.Scenario{}.Types(types...).Add(pool, ruletest.Deployment("web-small", z.pods[0]).Requests("cpu", "1"))
	if z.pods[1] > 0 {
		large := ruletest.Deployment("web-large", z.pods[1]).Requests("cpu", "2")
		if z.pinned >= 0 {
			large = large.On("topology.kubernetes.io/zone=" + zone(z.pinned))
		}
		s = s.Add(large)
	}
	if z.running >= 0 {
		s = s.Add(ruletest.ExistingNode("n", "cpu", "1", "memory", "16Gi").Label("topology.kubernetes.io/zone", zone(z.running)), ruletest.Pod("web-old").Requests("cpu", "1").RunningOn("n"))
	}
	return s
}

// cost returns the least price of nodes in a zone for small and large pods.
func (z *zonal) cost(at, small, large int) float64 {
	type state struct{ typ, used, small, large int }
	known := map[state]float64{}
	var least func(state) float64
	least = func(s state) float64 {
		if s.small+s.large == 0 {
			return 0
		}
		if s.typ == len(z.cpus) {
			return math.Inf(1)
		}
		if c, ok := known[s]; ok {
			return c
		}
		best := least(state{s.typ + 1, 0, s.small, s.large})
		if price, n := z.prices[s.typ][at], z.stock[s.typ][at]; price > 0 && (n == 0 || s.used < n) {
			for y := 0; y <= s.large && 2*y <= z.cpus[s.typ]; y++ {
				if x := min(s.small, z.cpus[s.typ]-2*y); x+y > 0 {
					best = min(best, price+least(state{s.typ, s.used + 1, s.small - x, s.large - y}))
				}
			}
		}
		known[s] = best
		return best
	}
	return least(state{small: small, large: large})
}

// least returns the price of the cheapest plan that keeps a rule about pods per zone.
func (z *zonal) least(keeps func(pods []int) bool) float64 {
	best := math.Inf(1)
	pods := make([]int, z.zones)
	if z.running >= 0 {
		pods[z.running]++
	}
	var place func(at, small, large int, cost float64)
	place = func(at, small, large int, cost float64) {
		if at == z.zones {
			if small+large == 0 && keeps(pods) {
				best = min(best, cost)
			}
			return
		}
		for x := 0; x <= small; x++ {
			for y := 0; y <= large; y++ {
				if y > 0 && z.pinned >= 0 && z.pinned != at {
					break
				}
				if c := z.cost(at, x, y); !math.IsInf(c, 1) {
					pods[at] += x + y
					place(at+1, small-x, large-y, cost+c)
					pods[at] -= x + y
				}
			}
		}
	}
	place(0, z.pods[0], z.pods[1], 0)
	return best
}

// drawRule returns a rule and whether numbers of pods per zone keep it.
func drawRule(r *rand.Rand) (ruletest.Rule, func(pods []int) bool) {
	if r.IntN(3) == 0 {
		most := 1 + r.IntN(5)
		return ruletest.Rule{Pods: "web-*", Apart: &ruletest.Company{By: "zone", Most: most}}, func(pods []int) bool { return slices.Max(pods) <= most }
	}
	s := ruletest.Spread{By: "zone", AtLeast: r.IntN(4), Skew: r.IntN(4)}
	if s.AtLeast+s.Skew == 0 {
		s.AtLeast = 2
	}
	return ruletest.Rule{Pods: "web-*", Spread: &s}, func(pods []int) bool {
		used := slices.DeleteFunc(slices.Clone(pods), func(n int) bool { return n == 0 })
		return len(used) >= s.AtLeast && (s.Skew == 0 || slices.Max(used)-slices.Min(used) <= s.Skew)
	}
}

// What it costs to keep a rule about zones is never said to be less than the least cost of all
// plans, and it is the least in most cases. No rule is said to be impossible to keep that some plan
// keeps.
func TestTheCostOfKeepingARuleAboutZonesIsTrue(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(3, seed))
	price := regexp.MustCompile(`to keep the rule costs at most \$([0-9.e-]+)/h more`)
	broken, priced, equal, impossible, n := 0, 0, 0, 0, 200
	if testing.Short() {
		n = 80
	}
	for range n {
		z := drawZonal(r)
		rule, keeps := drawRule(r)
		all := z.least(func([]int) bool { return true })
		if math.IsInf(all, 1) {
			continue
		}
		p, err := z.scenario(ruletest.Pool("default")).Solve()
		require.NoError(t, err)
		base := p.Packed().Cost().Dollars()
		require.GreaterOrEqual(t, base, all-1e-9, "%+v", z)
		result := p.Check(rule)[0]
		require.NoError(t, result.Invalid)
		if result.Holds() {
			continue
		}
		broken++
		least := z.least(keeps) - base
		text := result.String()
		switch m := price.FindStringSubmatch(text); {
		case m != nil:
			said, err := strconv.ParseFloat(m[1], 64)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, said, least-1e-4, "%+v\n%s", z, text)
			if priced++; said < least+1e-4 {
				equal++
			}
		case strings.Contains(text, "nothing: the rule can be kept"):
			assert.LessOrEqual(t, least, 1e-4, "%+v\n%s", z, text)
			priced++
			equal++
		case strings.Contains(text, "without it the rule holds"):
		default:
			impossible++
			assert.True(t, math.IsInf(least, 1), "a plan keeps it for $%.4g/h more: %+v\n%s", least, z, text)
		}
	}
	t.Logf("%d broken, %d can be kept, %d at the least cost, %d cannot be kept", broken, priced, equal, impossible)
	assert.Greater(t, priced, n/4)
	assert.Greater(t, impossible, n/20)
	assert.GreaterOrEqual(t, 10*equal, 7*priced, "%d of %d are the least cost", equal, priced)
}

// A rule about a node label is forced as it reads: the limit, the number of values and the skew are
// the rule's own.
func TestForcedRulesAreTheRulesOwn(t *testing.T) {
	z := zonal{zones: 3, cpus: []int{1}, prices: [][]float64{{0.1, 0.2, 1}}, stock: [][]int{{0, 0, 0}}, pods: [2]int{9, 0}, pinned: -1, running: -1}
	for _, c := range []struct {
		stock int // of the dear zone
		rule  ruletest.Rule
		want  string
	}{
		{rule: ruletest.Rule{Apart: &ruletest.Company{By: "zone", Most: 6}}, want: "costs at most $0.30/h more"},
		{rule: ruletest.Rule{Spread: &ruletest.Spread{By: "zone", AtLeast: 3, Skew: 8}}, want: "costs at most $1.00/h more"},
		{rule: ruletest.Rule{Spread: &ruletest.Spread{By: "zone", AtLeast: 3}}, want: "costs at most $1.00/h more"},
		{rule: ruletest.Rule{Spread: &ruletest.Spread{By: "zone", AtLeast: 2}}, stock: 1, want: "costs at most $0.10/h more"},
		{rule: ruletest.Rule{Spread: &ruletest.Spread{By: "zone", AtLeast: 4}}, want: `pool "default", which has no place for them if 4 of them are in different zones; 1 other way to keep the rule failed, too`},
		{rule: ruletest.Rule{Spread: &ruletest.Spread{By: "zone", AtLeast: 10}}, want: "their number: 9 pods cannot be on 10 values of topology.kubernetes.io/zone"},
		{rule: ruletest.Rule{NeverOn: []ruletest.Place{{Zone: "a"}}, Apart: &ruletest.Company{By: "zone", Most: 6}}, want: "costs at most $3.30/h more"},
	} {
		z.stock[0][2] = c.stock
		p, err := z.scenario(ruletest.Pool("default")).Solve()
		require.NoError(t, err)
		assert.Contains(t, p.Check(c.rule)[0].String(), c.want)
	}
}

// Where no manifest asks for what a rule demands, the requirement of the pool that makes it
// impossible is named all the same.
func TestWhatMakesARuleImpossibleIsNamed(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		z := zonal{zones: n, cpus: []int{1}, prices: [][]float64{[]float64{0.1, 0.2, 0.3, 0.4}[:n]}, stock: [][]int{make([]int, n)}, pods: [2]int{n, 0}, pinned: -1, running: -1}
		for allowed := 1; allowed < n; allowed++ {
			zones := strings.Join([]string{"a", "b", "c"}[:allowed], ",")
			p, err := z.scenario(ruletest.Pool("default").Only("topology.kubernetes.io/zone in (" + zones + ")")).Solve()
			require.NoError(t, err)
			for _, rule := range []ruletest.Rule{
				{Spread: &ruletest.Spread{By: "zone", AtLeast: n}}, {Spread: &ruletest.Spread{By: "zone", AtLeast: n, Skew: 1}}, {Apart: &ruletest.Company{By: "zone"}},
			} {
				moved := p.Check(rule)[0].MovedBy
				require.Len(t, moved, 1, rule)
				assert.Regexp(t, `^requirement topology.kubernetes.io/zone in \(`+zones+`\) of pool "default": without it the rule can be kept, for \$[0-9.]+/h more, but no manifest asks for it$`, moved[0])
			}
		}
	}
}
