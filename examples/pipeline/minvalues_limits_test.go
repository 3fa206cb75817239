package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
)

const (
	labelFamily = "karpenter.k8s.aws/instance-family"
	labelTeam   = "example.com/team"
)

// ware is one offering of a type of the law.
type ware struct {
	typ, family, zone, team string
	cpu, memory             int // cores, GiB
}

// valuedPool is a pool of the law: what it asks and what it allows.
type valuedPool struct {
	name        string
	weight      int
	teams       []string
	min         map[string]int
	cpu, memory int // limits; -1 for none
	nodes       int
	used        int // cores and GiB of a node that exists
}

// asked is a pod of the law.
type asked struct {
	name        string
	cpu, memory int
	only        map[string][]string
}

// allows reports whether a node of the offering and the pool may hold the pod alone.
func (a *asked) allows(m ware, p *valuedPool) bool {
	for key, value := range m.labels() {
		if a.only[key] != nil && !slices.Contains(a.only[key], value) {
			return false
		}
	}
	return a.cpu <= m.cpu && a.memory <= m.memory && (len(p.teams) == 0 || slices.Contains(p.teams, m.team))
}

func (m ware) labels() map[string]string {
	return map[string]string{corev1.LabelInstanceTypeStable: m.typ, labelFamily: m.family, corev1.LabelTopologyZone: m.zone, labelTeam: m.team}
}

// least returns the smallest number of cores of which the pool must have room to place the pod alone on a new node with all its values; false if no number
// is enough.
func (a *asked) least(machines []ware, p *valuedPool) (int, bool) {
	for _, most := range []int{2, 3, 4, 6, 8, 12, 16} {
		seen := map[string]map[string]bool{}
		found := false
		for key := range p.min {
			seen[key] = map[string]bool{}
		}
		for _, m := range machines {
			if m.cpu > most || !a.allows(m, p) {
				continue
			}
			found = true
			for key := range p.min {
				seen[key][m.labels()[key]] = true
			}
		}
		for key, want := range p.min {
			found = found && len(seen[key]) >= want
		}
		if found {
			return most, true
		}
	}
	return 0, false
}

