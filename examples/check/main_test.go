package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/proof"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A checker that anybody can read is short, and imports nothing that would have to be read, too.
func TestNothingHasToBeTrusted(t *testing.T) {
	for name, most := range map[string]int{"main.go": 400, "alternatives.go": 70, "help.go": 50} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.LessOrEqual(t, strings.Count(string(text), "\n"), most, name)
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range file.Imports {
			assert.NotContains(t, i.Path.Value, ".", "of the standard library")
		}
	}
}

// Without a document on stdin there is help, and a word that is none is refused.
func TestHelp(t *testing.T) {
	for _, arg := range []string{"-h", "--help", "help"} {
		var out, problems bytes.Buffer
		assert.Zero(t, start([]string{arg}, strings.NewReader(""), &out, &problems), arg)
		assert.Contains(t, out.String(), "check < plan.json", arg)
		assert.Contains(t, out.String(), "Exit codes: 0 all holds", arg)
		assert.Empty(t, problems.String(), arg)
	}
	for _, arg := range []string{"hepl", "--hepl"} {
		var out, problems bytes.Buffer
		assert.Equal(t, 2, start([]string{arg}, strings.NewReader(""), &out, &problems), arg)
		assert.Contains(t, problems.String(), "see check --help", arg)
	}
	var out, problems bytes.Buffer
	assert.Equal(t, 2, start(nil, strings.NewReader(""), &out, &problems))
	assert.Contains(t, problems.String(), "nothing on stdin")
}

func verdict(t *testing.T, text []byte) (code int, said string) {
	t.Helper()
	var out, problems bytes.Buffer
	code = run(bytes.NewReader(text), &out, &problems)
	require.Equal(t, code == 0, problems.Len() == 0)
	return code, out.String() + problems.String()
}

func encoded(t *testing.T, d any) []byte {
	t.Helper()
	text, err := json.Marshal(d)
	require.NoError(t, err)
	return text
}

func size(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "pods": resource.MustParse("8")}
}

func offered(name string, list corev1.ResourceList, prices ...float64) instancetypes.InstanceType {
	t := instancetypes.InstanceType{Name: name, Capacity: list, Requirements: requirements.MustParse("node.kubernetes.io/instance-type=" + name)}
	for i, price := range prices {
		t.Offerings = append(t.Offerings, instancetypes.Offering{
			Price: price, Available: true,
			Requirements: requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=zone-" + string(rune('a'+i))),
		})
	}
	return t
}

func pod(name, cpu, memory string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": strings.TrimRight(name, "-0123456789")}}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}}}}
	if change != nil {
		change(p)
	}
	return p
}

// shop has what a document can have: an existing node, two pools, one of them tainted and limited, a selector, a reservation, pods that keep
// apart, and one without a place.
func shop(t *testing.T) *proof.Document {
	t.Helper()
	var s scheduling.Snapshot
	for i := range 6 {
		s.Pods = append(s.Pods, pod(fmt.Sprintf("web-%d", i), "1500m", "2Gi", nil))
	}
	for i := range 20 {
		s.Pods = append(s.Pods, pod(fmt.Sprintf("cart-%d", i), "300m", "1Gi", nil))
	}
	for i := range 2 {
		s.Pods = append(s.Pods, pod(fmt.Sprintf("db-%d", i), "1", "4Gi", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-b"}
			db := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: db}},
			}}
		}), pod(fmt.Sprintf("train-%d", i), "2", "2Gi", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"team": "ml"}
			p.Spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpEqual, Value: "ml", Effect: corev1.TaintEffectNoSchedule}}
		}))
	}
	s.Pods = append(s.Pods, pod("giant-0", "900", "1Gi", nil))
	s.Nodes = []*corev1.Node{{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelTopologyZone: "zone-a", corev1.LabelHostname: "n1"}},
		Status:     corev1.NodeStatus{Allocatable: size("2", "8Gi"), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}}
	reserved := offered("std.4r", size("4", "16Gi"), 0.2, 0.2)
	reserved.Offerings[1].Price, reserved.Offerings[1].ReservationCount = 0, 1
	reserved.Offerings[1].Requirements = requirements.MustParse("karpenter.sh/capacity-type=reserved, topology.kubernetes.io/zone=zone-b, karpenter.k8s.aws/capacity-reservation-id=cr-1")
	types := []instancetypes.InstanceType{offered("std.4", size("4", "16Gi"), 0.2, 0.21), offered("std.8", size("8", "32Gi"), 0.4, 0.42), reserved}
	ml := nodepool.NodePool{Name: "ml", Labels: map[string]string{"team": "ml"}, Taints: []corev1.Taint{{Key: "team", Value: "ml", Effect: corev1.TaintEffectNoSchedule}}}
	ml.Limits = corev1.ResourceList{"cpu": resource.MustParse("4"), "nodes": resource.MustParse("1")}
	s.Pools = []scheduling.Pool{{Types: types, NodePool: nodepool.NodePool{Name: "general"}}, {Types: types[:2], NodePool: ml}}
	s.Quotas = []capacityquota.Quota{{
		Name: "b", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: "zone-b"}},
		Limits: corev1.ResourceList{"nodes": resource.MustParse("9"), "cpu": resource.MustParse("99")},
	}}
	p, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	d, err := proof.Of(p)
	require.NoError(t, err)
	return d
}

