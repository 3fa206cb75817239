package regret

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// ledger sums the bills by hour and by decision.
type ledger struct {
	hours []Hour
	rows  []*row
	open  map[string]*row // those that the next observation may continue, by name
}

// row is the cost of a node of the history. The names of rows that are not nodes begin with a
// space.
type row struct {
	Decision
	node    *corev1.Node // as last observed; nil if it is not a node
	seconds int64
	used    float64 // share times seconds
	worst   moment  // when the most was paid beyond what its pods cost under the policy
	first   moment  // when it first had pods
	empty   moment  // when it first had none
}

// moment is an observation; known is false if there is none.
type moment struct {
	known       bool
	observation time.Time
	more        deprovision.Price
}

const waitedRow, spareRow = " waited", " spare"

func newLedger() *ledger { return &ledger{open: map[string]*row{}} }

// enter adds an observation and returns what was paid per hour. The policy's cost of a node is
// divided among its pods by what they take of it, and the bound in proportion to that. Each pod's
// share is charged to the node on which it ran in the history.
func (l *ledger) enter(x *scene, p *policy, bound, present deprovision.Price) deprovision.Price {
	var paid, ours deprovision.Price
	for i := range x.nodes {
		paid += x.nodes[i].price
	}
	part, idle := parts(p)
	for _, m := range p.nodes {
		ours += m.price
	}
	l.close(x)
	l.spread(x, Bill{Paid: Amount(paid), Policy: Amount(ours), Bound: Amount(bound), Present: Amount(present)}, p.overlap)

	running := map[string][]*corev1.Pod{}
	for _, pod := range x.running {
		running[pod.Spec.NodeName] = append(running[pod.Spec.NodeName], pod)
	}
	names, weights := []string{waitedRow}, []float64{0}
	var waited deprovision.Price
	for _, pod := range x.waits {
		waited += part[eviction.Name(pod)]
	}
	for i := range x.nodes {
		m := &x.nodes[i]
		var policy deprovision.Price
		for _, pod := range running[m.node.Name] {
			policy += part[eviction.Name(pod)]
		}
		names, weights = append(names, m.node.Name), append(weights, float64(policy))
		if ours := p.nodes[m.node.Name]; ours != nil && history.SameMachine(m.node, ours.node) {
			policy += idle[m.node.Name]
			delete(idle, m.node.Name)
		}
		l.node(x, m, running[m.node.Name], policy)
	}
	var spare deprovision.Price
	for _, price := range idle {
		spare += price
	}
	l.row(waitedRow, x).Policy += over(waited, x.seconds)
	l.row(spareRow, x).Policy += over(spare, x.seconds) + p.overlap
	weights[0] = float64(waited)
	for i, b := range divided(bound, weights) {
		l.row(names[i], x).Bound += over(b, x.seconds)
	}
	for i, b := range divided(present, weights) {
		l.row(names[i], x).Present += over(b, x.seconds)
	}
	return paid
}

// node adds the cost of a node of the history, and the cost of its pods under the policy.
func (l *ledger) node(x *scene, m *machine, pods []*corev1.Pod, policy deprovision.Price) {
	r := l.row(m.node.Name, x)
	r.InstanceType, r.Zone, r.CapacityType = typeOf(m.node)
	r.node = m.node
	r.Paid += over(m.price, x.seconds)
	r.Policy += over(policy, x.seconds)
	r.seconds += x.seconds
	if len(pods) == 0 {
		r.Idle += over(m.price, x.seconds)
		if !r.empty.known {
			r.empty = moment{true, x.at, m.price}
		}
		return
	}
	share := 0.0
	for _, pod := range pods {
		share += dominant(pod, m.node)
	}
	r.used += min(share, 1) * float64(x.seconds)
	now := moment{true, x.at, m.price - policy}
	if !r.first.known {
		r.first = now
	}
	if !r.worst.known || now.more > r.worst.more {
		r.worst = now
	}
}

// close ends the rows of machines that an observation no longer has. A later node of the same name
// is another decision.
func (l *ledger) close(x *scene) {
	maps.DeleteFunc(l.open, func(_ string, r *row) bool { return r.node != nil && !x.has(r.node) })
}

