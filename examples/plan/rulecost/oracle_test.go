package rulecost_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/rulecost"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// cluster is a drawn cluster that can be built without one of its rules, so that the judge needs no code that lifts rules.
type cluster struct {
	types     []instancetypes.InstanceType
	pools     []drawnPool
	workloads []drawnWorkload
	nodes     []drawnNode
}

// drawnNode is a node that is there already.
type drawnNode struct {
	cpu          int64
	family, zone string
}

type drawnPool struct {
	name     string
	requires map[string][]string // by key
	except   string              // a family that is not for sale
	cpu      int64               // the limit; 0 is none
	memory   int64               // the limit in GiB; 0 is none
	nodes    int64               // the limit; 0 is none
	weight   int32
	minimum  int // of instance types
}

type drawnWorkload struct {
	name                                string
	pods                                int
	cpu, memory                         string
	zone, family                        string
	spread, apart, apartByZone, prefers bool
	spreadByNode                        bool
	likes                               string // a family, or a capacity type, that it would rather have
	near                                string // a workload whose zone it shares
	either                              string // a family or a zone, in a term each
}

const familyKey = "example.com/family"

func draw(rng *rand.Rand, scale int) cluster {
	var c cluster
	for f := range 3 {
		for _, cpu := range []int64{2, 4, 8} {
			name := fmt.Sprintf("f%d.%d", f, cpu)
			t := instancetypes.InstanceType{
				Name:         name,
				Capacity:     corev1.ResourceList{"cpu": *resource.NewQuantity(cpu, resource.DecimalSI), "memory": *resource.NewQuantity(cpu*int64(2+2*f)<<30, resource.BinarySI), "pods": resource.MustParse("30")},
				Requirements: requirements.MustParse(fmt.Sprintf("node.kubernetes.io/instance-type=%s, %s=f%d", name, familyKey, f)),
			}
			for z := range 3 {
				for k, kind := range []string{"on-demand", "spot"} {
					price := float64(cpu) * (0.04 + 0.008*float64(f) + 0.002*float64(z)) * (1 - 0.5*float64(k)) * (0.9 + 0.2*rng.Float64())
					t.Offerings = append(t.Offerings, instancetypes.Offering{
						Price: price, Available: true,
						Requirements: requirements.MustParse(fmt.Sprintf("karpenter.sh/capacity-type=%s, topology.kubernetes.io/zone=z%d", kind, z)),
					})
				}
			}
			c.types = append(c.types, t)
		}
	}
	for i := range 1 + rng.IntN(2) {
		p := drawnPool{name: fmt.Sprintf("pool%d", i), requires: map[string][]string{}}
		if rng.IntN(2) == 0 {
			p.requires["karpenter.sh/capacity-type"] = []string{"on-demand"}
		}
		if rng.IntN(2) == 0 {
			p.requires[familyKey] = []string{fmt.Sprintf("f%d", rng.IntN(3)), fmt.Sprintf("f%d", rng.IntN(3))}
		}
		if rng.IntN(3) == 0 {
			p.requires[corev1.LabelTopologyZone] = []string{"z0", "z1", "z2"}[rng.IntN(2):]
		}
		if rng.IntN(4) == 0 {
			p.cpu = int64(scale * (8 + rng.IntN(16)))
		}
		if len(p.requires[familyKey]) == 0 && rng.IntN(3) == 0 {
			p.except = fmt.Sprintf("f%d", rng.IntN(3))
		}
		if rng.IntN(6) == 0 {
			p.memory = int64(scale * (24 + rng.IntN(64)))
		}
		if rng.IntN(6) == 0 {
			p.nodes = int64(scale * (1 + rng.IntN(4)))
		}
		if rng.IntN(4) == 0 {
			p.weight = 10
		}
		if rng.IntN(4) == 0 {
			p.minimum = 2 + rng.IntN(3)
		}
		c.pools = append(c.pools, p)
	}
	for i := range 2 + rng.IntN(4) {
		w := drawnWorkload{name: fmt.Sprintf("w%d", i), pods: scale * (1 + rng.IntN(6)), cpu: fmt.Sprintf("%dm", 250*(1+rng.IntN(7))), memory: fmt.Sprintf("%dMi", 512*(1+rng.IntN(12)))}
		if rng.IntN(4) == 0 {
			w.zone = fmt.Sprintf("z%d", rng.IntN(3))
		}
		if rng.IntN(5) == 0 {
			w.family = fmt.Sprintf("f%d", rng.IntN(3))
		}
		w.spread, w.apart, w.apartByZone, w.prefers = rng.IntN(4) == 0, scale == 1 && rng.IntN(4) == 0, w.pods <= 3 && rng.IntN(6) == 0, rng.IntN(4) == 0
		w.spreadByNode = scale == 1 && rng.IntN(6) == 0
		if rng.IntN(4) == 0 {
			w.likes = []string{"f1", "f2", "on-demand"}[rng.IntN(3)]
		}
		if i > 0 && rng.IntN(5) == 0 {
			w.near = fmt.Sprintf("w%d", rng.IntN(i))
		}
		if w.family == "" && rng.IntN(6) == 0 {
			w.either = fmt.Sprintf("f%d", rng.IntN(3))
		}
		c.workloads = append(c.workloads, w)
	}
	for range rng.IntN(3) {
		c.nodes = append(c.nodes, drawnNode{int64(2 + 2*rng.IntN(3)), fmt.Sprintf("f%d", rng.IntN(3)), fmt.Sprintf("z%d", rng.IntN(3))})
	}
	return c
}

