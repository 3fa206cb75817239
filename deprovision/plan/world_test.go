package plan_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func now() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }

// toy is a simulator in which every pod has size 1, a node of type tN holds N and costs N cents an hour, spot half
// of it.
type toy struct {
	free map[string]int
	spot bool // spot is for sale
	none bool // static pools can buy nothing
	even bool // only sizes of powers of two are for sale
	next int
}

func (s toy) Simulate(_ context.Context, q plan.Question) (plan.Answer, error) {
	free := maps.Clone(s.free)
	for _, n := range slices.Concat(q.Remove, q.Cordon) {
		delete(free, n)
	}
	var a plan.Answer
	next := s.next
	left := slices.Clone(q.Pods)
	for _, pool := range q.Replacements {
		if s.none {
			break
		}
		n := plan.NewNode{Name: fmt.Sprintf("new-%d", next), Pool: pool, InstanceType: "t4", Zone: "z", CapacityType: "on-demand", PricePerHour: deprovision.Dollars(0.04)}
		free[n.Name] = 4
		a.NewNodes = append(a.NewNodes, n)
		next++
	}
	if q.Moves != nil {
		for _, n := range q.Buy {
			size := 0
			fmt.Sscanf(n.InstanceType, "t%d", &size)
			free[n.Name] = size
			n.Pods = nil
			for _, p := range q.Pods {
				if q.Moves[p] == n.Name {
					n.Pods = append(n.Pods, p)
				}
			}
			a.NewNodes = append(a.NewNodes, n)
			number := 0
			fmt.Sscanf(n.Name, "new-%d", &number)
			next = max(next, number) + 1 // no two nodes have one name
		}
		left = nil
		for _, p := range q.Pods {
			if free[q.Moves[p]] < 1 {
				left = append(left, p)
				continue
			}
			free[q.Moves[p]]--
			a.Placements = append(a.Placements, plan.Placement{Pod: p, Node: q.Moves[p]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(free)) {
		for free[name] > 0 && len(left) > 0 && (q.Moves == nil || q.Elsewhere) {
			a.Placements = append(a.Placements, plan.Placement{Pod: left[0], Node: name})
			free[name]--
			left = left[1:]
		}
	}
	if len(left) > 0 && q.MaxNodes > 0 {
		size := len(left)
		for s.even && size&(size-1) > 0 {
			size++
		}
		n := plan.NewNode{Name: fmt.Sprintf("new-%d", next), Pool: "default", InstanceType: fmt.Sprintf("t%d", size), Zone: "z", CapacityType: "on-demand", PricePerHour: deprovision.Dollars(float64(size) / 100)}
		if s.spot {
			n.CapacityType, n.PricePerHour = "spot", n.PricePerHour/2
		}
		if q.MaxCost == 0 || n.PricePerHour < q.MaxCost {
			for _, p := range left {
				a.Placements = append(a.Placements, plan.Placement{Pod: p, Node: n.Name})
			}
			free[n.Name] = size - len(left)
			n.Pods, left = left, nil
			a.NewNodes = append(a.NewNodes, n)
			next++
		}
	}
	if len(left) > 0 {
		return plan.Answer{Unplaced: left, Why: fmt.Sprintf("%s: no room anywhere", left[0].Name)}, nil
	}
	a.After = func() plan.Simulator { return toy{free: free, spot: s.spot, none: s.none, even: s.even, next: next} }
	a.Rebased = a.After
	return a, nil
}

// world makes a cluster of nodes given as "name size pods".
type world struct {
	deprovision.Cluster
	toy
}

func newWorld(nodes ...string) *world {
	zero := time.Duration(0)
	pool := nodepool.NodePool{Name: "default", APIVersion: nodepool.V1, Disruption: nodepool.Disruption{Policy: nodepool.WhenEmptyOrUnderutilized, ConsolidateAfter: &zero}}
	w := &world{deprovision.Cluster{Pools: []nodepool.NodePool{pool}, Now: now()}, toy{free: map[string]int{}}}
	for _, text := range nodes {
		var name string
		var size, pods int
		if _, err := fmt.Sscan(text, &name, &size, &pods); err != nil {
			panic(err)
		}
		n := eligibility.Node{
			Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now().Add(-time.Hour))}}, Pool: &w.Pools[0],
			Claim:        eligibility.Claim{LastPodEvent: now().Add(-24 * time.Hour)},
			InstanceType: fmt.Sprintf("t%d", size), Zone: "z", CapacityType: "on-demand", PricePerHour: deprovision.Dollars(float64(size) / 100), Priced: true,
		}
		for i := range pods {
			yes := true
			n.Pods = append(n.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{"on": name},
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: &yes}},
			}})
		}
		w.Nodes = append(w.Nodes, n)
		w.free[name] = size - pods
	}
	return w
}

func (w *world) node(name string) *eligibility.Node {
	return &w.Nodes[slices.IndexFunc(w.Nodes, func(n eligibility.Node) bool { return n.Name() == name })]
}

func (w *world) plan(o plan.Options) plan.Result {
	return planned(w.Cluster, w.toy, &o)
}

// planned is the plan of a cluster without mistakes.
func planned(c deprovision.Cluster, sim plan.Simulator, o *plan.Options) plan.Result {
	r, err := plan.Make(context.Background(), c, sim, o) //nolint:forbidigo // for Examples, which have no t
	if err != nil {
		panic(err)
	}
	return r
}

// ask is the answer of a simulator that makes no errors.
func ask(sim plan.Simulator, q plan.Question) plan.Answer {
	a, err := sim.Simulate(context.Background(), q) //nolint:forbidigo // for Examples, which have no t
	if err != nil {
		panic(err)
	}
	return a
}

func commands(r plan.Result) []string {
	var out []string
	for _, c := range r.Commands {
		text := fmt.Sprintf("%s %s", c.Method, c.Kind)
		for _, n := range c.Nodes {
			text += " -" + n.Name
		}
		for _, n := range c.NewNodes {
			text += " +" + n.InstanceType
		}
		out = append(out, text)
	}
	return out
}

func verdict(t *testing.T, r plan.Result, node string) plan.Verdict {
	t.Helper()
	at := slices.IndexFunc(r.Verdicts, func(v plan.Verdict) bool { return v.Node == node })
	require.GreaterOrEqual(t, at, 0, node)
	return r.Verdicts[at]
}