func (l *ledger) row(name string, x *scene) *row {
	r := l.open[name]
	if r == nil {
		r = &row{Decision: Decision{Node: name, From: x.at}}
		switch name {
		case waitedRow:
			r.Node, r.Kind = "", Waited
		case spareRow:
			r.Node, r.Kind = "", Spare
		}
		l.open[name], l.rows = r, append(l.rows, r)
	}
	r.To = x.at.Add(time.Duration(x.seconds) * time.Second)
	return r
}

// spread divides an observation among the hours of the clock. Costs that occur only at its
// beginning belong to the first hour.
func (l *ledger) spread(x *scene, perHour Bill, once Amount) {
	end := x.at.Add(time.Duration(x.seconds) * time.Second)
	for at := x.at; at.Before(end); {
		hour := at.Truncate(time.Hour)
		next := hour.Add(time.Hour)
		if next.After(end) {
			next = end
		}
		seconds := int64(next.Sub(at) / time.Second)
		if n := len(l.hours); n == 0 || !l.hours[n-1].From.Truncate(time.Hour).Equal(hour) {
			l.hours = append(l.hours, Hour{From: at})
		}
		h := &l.hours[len(l.hours)-1]
		h.Seconds += seconds
		h.add(Bill{perHour.Paid * Amount(seconds), perHour.Policy*Amount(seconds) + once, perHour.Present * Amount(seconds), perHour.Bound * Amount(seconds)})
		at, once = next, 0
	}
}

// decisions sorts the rows that have a bill, and returns their decisions.
func (l *ledger) decisions() []Decision {
	l.rows = slices.DeleteFunc(l.rows, func(r *row) bool { return r.Bill == (Bill{}) })
	slices.SortFunc(l.rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.Regret(), a.Regret()), strings.Compare(a.Node, b.Node), cmp.Compare(a.Kind, b.Kind), a.From.Compare(b.From))
	})
	out := make([]Decision, len(l.rows))
	for i, r := range l.rows {
		if r.seconds > 0 {
			r.Used = r.used / float64(r.seconds)
		}
		out[i] = r.Decision
	}
	return out
}

// parts returns the cost of each pod under the policy, and the cost of each node without pods.
func parts(p *policy) (part, idle map[string]deprovision.Price) {
	on := map[string][]*corev1.Pod{}
	for _, key := range slices.Sorted(maps.Keys(p.pods)) {
		if node := p.pods[key].Spec.NodeName; node != "" {
			on[node] = append(on[node], p.pods[key])
		}
	}
	part, idle = map[string]deprovision.Price{}, map[string]deprovision.Price{}
	for name, m := range p.nodes {
		pods := on[name]
		if len(pods) == 0 {
			idle[name] = m.price
			continue
		}
		weights := make([]float64, len(pods))
		for i, pod := range pods {
			weights[i] = dominant(pod, m.node)
		}
		for i, price := range divided(m.price, weights) {
			part[eviction.Name(pods[i])] = price
		}
	}
	return part, idle
}

// divided splits a price by weight into parts that add up to it. If all weights are zero, the first
// part gets everything.
func divided(price deprovision.Price, weights []float64) []deprovision.Price {
	out := make([]deprovision.Price, len(weights))
	if len(out) == 0 {
		return out
	}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	if sum <= 0 {
		out[0] = price
		return out
	}
	before, upto, last := deprovision.Price(0), 0.0, 0
	for i, w := range weights {
		upto += w
		if w > 0 {
			last = i
		}
		next := deprovision.Price(math.Round(float64(price) * (upto / sum)))
		out[i], before = next-before, next
	}
	out[last] += price - before
	return out
}

// dominant returns the largest fraction that a pod takes of a node's resource.
func dominant(pod *corev1.Pod, n *corev1.Node) float64 {
	out := 0.0
	for name, q := range resources.OfPod(pod, false) {
		if total := resources.Capacity(name, n.Status.Allocatable[name]); total > 0 && name != corev1.ResourcePods {
			out = max(out, float64(resources.Request(name, q))/float64(total))
		}
	}
	return out
}