// build makes the cluster without the rules named.
func (c *cluster) build(without ...string) scheduling.Snapshot {
	has := func(owner string, kind rulecost.Kind, key string) bool {
		return !slices.Contains(without, fmt.Sprint(owner, kind, key)) && !slices.Contains(without, fmt.Sprint("all pools", kind, key))
	}
	var s scheduling.Snapshot
	for _, d := range c.pools {
		owner := "NodePool " + d.name
		p := scheduling.Pool{Types: c.types, NodePool: nodepool.NodePool{Name: d.name}}
		var all []requirements.Requirement
		if d.except != "" && has(owner, rulecost.Requirement, familyKey) {
			all = append(all, requirements.NotIn(familyKey, d.except))
		}
		for _, key := range []string{"karpenter.sh/capacity-type", familyKey, corev1.LabelTopologyZone} {
			if len(d.requires[key]) > 0 && has(owner, rulecost.Requirement, key) {
				all = append(all, requirements.In(key, d.requires[key]...))
			}
		}
		p.Requirements = requirements.MustOf(all...)
		p.Limits = corev1.ResourceList{}
		for name, most := range map[corev1.ResourceName]int64{"cpu": d.cpu, "memory": d.memory << 30, "nodes": d.nodes} {
			if most > 0 && has(owner, rulecost.Limit, string(name)) {
				p.Limits[name] = *resource.NewQuantity(most, resource.DecimalSI)
			}
		}
		if has(owner, rulecost.Weights, "") {
			p.Weight = d.weight
		}
		if d.minimum > 0 && has(owner, rulecost.MinValues, corev1.LabelInstanceTypeStable) {
			p.MinValues = map[string]int{corev1.LabelInstanceTypeStable: d.minimum}
		}
		s.Pools = append(s.Pools, p)
	}
	for i, n := range c.nodes {
		free := corev1.ResourceList{"cpu": *resource.NewQuantity(n.cpu, resource.DecimalSI), "memory": *resource.NewQuantity(n.cpu*4<<30, resource.BinarySI), "pods": resource.MustParse("30")}
		s.Nodes = append(s.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{
				corev1.LabelHostname: fmt.Sprintf("n%d", i), corev1.LabelTopologyZone: n.zone, familyKey: n.family, nodepool.LabelKey: c.pools[0].name, "karpenter.sh/capacity-type": "on-demand",
				corev1.LabelInstanceTypeStable: fmt.Sprintf("%s.%d", n.family, n.cpu), "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
			}},
			Status: corev1.NodeStatus{Capacity: free, Allocatable: free, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	for _, w := range c.workloads {
		owner := "Deployment shop/" + w.name
		var spec corev1.PodSpec
		spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(w.cpu), "memory": resource.MustParse(w.memory)}}}}
		own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.name}}
		if w.zone != "" && has(owner, rulecost.Selector, corev1.LabelTopologyZone) {
			spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: w.zone}
		}
		var anti []corev1.PodAffinityTerm
		if w.apart && has(owner, rulecost.AntiAffinity, corev1.LabelHostname) {
			anti = append(anti, corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: own})
		}
		if w.apartByZone && has(owner, rulecost.AntiAffinity, corev1.LabelTopologyZone) {
			anti = append(anti, corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone, LabelSelector: own})
		}
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: anti}}
		if w.family != "" && has(owner, rulecost.Selector, familyKey) {
			spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: familyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{w.family}}}},
			}}}
		}
		if w.spread && has(owner, rulecost.Spread, corev1.LabelTopologyZone) {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own})
		}
		if w.either != "" {
			var terms []corev1.NodeSelectorTerm
			for _, e := range []corev1.NodeSelectorRequirement{
				{Key: familyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{w.either}}, {Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"z1"}},
			} {
				if has(owner, rulecost.Selector, e.Key) {
					terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{e}})
				}
			}
			if len(terms) == 2 { // a term without its only expression is one that every node meets
				spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
			}
		}
		if w.near != "" && has(owner, rulecost.Affinity, corev1.LabelTopologyZone) {
			spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.near}}},
			}}
		}
		if w.spreadByNode && has(owner, rulecost.Spread, corev1.LabelHostname) {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own})
		}
		if w.likes != "" && has(owner, rulecost.Preference, "") {
			key := familyKey
			if w.likes == "on-demand" {
				key = "karpenter.sh/capacity-type"
			}
			if spec.Affinity.NodeAffinity == nil {
				spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
			}
			spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{
				{Weight: 50, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{w.likes}}}}},
			}
		}
		if w.prefers && has(owner, rulecost.Preference, "") {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: own})
		}
		for i := range w.pods {
			s.Pods = append(s.Pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: fmt.Sprintf("%s-%d", w.name, i), Labels: map[string]string{"app": w.name, "pod-template-hash": "abc"},
					OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: w.name + "-abc", Controller: new(true)}},
				},
				Spec: spec,
			})
		}
	}
	return s
}