// on is a node of the document that holds the pod.
func on(d *proof.Document, pod string) *proof.Node {
	for _, nodes := range [][]proof.Node{d.NewNodes, d.Nodes} {
		for i := range nodes {
			if slices.Contains(nodes[i].Pods, pod) {
				return &nodes[i]
			}
		}
	}
	return nil
}

func class(d *proof.Document, pod string) *proof.Pods {
	for i := range d.Pods {
		if slices.Contains(d.Pods[i].Pods, pod) {
			return &d.Pods[i]
		}
	}
	return nil
}

// Of a valid document each field is damaged in turn: what the plan claims is false then, or the facts do not bear it out any more.
func TestEachDamageIsCaught(t *testing.T) {
	code, said := verdict(t, encoded(t, shop(t)))
	require.Zero(t, code, said)
	require.Contains(t, said, "holds: 31 pods, 1 of them unplaced; 1 node that exist")
	without := func(names []string, name string) (out []string) {
		for _, n := range names {
			if n != name {
				out = append(out, n)
			}
		}
		return append([]string{}, out...)
	}
	for _, c := range []struct {
		name   string
		damage func(*proof.Document)
		want   string
	}{
		{"the format", func(d *proof.Document) { d.Format = "joinery-proof/0" }, "do not fit together"},
		{"a pod twice", func(d *proof.Document) { n := on(d, "shop/web-0"); n.Pods = append(n.Pods, "shop/web-0") }, "is in two places"},
		{"a pod on two nodes", func(d *proof.Document) { d.Nodes[0].Pods = append(d.Nodes[0].Pods, "shop/train-0") }, "shop/train-0 is in two places"},
		{"a pod listed twice", func(d *proof.Document) { c := class(d, "shop/web-0"); c.Pods = append(c.Pods, "shop/db-0") }, "listed twice"},
		{"a pod missing", func(d *proof.Document) { n := on(d, "shop/web-0"); n.Pods = without(n.Pods, "shop/web-0") }, "neither placed nor"},
		{"an unplaced pod missing", func(d *proof.Document) { d.Unplaced = nil }, "shop/giant-0 is neither placed nor"},
		{"a pod invented", func(d *proof.Document) { d.Unplaced = append(d.Unplaced, "shop/ghost-0") }, "not among the pods"},
		{"a placed pod called unplaced", func(d *proof.Document) { d.Unplaced = append(d.Unplaced, "shop/web-0") }, "in two places"},
		{"a class without its pods", func(d *proof.Document) { class(d, "shop/db-0").Pods = []string{} }, "not among the pods"},
		{"a larger pod", func(d *proof.Document) { class(d, "shop/web-0").Requests[0] *= 3 }, "of cpu are used"},
		{"requests cut off", func(d *proof.Document) { class(d, "shop/web-0").Requests = nil }, "do not fit together"},
		{"a negative request", func(d *proof.Document) { class(d, "shop/web-0").Requests[0] = -1 }, "do not fit together"},
		{"a request beyond counting", func(d *proof.Document) { class(d, "shop/web-0").Requests[1] = 1<<63 - 1 }, "of memory are used"},
		{"a resource more", func(d *proof.Document) { d.Resources = append(d.Resources, "gpu") }, "do not fit together"},
		{"another selector", func(d *proof.Document) {
			class(d, "shop/db-0").Requires[0][0].Values = []string{"zone-a"}
		}, "do not match what pod shop/db-0 requires"},
		{"an unknown operator", func(d *proof.Document) { class(d, "shop/db-0").Requires[0][0].Operator = "Like" }, "requires"},
		{"no selector that can hold", func(d *proof.Document) { class(d, "shop/db-0").Requires = nil }, "requires"},
		{"no toleration", func(d *proof.Document) { class(d, "shop/train-0").Tolerations = nil }, "does not tolerate"},
		{"a toleration of another value", func(d *proof.Document) { class(d, "shop/train-0").Tolerations[0].Value = "web" }, "does not tolerate"},
		{"a toleration of another effect", func(d *proof.Document) { class(d, "shop/train-0").Tolerations[0].Effect = "NoExecute" }, "does not tolerate"},
		{"a toleration by another operator", func(d *proof.Document) { class(d, "shop/train-0").Tolerations[0].Operator = "Gt" }, "does not tolerate"},
		{"pods that keep apart share a node", func(d *proof.Document) { class(d, "shop/web-0").Apart = class(d, "shop/db-0").Apart }, "must be apart"},
		{"no such group", func(d *proof.Document) { class(d, "shop/web-0").Apart = "none" }, "must be apart"},
		{"none of a group may be there", func(d *proof.Document) { d.Apart[class(d, "shop/db-0").Apart] = 0 }, "must be apart"},
		{"a smaller node", func(d *proof.Document) { d.Nodes[0].Free[0] = 1000 }, "n1: 1800 of cpu are used, 1000 are free"},
		{"a node with a taint", func(d *proof.Document) { d.Nodes[0].Taints = []proof.Taint{{Key: "x", Effect: "NoExecute"}} }, "does not tolerate"},
		{"a label of a node that may be anything", func(d *proof.Document) { on(d, "shop/db-0").Labels[corev1.LabelTopologyZone] = nil }, "has no single value"},
		{"another zone of a new node", func(d *proof.Document) { on(d, "shop/db-0").Labels[corev1.LabelTopologyZone] = []string{"zone-a"} }, "does not allow the label"},
		{"a label invented", func(d *proof.Document) { on(d, "shop/db-0").Labels["gold"] = []string{"yes"} }, "does not allow the label"},
		{"a label left out", func(d *proof.Document) { delete(on(d, "shop/train-0").Labels, "team") }, "lacks the label team"},
		{"two nodes of one name", func(d *proof.Document) { d.NewNodes[0].Name = "n1" }, "two nodes have the name n1"},
		{"another offering", func(d *proof.Document) { on(d, "shop/train-0").Offering = 1 }, "does not allow the label"},
		{"no such offering", func(d *proof.Document) { d.NewNodes[0].Offering = 9 }, "do not fit together"},
		{"a negative type", func(d *proof.Document) { d.NewNodes[0].Type = -1 }, "do not fit together"},
		{"a smaller type", func(d *proof.Document) { d.Types[on(d, "shop/train-0").Type].Free[0] = 2000 }, "of cpu are used, 2000 are free"},
		{"a type of no pool", func(d *proof.Document) { d.Types[0].Pool = 2 }, "do not fit together"},
		{"a type without its usage", func(d *proof.Document) { d.Types[on(d, "shop/train-0").Type].Usage = nil }, "do not fit together"},
		{"a tainted pool", func(d *proof.Document) {
			d.Pools[d.Types[on(d, "shop/web-5").Type].Pool].Taints = []proof.Taint{{Key: "x", Effect: "NoSchedule"}}
		}, "does not tolerate"},
		{"the limit of a pool", func(d *proof.Document) { d.Pools[d.Types[on(d, "shop/train-0").Type].Pool].Limits[0] = 3999 }, "limit 0 is 3999, 4000 are used"},
		{"the nodes of a pool", func(d *proof.Document) { d.Pools[d.Types[on(d, "shop/train-0").Type].Pool].MaxNodes = new(int64) }, "too many new nodes: 1"},
		{"a reservation used up", func(d *proof.Document) { clear(d.Stock) }, "nothing is left of"},
		{"a quota used up", func(d *proof.Document) { d.Stock[`quota "b": nodes`] = 1 }, `nothing is left of quota "b": nodes: 2 are taken of 1`},
		{"a quota that is not there", func(d *proof.Document) { delete(d.Stock, `quota "b": nodes`) }, "2 are taken of 0"},
		{"a negative use of a quota", func(d *proof.Document) {
			n := on(d, "shop/db-0")
			d.Types[n.Type].Offerings[n.Offering].Uses[`quota "b": nodes`] = -5
		}, "do not fit together"},
		{"a reservation of which nothing is taken", func(d *proof.Document) {
			for i := range d.Types {
				for j := range d.Types[i].Offerings {
					d.Types[i].Offerings[j].Takes = 0
				}
			}
		}, "do not fit together"},
		{"the price of what is bought", func(d *proof.Document) { n := on(d, "shop/train-0"); d.Types[n.Type].Offerings[n.Offering].Price-- }, "price and cost are"},
		{"its cost", func(d *proof.Document) { n := on(d, "shop/train-0"); d.Types[n.Type].Offerings[n.Offering].Cost-- }, "price and cost are"},
		{"a negative price", func(d *proof.Document) { d.Types[0].Offerings[0].Price = -1 }, "do not fit together"},
		{"the sum of prices", func(d *proof.Document) { d.PricePerHour-- }, "price and cost are"},
		{"the sum of costs", func(d *proof.Document) { d.CostPerHour++ }, "price and cost are"},
		{"a higher bound", func(d *proof.Document) { d.Bound.CostPerHour++ }, "bound"},
		{"a bound above the cost", func(d *proof.Document) { d.Bound.CostPerHour = d.CostPerHour + 1 }, "above the cost"},
		{"cheaper types for sale", func(d *proof.Document) {
			for i := range d.Types {
				d.Types[i].Offerings = append(d.Types[i].Offerings, d.Types[i].Offerings[0])
				d.Types[i].Offerings[len(d.Types[i].Offerings)-1].Cost /= 8
			}
		}, "the bound is too high"},
		{"larger types for sale", func(d *proof.Document) {
			for _, of := range []int{0, 1} {
				d.Types[of].Free = []int64{1 << 40, 1 << 50, 1 << 40}
			}
		}, "the bound is too high"},
		{"more room on a node that exists", func(d *proof.Document) { d.Nodes[0].Free = []int64{1 << 40, 1 << 50, 1 << 40} }, "the bound is too high"},
		{"more of a reservation", func(d *proof.Document) { d.Stock["cr-1"], d.Stock["reservation cr-1"] = 99, 99 }, "the bound is too high"},
		{"values that are lower", func(d *proof.Document) {
			for i := range d.Bound.Values {
				d.Bound.Values[i] = 0
			}
		}, "the bound is too high"},
		{"a value too high", func(d *proof.Document) { d.Bound.Values[1] *= 1000 }, "the bound is too high"},
		{"a negative value", func(d *proof.Document) { d.Bound.Values[0] = -1 }, "do not fit together"},
		{"a value left out", func(d *proof.Document) { d.Bound.Values = d.Bound.Values[1:] }, "do not fit together"},
		{"prices of resources that are 0", func(d *proof.Document) {
			for _, prices := range d.Bound.Types {
				for _, p := range prices {
					p.SetInt64(0)
				}
			}
		}, "the bound is too high"},
		{"a negative price of a resource", func(d *proof.Document) { d.Bound.Types[0][0] = big.NewInt(-1) }, "do not fit together"},
		{"prices of a type left out", func(d *proof.Document) { d.Bound.Types = d.Bound.Types[1:] }, "do not fit together"},
		{"prices of a node left out", func(d *proof.Document) { d.Bound.Nodes = nil }, "do not fit together"},
		{"prices in other units", func(d *proof.Document) { d.Bound.Shift++ }, "the bound is too high"},
		{"prices in units beyond reason", func(d *proof.Document) { d.Bound.Shift = 1 << 40 }, "do not fit together"},
	} {
		d := shop(t)
		c.damage(d)
		code, said := verdict(t, encoded(t, d))
		assert.NotZero(t, code, c.name)
		assert.Contains(t, said, c.want, c.name)
	}
	good := string(encoded(t, shop(t)))
	for name, text := range map[string]string{"nothing": "", "half": good[:len(good)/2], "two": good + good, "an unknown field": strings.Replace(good, `"stock"`, `"stack"`, 1)} {
		code, _ := verdict(t, []byte(text))
		assert.Equal(t, 2, code, name)
	}
}

