package bruteforce

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// sets visits the sets of nodes to buy for the wanted pods until visit returns false. If it is
// priced, it visits those that cost less than *below, which may fall meanwhile.
func (x *Search) sets(want []int, priced bool, below *int64, visit func(bought []int, price int64) bool) {
	useful, most := x.useful(want, priced), 0
	var need amount
	for i, n := range want {
		most += n // a plan buys no node without pods
		need = need.minus(x.Model.kinds[x.kinds[i]].request, -n)
	}
	for i := range x.Model.sites[:x.Model.nodes] {
		need = need.minus(x.Model.left(i), 1)
	}
	// rest is the least price of a thousandth of a cpu among the offers from a position on.
	rest := make([]float64, len(useful)+1)
	rest[len(useful)] = math.Inf(1)
	for i := len(useful) - 1; i >= 0; i-- {
		rest[i] = min(rest[i+1], float64(x.offers[useful[i]].Price)/float64(max(1, x.Model.left(x.Model.nodes + useful[i])[0])))
	}
	var bought []int
	var grow func(from int, price int64, need amount, budgets []Budget) bool
	grow = func(from int, price int64, need amount, budgets []Budget) bool {
		x.Left--
		if !visit(bought, price) {
			return false
		}
		if len(bought) == most {
			return true
		}
		for i := from; i < len(useful) && x.Left >= 0; i++ {
			o := &x.offers[useful[i]]
			cost := price + o.Price
			if priced && (cost >= *below || need[0] > 0 && float64(price)+float64(need[0])*rest[i] > float64(*below)+1) {
				continue
			}
			after, ok := budgets[o.Pool].Take(o.Node)
			if !ok {
				continue
			}
			left := slices.Clone(budgets)
			left[o.Pool] = after
			bought = append(bought, useful[i])
			more := grow(i, cost, need.minus(x.Model.left(x.Model.nodes+useful[i]), 1), left)
			bought = bought[:len(bought)-1]
			if !more {
				return false
			}
		}
		return true
	}
	grow(0, 0, need, x.budgets)
}

// mayHold is a quick look: the room of all nodes is large enough, and each kind may go somewhere.
func (x *Search) mayHold(bought, want []int) bool {
	var room amount
	st := x.Model.Start(bought...)
	for _, site := range st.sites {
		room = room.minus(x.Model.left(site), -1)
	}
	for i, count := range want {
		room = room.minus(x.Model.kinds[x.kinds[i]].request, count)
		if count > 0 && !slices.ContainsFunc(st.sites, func(site int) bool { return x.static(&x.Model.sites[site], x.kinds[i]) }) {
			return false
		}
	}
	return min(room[0], room[1], room[2]) >= 0
}

// static reports whether a pod of the kind may go to a site, other pending pods aside.
func (x *Search) static(at *site, kind int) bool {
	return at.affine[kind] && at.tolerated[kind] && at.tied[kind] && x.Model.holds(at, kind)
}

// left is what a site has left for pending pods, and nothing less than nothing.
func (m *Model) left(site int) (left amount) {
	for i, amount := range m.leftBy(&m.sites[site], m.sites[site].running) {
		left[i] = max(0, amount)
	}
	return left
}

// useful are the offers that can hold a wanted pod, by price, without those that another one can
// always replace.
func (x *Search) useful(want []int, priced bool) []int {
	var all []int
	for o := range x.offers {
		for i, n := range want {
			if n > 0 && x.static(&x.Model.sites[x.Model.nodes+o], x.kinds[i]) {
				all = append(all, o)
				break
			}
		}
	}
	var out []int
	for _, o := range all {
		if !slices.ContainsFunc(all, func(by int) bool {
			return by != o && x.replaces(by, o, priced) && (by < o || !x.replaces(o, by, priced))
		}) {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		if priced {
			return cmp.Compare(x.offers[a].Price, x.offers[b].Price)
		}
		return cmp.Compare(x.Model.left(x.Model.nodes + b)[0], x.Model.left(x.Model.nodes + a)[0])
	})
	return out
}

// replaces reports whether offer a is as good as b for everybody: not dearer, not smaller, equal in
// the labels that pods ask about, in taints and daemons, and not more for the limits.
func (x *Search) replaces(a, b int, priced bool) bool {
	p, q := &x.offers[a], &x.offers[b]
	if priced && p.Price > q.Price {
		return false
	}
	for _, key := range x.labels {
		value, has := p.Node.Labels[key]
		other, too := q.Node.Labels[key]
		if value != other || has != too {
			return false
		}
	}
	cpu := func(o *Offer) int64 { return o.Node.Status.Capacity.Cpu().MilliValue() }
	limit := x.budgets[p.Pool]
	switch {
	case limit.Nodes < 0 && limit.CPU < 0:
	case p.Pool != q.Pool, limit.CPU >= 0 && cpu(p) > cpu(q):
		return false
	}
	one, two := &x.Model.sites[x.Model.nodes+a], &x.Model.sites[x.Model.nodes+b]
	if !slices.Equal(one.running, two.running) || !slices.EqualFunc(p.Node.Spec.Taints, q.Node.Spec.Taints, func(s, t corev1.Taint) bool { return s == t }) {
		return false
	}
	for i := range one.room {
		if one.room[i] < two.room[i] {
			return false
		}
	}
	return true
}