func nameOf(r rulecost.Rule) string { return fmt.Sprint(r.Owner, r.Kind, r.Key) }

// Each verified saving is that of planning the cluster built without the rule, and whoever reads ten lines misses no rule that costs more
// than a hundredth of the bill.
func TestSavingsAreThoseOfPlanningWithoutTheRule(t *testing.T) {
	clusters := 20
	if testing.Short() {
		clusters = 3
	}
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		clusters = max(clusters, 60/parts)
	}
	if n, err := strconv.Atoi(os.Getenv("JOINERY_CLUSTERS")); err == nil {
		clusters = n
	}
	rng := rand.New(rand.NewPCG(48, 2))
	verified, worthwhile, pairs := 0, 0, 0
	kinds := map[rulecost.Kind]int{} // of rules that cost more than a hundredth
	for at := range clusters {
		c := draw(rng, 1)
		s := c.build()
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		report, err := rulecost.Of(t.Context(), p, s, nil, nil)
		require.NoError(t, err)
		refused := map[string]bool{}
		for _, u := range p.Unplaced() {
			for _, pod := range u.Pods {
				refused[pod.Name] = true
			}
		}
		bill := p.Cost().Dollars()
		saving := func(rules ...rulecost.Rule) float64 {
			var names []string
			for _, r := range rules {
				names = append(names, nameOf(r))
			}
			without := c.build(names...)
			without.Pods = slices.DeleteFunc(without.Pods, func(pod *corev1.Pod) bool { return refused[pod.Name] })
			after, err := plan.Make(t.Context(), without, nil)
			require.NoError(t, err)
			if len(after.Unplaced()) > 0 {
				return 0
			}
			return max(0, bill-after.Cost().Dollars())
		}
		for k, cost := range report.Rules {
			real := saving(cost.Rules...)
			if cost.State == rulecost.Verified {
				verified++
				assert.InDelta(t, real, cost.PerHour, 1e-9, "cluster %d: %s is %+v", at, cost.Rules[0], cost)
			}
			assert.LessOrEqual(t, cost.LowPerHour, cost.PerHour+1e-9)
			assert.GreaterOrEqual(t, cost.HighPerHour, real-1e-9, "cluster %d: %s is %+v", at, cost.Rules[0], cost)
			if real > bill/100 {
				worthwhile++
				kinds[cost.Rules[0].Kind]++
				assert.Less(t, k, max(10, countAbove(report.Rules, bill/100)), "cluster %d: %s saves %.4f of %.4f", at, cost.Rules[0], real, bill)
				assert.Positive(t, cost.PerHour, "cluster %d: %s is %+v", at, cost.Rules[0], cost)
			}
		}
		for _, pair := range report.Pairs {
			pairs++
			together := saving(pair.Rules...)
			assert.InDelta(t, together, pair.PerHour, 1e-9)
			assert.Greater(t, together, saving(pair.Rules[0])+saving(pair.Rules[1]), "cluster %d: %v", at, pair.Rules)
		}
	}
	t.Log(verified, "savings verified,", worthwhile, "rules cost more than a hundredth,", pairs, "pairs;", kinds)
	assert.Greater(t, verified, 2*clusters)
	assert.Greater(t, worthwhile, clusters)
	assert.Positive(t, pairs)
}

func countAbove(costs []rulecost.Cost, least float64) (n int) {
	for _, c := range costs {
		if c.PerHour > least {
			n++
		}
	}
	return n
}