// A claim for a new node offers as many values as minValues demand, also where the pool has limits, and all claims of a plan may get their largest
// candidates at once: the limits hold. A pod is refused only if it has no such place, and the reason names the limit or minValues.
func TestMinValuesWithinLimits(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 7))
	some := func(list []string, least int) []string {
		list = slices.Clone(list)
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:least+r.IntN(len(list)-least+1)]
	}
	rounds := 300
	if testing.Short() {
		rounds = 120
	}
	placed, refused, larger, missed := 0, 0, 0, 0
	for n := range rounds {
		loose := n%3 == 0
		var machines []ware
		families, zones := []string{"c", "m", "r"}, []string{"zone-a", "zone-b"}
		var types []string
		for _, f := range families {
			for _, cpu := range []int{2, 3, 4, 6, 8, 12, 16} {
				if r.IntN(3) == 0 {
					types = append(types, fmt.Sprintf("%s.%d", f, cpu))
					for _, z := range zones {
						if r.IntN(4) > 0 {
							machines = append(machines, ware{types[len(types)-1], f, z, map[bool]string{true: "blue", false: map[string]string{"c": "green", "m": "red", "r": "red"}[f]}[cpu%4 == 0], cpu, cpu * map[string]int{"c": 2, "m": 4, "r": 8}[f]})
						}
					}
				}
			}
		}
		if len(machines) == 0 {
			continue
		}
		var pools []valuedPool
		text := ""
		for i := range 1 + r.IntN(2) {
			p := valuedPool{name: fmt.Sprintf("pool-%d", i), weight: 1 + r.IntN(3), min: map[string]int{}, cpu: -1, memory: -1, nodes: -1}
			reqs := []string{"{key: kubernetes.io/arch, operator: In, values: [amd64]}"}
			if r.IntN(4) > 0 {
				p.min[corev1.LabelInstanceTypeStable] = 1 + r.IntN(4)
				reqs = append(reqs, fmt.Sprintf("{key: %s, operator: Exists, minValues: %d}", corev1.LabelInstanceTypeStable, p.min[corev1.LabelInstanceTypeStable]))
			}
			if r.IntN(2) == 0 {
				p.min[labelFamily] = 1 + r.IntN(3)
				reqs = append(reqs, fmt.Sprintf("{key: %s, operator: Exists, minValues: %d}", labelFamily, p.min[labelFamily]))
			}
			if r.IntN(3) == 0 {
				p.teams = some([]string{"blue", "green", "red"}, 1)
				p.min[labelTeam] = 1 + r.IntN(len(p.teams))
				reqs = append(reqs, fmt.Sprintf("{key: %s, operator: In, values: [%s], minValues: %d}", labelTeam, strings.Join(p.teams, ", "), p.min[labelTeam]))
			}
			var limits []string
			if loose {
				p.cpu = 10_000
				limits = append(limits, "cpu: 10000")
			} else {
				if r.IntN(4) > 0 {
					p.cpu = 2 + r.IntN(40)
					limits = append(limits, fmt.Sprintf("cpu: %d", p.cpu))
				}
				if r.IntN(4) == 0 {
					p.memory = 8 + r.IntN(160)
					limits = append(limits, fmt.Sprintf("memory: %dGi", p.memory))
				}
				if r.IntN(4) == 0 {
					p.nodes = 1 + r.IntN(4)
					limits = append(limits, fmt.Sprintf("nodes: %d", p.nodes))
				}
				if r.IntN(4) == 0 {
					p.used = 1 + r.IntN(4)
					text += fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: old-%[1]s, labels: {karpenter.sh/nodepool: %[1]s, karpenter.sh/registered: \"true\", karpenter.sh/initialized: \"true\"}}, "+
						"spec: {unschedulable: true}, status: {capacity: {cpu: %[2]d, memory: %[2]dGi, pods: 1}, allocatable: {cpu: %[2]d, memory: %[2]dGi, pods: 1}}}\n---\n", p.name, p.used)
				}
			}
			pools = append(pools, p)
			text += fmt.Sprintf("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: %s}\nspec:\n  weight: %d\n  limits: {%s}\n  template: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, "+
				"requirements: [%s]}}\n---\n", p.name, p.weight, strings.Join(limits, ", "), strings.Join(reqs, ", "))
		}
		pods := map[string]*asked{}
		for i := range 1 + r.IntN(8) {
			p := &asked{name: fmt.Sprintf("p%d", i), cpu: 1 + r.IntN(6), memory: 1 + r.IntN(12), only: map[string][]string{}}
			pods[p.name] = p
			var terms []string
			for _, k := range []struct {
				key  string
				from []string
			}{{labelFamily, families}, {corev1.LabelTopologyZone, zones}, {corev1.LabelInstanceTypeStable, types}, {labelTeam, []string{"blue", "green", "red"}}} {
				if r.IntN(7) == 0 {
					p.only[k.key] = some(k.from, 1)
					terms = append(terms, fmt.Sprintf("{key: %s, operator: In, values: [%s]}", k.key, strings.Join(p.only[k.key], ", ")))
				}
			}
			text += fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  containers: [{name: main, image: i, resources: {requests: {cpu: %d, memory: %dGi}}}]\n", p.name, p.cpu, p.memory)
			if len(terms) > 0 {
				text += fmt.Sprintf("  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [%s]}]}}}\n", strings.Join(terms, ", "))
			}
			text += "---\n"
		}
		p := pack(t, machineMarket(t, r, machines), text)
		say := func(format string, args ...any) string {
			return fmt.Sprintf("%d: ", n) + fmt.Sprintf(format, args...) + fmt.Sprintf("\n%v\n%s", machines, text)
		}
		there, left, why := map[string]bool{}, map[string]int{}, map[string][]scheduling.Reason{}
		for _, u := range p.Unplaced() {
			for _, pod := range u.Pods {
				why[pod.Name] = u.Reasons()
			}
		}
		for i := range pools {
			pool := &pools[i]
			cpu, memory, nodes, needed := pool.used, pool.used, min(pool.used, 1), pool.used
			for _, node := range p.NewNodes() {
				if node.Pool.Name != pool.name {
					continue
				}
				own := plan.Alternative{InstanceType: node.InstanceType.Name, Zone: node.Zone, CapacityType: node.CapacityType}
				one, most, gib, values, size := asked{only: map[string][]string{}}, 0, 0, map[string]map[string]bool{}, 0
				for _, pod := range node.Pods {
					there[pod.Name] = true
					a := pods[pod.Name]
					one.cpu, one.memory = one.cpu+a.cpu, one.memory+a.memory
					for k, v := range a.only {
						if one.only[k] == nil {
							one.only[k] = v
						}
						one.only[k] = slices.DeleteFunc(slices.Clone(one.only[k]), func(x string) bool { return !slices.Contains(v, x) })
					}
				}
				for key := range pool.min {
					values[key] = map[string]bool{}
				}
				for k, c := range append([]plan.Alternative{own}, node.Alternatives...) {
					at := slices.IndexFunc(machines, func(m ware) bool { return m.typ == c.InstanceType && m.zone == c.Zone })
					require.GreaterOrEqual(t, at, 0, say("%s in %s of node %s is not for sale", c.InstanceType, c.Zone, node.Name))
					m := machines[at]
					require.True(t, one.allows(m, pool), say("%s in %s does not hold the pods of node %s", m.typ, m.zone, node.Name))
					if k == 0 {
						size = m.cpu
					}
					most, gib = max(most, m.cpu), max(gib, m.memory)
					for key := range values {
						values[key][m.labels()[key]] = true
					}
				}
				if most > size {
					larger++
				}
				for key, want := range pool.min {
					require.GreaterOrEqual(t, len(values[key]), want, say("%s of node %s", key, node.Name))
				}
				cpu, memory, nodes = cpu+most, memory+gib, nodes+1
				least, ok := one.least(machines, pool)
				require.True(t, ok, say("node %s", node.Name))
				needed += max(least, size)
			}
			require.True(t, pool.cpu < 0 || cpu <= pool.cpu || nodes <= 1 && pool.used > 0, say("the claims of %s may get %d cores", pool.name, cpu))
			require.True(t, pool.memory < 0 || memory <= pool.memory || nodes <= 1 && pool.used > 0, say("the claims of %s may get %d GiB", pool.name, memory))
			require.True(t, pool.nodes < 0 || nodes <= pool.nodes, say("%s has %d nodes", pool.name, nodes))
			left[pool.name] = 1 << 30
			switch {
			case pool.nodes >= 0 && nodes >= pool.nodes || pool.memory >= 0: // this law counts cores only
				left[pool.name] = 0
			case pool.cpu >= 0:
				left[pool.name] = pool.cpu - needed
			}
		}
		for name, a := range pods {
			able := false
			for i := range pools {
				least, ok := a.least(machines, &pools[i])
				able = able || ok
				if ok && !there[name] && least <= left[pools[i].name] {
					missed++
					t.Log(say("%s would fit into %s beside the others: %d of %d cores: %v", name, pools[i].name, least, left[pools[i].name], why[name]))
				}
			}
			if there[name] {
				placed++
				require.True(t, able, say("%s", name))
				continue
			}
			refused++
			require.False(t, loose && able, say("%s is refused", name))
		}
		for name, reasons := range why {
			for _, v := range pools {
				if _, ok := pods[name].least(machines, &v); ok {
					require.True(t, slices.ContainsFunc(reasons, func(r scheduling.Reason) bool {
						return r.Pool == v.name && (r.Stage == scheduling.StageLimit || strings.Contains(r.Detail, "minValues"))
					}), say("%s: %v", name, reasons))
				}
			}
		}
	}
	t.Logf("%d placed, %d refused, %d missed, %d nodes with larger candidates", placed, refused, missed, larger)
	require.Zero(t, missed)
	require.Greater(t, placed, 100)
	require.Greater(t, refused, 100)
	require.Greater(t, larger, 50)
}