// optimum is the least cost of all ways to place the pods, found by trying: each pod goes to a node that is there or opens one of a type.
// Its rules are its own: cpu, memory and number of pods.
func optimum(pods [][]int64, nodes, types [][]int64, costs []int64) int64 {
	best := int64(1) << 62
	var open [][]int64
	for _, n := range nodes {
		open = append(open, append([]int64{}, n...))
	}
	fits := func(p, free []int64) bool { return p[0] <= free[0] && p[1] <= free[1] && p[2] <= free[2] }
	var place func(k int, spent int64)
	place = func(k int, spent int64) {
		if spent >= best {
			return
		}
		if k == len(pods) {
			best = spent
			return
		}
		for i := range open {
			if fits(pods[k], open[i]) {
				for r, n := range pods[k] {
					open[i][r] -= n
				}
				place(k+1, spent)
				for r, n := range pods[k] {
					open[i][r] += n
				}
			}
		}
		for i, free := range types {
			if fits(pods[k], free) {
				open = append(open, []int64{free[0] - pods[k][0], free[1] - pods[k][1], free[2] - pods[k][2]})
				place(k+1, spent+costs[i])
				open = open[:len(open)-1]
			}
		}
	}
	place(0, 0)
	return best
}

// No document is confirmed whose bound is above the optimum, whatever its certificate, and those of the planner are.
func TestNoBoundAboveTheOptimumIsConfirmed(t *testing.T) {
	rng := rand.New(rand.NewPCG(48, 1))
	reached, confirmed := 0, 0
	for range 60 {
		var s scheduling.Snapshot
		for i := range 2 + rng.IntN(5) {
			s.Pods = append(s.Pods, pod(fmt.Sprintf("p-%d", i), fmt.Sprint(1+rng.IntN(4)), fmt.Sprintf("%dGi", 1+rng.IntN(12)), nil))
		}
		var types []instancetypes.InstanceType
		for i := range 2 + rng.IntN(3) {
			cpu := 4 + rng.IntN(8)
			types = append(types, offered(fmt.Sprintf("t%d", i), size(fmt.Sprint(cpu), fmt.Sprintf("%dGi", 12+rng.IntN(30))), float64(10*cpu+rng.IntN(30))/1000))
		}
		s.Pools = []scheduling.Pool{{Types: types, NodePool: nodepool.NodePool{Name: "general"}}}
		if rng.IntN(2) == 0 {
			s.Nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Allocatable: size("3", "6Gi"), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}}
		}
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		require.Empty(t, p.Unplaced())
		d, err := proof.Of(p)
		require.NoError(t, err)
		code, said := verdict(t, encoded(t, d))
		require.Zero(t, code, said)
		var pods, nodes, shapes [][]int64
		var costs []int64
		for _, c := range d.Pods {
			for range c.Pods {
				pods = append(pods, c.Requests)
			}
		}
		for _, n := range d.Nodes {
			nodes = append(nodes, n.Free)
		}
		for _, x := range d.Types {
			shapes, costs = append(shapes, x.Free), append(costs, x.Offerings[0].Cost)
		}
		best := optimum(pods, nodes, shapes, costs)
		require.LessOrEqual(t, d.Bound.CostPerHour, best)
		if d.Bound.CostPerHour == best {
			reached++
		}
		for range 40 { // a forger changes the certificate and claims what he likes
			forged := *d
			forged.Bound.CostPerHour = d.Bound.CostPerHour + rng.Int64N(d.CostPerHour-d.Bound.CostPerHour+1)
			forged.Bound.Values = append([]int64{}, d.Bound.Values...)
			for i := range forged.Bound.Values {
				forged.Bound.Values[i] = forged.Bound.Values[i] * (8 + rng.Int64N(8)) / 10
			}
			forged.Bound.Types = nil
			for _, prices := range d.Bound.Types {
				var changed []*big.Int
				for _, price := range prices {
					changed = append(changed, new(big.Int).Quo(new(big.Int).Mul(price, big.NewInt(7+rng.Int64N(8))), big.NewInt(10)))
				}
				forged.Bound.Types = append(forged.Bound.Types, changed)
			}
			if code, _ := verdict(t, encoded(t, forged)); code == 0 {
				confirmed++
				require.LessOrEqual(t, forged.Bound.CostPerHour, best)
			}
		}
		forged := *d
		forged.Bound.CostPerHour = best + 1
		code, _ = verdict(t, encoded(t, forged))
		require.NotZero(t, code)
	}
	t.Log(reached, "of 60 bounds are the optimum,", confirmed, "other certificates were confirmed")
	assert.GreaterOrEqual(t, reached, 15)
	assert.Positive(t, confirmed, "or the forger is never believed, and the test says nothing")
}