// machineMarket sells machines, at random prices.
func machineMarket(t *testing.T, r *rand.Rand, machines []ware) *pipeline.Market {
	t.Helper()
	var types []string
	for i := 0; i < len(machines); {
		first, offers := machines[i], []string(nil)
		for ; i < len(machines) && machines[i].typ == first.typ; i++ {
			offers = append(offers, fmt.Sprintf(`{"Price":%d.%02d,"Available":true,"Requirements":[{"key":%q,"operator":"In","values":[%q]},{"key":%q,"operator":"In","values":["on-demand"]},{"key":%q,"operator":"In","values":[%q]},{"key":%q,"operator":"In","values":[%q]}]}`,
				first.cpu, r.IntN(100), corev1.LabelTopologyZone, machines[i].zone, instancetypes.LabelCapacityType, labelFamily, first.family, labelTeam, first.team))
		}
		types = append(types, fmt.Sprintf(`{"name":%q,"architecture":"amd64","operatingSystems":["linux"],"resources":{"cpu":"%d","memory":"%dGi","pods":"100"},"offerings":[%s]}`,
			first.typ, first.cpu, first.memory, strings.Join(offers, ",")))
	}
	m, err := pipeline.KWOKMarket("test", []byte("["+strings.Join(types, ",")+"]"))
	require.NoError(t, err)
	return m
}