// A plan whose alternatives have too few values for minValues, are too small, or do not keep the limits at once is refused.
func TestMinValues(t *testing.T) {
	document := func() *proof.Document {
		var s scheduling.Snapshot
		for i := range 2 {
			s.Pods = append(s.Pods, pod(fmt.Sprintf("web-%d", i), "1500m", "2Gi", nil))
		}
		s.Pools = []scheduling.Pool{{
			NodePool: nodepool.NodePool{Name: "default", MinValues: map[string]int{corev1.LabelInstanceTypeStable: 2}, Limits: corev1.ResourceList{"cpu": resource.MustParse("9")}},
			Types:    []instancetypes.InstanceType{offered("small", size("2", "8Gi"), 1), offered("large", size("4", "16Gi"), 2.5), offered("tiny", size("1", "4Gi"), 0.6)},
		}}
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		d, err := proof.Of(p)
		require.NoError(t, err)
		require.Len(t, d.NewNodes, 2)
		return d
	}
	code, said := verdict(t, encoded(t, document()))
	require.Zero(t, code, said)
	for want, change := range map[string]func(*proof.Document){
		"demands 2 values of node.kubernetes.io/instance-type (minValues), the node and its alternatives have 1": func(d *proof.Document) { d.NewNodes[1].Alternatives = nil },
		"limit 0 is 7000, 8000 are used":   func(d *proof.Document) { d.Pools[0].Limits[0] = 7000 },
		"tiny is too small for its pods":   func(d *proof.Document) { d.NewNodes[0].Alternatives = append(d.NewNodes[0].Alternatives, [2]int{2, 0}) },
		"parts of the document do not fit": func(d *proof.Document) { d.NewNodes[0].Alternatives[0][1] = 7 },
	} {
		d := document()
		change(d)
		code, said = verdict(t, encoded(t, d))
		require.NotZero(t, code)
		require.Contains(t, said, want)
	}
}
