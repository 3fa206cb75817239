// Command check verifies a plan that `provision --proof FILE` wrote. It reads the document from
// stdin and does not trust the planner: it imports only the standard library, and computes the
// bound in integers of any size. It checks that
//   - every pod is on exactly one node or listed as unplaced;
//   - on every node the requests fit, the labels satisfy a selector of each pod, taints are
//     tolerated, and no more pods of an anti-affinity group are there than may share a node;
//   - every new node is a type and an offering of the catalogue, with labels that these allow;
//   - a new node of a pool with minValues and its alternatives, which hold its pods as well, have
//     so many values;
//   - limits of pools, reservations and CapacityQuotas hold whichever alternatives are bought, and
//     price and cost are sums of nodes;
//   - no plan of the same pods on the existing nodes and the catalogue costs less than the bound.
//
// The certificate gives each pod a value, and each node and type a price per resource. A node's
// pods are worth at most the price of its free resources plus each pod's value above the price of
// its requests. No new nodes below the bound hold the value that existing nodes leave.
//
// It does not check that the document is true: compare its pods, nodes, limits and prices with
// yours. It knows no other constraints between pods, host ports, volumes, preferences, priorities,
// weights or binding order. They may make the bound too low, but never too high.
//
// It exits with 0 if all holds, 2 for an unreadable document, and 3 for faults, listed on stderr.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
)

// document is a plan with all that its check needs. Money is in billionths of a dollar. One list of
// Requires must hold for the node of each pod of a podClass. Apart says how many pods of a group
// may share a node. Labels are the values that a node may have, null for any. Usage is by limit of
// the pool, Takes and Uses by Stock. Plans are compared by Cost. Prices are in units of 2^-Shift.
type (
	document struct {
		Format                    string
		Resources, Unplaced       []string
		Pods                      []podClass
		Apart, Stock              map[string]int64
		Nodes, NewNodes           []node
		Pools                     []pool
		Types                     []nodeType
		PricePerHour, CostPerHour int64
		Bound                     certificate
	}
	podClass struct {
		Pods        []string
		Requests    []int64
		Requires    [][]expression
		Tolerations []taint
		Apart       string
	}
	expression struct {
		Key, Operator string
		Values        []string
	}
	taint  struct{ Key, Operator, Value, Effect string } // or a toleration
	labels map[string][]string
	node   struct { // one that exists says what is free and tainted, a new one its type and offering
		Name           string
		Type, Offering int
		Free           []int64
		Labels         labels
		Taints         []taint
		Pods           []string
		Alternatives   [][2]int // types and offerings
	}
	pool struct {
		Name      string
		Limits    []int64
		MaxNodes  *int64
		MinValues map[string]int
		Taints    []taint
	}
	nodeType struct {
		Name        string
		Pool        int
		Free, Usage []int64
		Offerings   []offering
	}
	offering struct {
		Labels             labels
		Price, Cost, Takes int64
		Stock              string
		Uses               map[string]int64
	}
	certificate struct {
		CostPerHour  int64
		Values       []int64
		Shift        uint
		Types, Nodes [][]*big.Int
	}
)

func main() { os.Exit(start(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(in io.Reader, out, problems io.Writer) int {
	c := &checker{of: map[string]int{}, steps: 1_000_000}
	if err := c.read(in); err != nil {
		fmt.Fprintln(problems, "check:", err)
		return 2
	}
	c.pods()
	c.plan()
	c.bound()
	if slices.Sort(c.faults); len(c.faults) > 0 {
		fmt.Fprintln(problems, "check:", strings.Join(c.faults, "\ncheck: "))
		return 3
	}
	fmt.Fprintf(out, "holds: %s, %d of them unplaced; %s that exist, and %d new for $%.9f an hour; no plan for these pods costs less than $%.9f\n", plural(len(c.of), "pod"),
		len(c.Unplaced), plural(len(c.Nodes), "node"), len(c.NewNodes), float64(c.CostPerHour)/1e9, float64(c.Bound.CostPerHour)/1e9)
	return 0
}

type checker struct {
	document
	of     map[string]int // pods: their class
	placed []int64        // by class
	faults []string
	kinds  []kind // for the search
	steps  int
}

func (c *checker) must(ok bool, format string, args ...any) {
	if !ok {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

// read decodes the document, and checks all its indexes.
func (c *checker) read(in io.Reader) error {
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c.document); err != nil {
		return readable(err)
	}
	_, end := dec.Token()
	ok := end == io.EOF && c.Format == "joinery-proof/1" && len(c.Bound.Types) == len(c.Types) && len(c.Bound.Nodes) == len(c.Nodes) && c.Bound.Shift <= 128
	figures := func(v []int64, n int) {
		ok = ok && len(v) == n && !slices.ContainsFunc(v, func(x int64) bool { return x < 0 })
	}
	prices := func(v []*big.Int) {
		ok = ok && len(v) == len(c.Resources) && !slices.ContainsFunc(v, func(x *big.Int) bool { return x == nil || x.Sign() < 0 })
	}
	figures(c.Bound.Values, len(c.Pods))
	for _, p := range c.Pods {
		figures(p.Requests, len(c.Resources))
	}
	for i := 0; ok && i < len(c.Nodes); i++ {
		figures(c.Nodes[i].Free, len(c.Resources))
		prices(c.Bound.Nodes[i])
	}
	for i := 0; ok && i < len(c.Types); i++ {
		t := &c.Types[i]
		ok = t.Pool >= 0 && t.Pool < len(c.Pools) && len(t.Usage) == len(c.Pools[t.Pool].Limits)
		figures(t.Usage, len(t.Usage))
		figures(t.Free, len(c.Resources))
		prices(c.Bound.Types[i])
		for _, o := range t.Offerings {
			figures(slices.Collect(maps.Values(o.Uses)), len(o.Uses))
			ok = ok && o.Price >= 0 && o.Cost >= 0 && (o.Stock == "" || o.Takes > 0)
		}
	}
	if !ok || slices.ContainsFunc(c.NewNodes, func(n node) bool {
		return slices.ContainsFunc(n.choices(), func(x [2]int) bool {
			return x[0] < 0 || x[0] >= len(c.Types) || x[1] < 0 || x[1] >= len(c.Types[x[0]].Offerings) || c.Types[x[0]].Pool != c.Types[n.Type].Pool
		})
	}) {
		return fmt.Errorf("the parts of the document do not fit together")
	}
	return nil
}

// pods numbers the pods, and finds each of them in one place.
func (c *checker) pods() {
	at, seen := map[string]string{}, map[string]bool{}
	put := func(where string, names []string) {
		c.must(!seen[where], "two nodes have the name %s", where)
		seen[where] = true
		for _, name := range names {
			_, known := c.of[name]
			c.must(known, "%s: pod %s is not among the pods", where, name)
			c.must(at[name] == "", "pod %s is in two places, %s and %s", name, at[name], where)
			at[name] = where
		}
	}
	for i, p := range c.Pods {
		for _, name := range p.Pods {
			_, twice := c.of[name]
			c.must(!twice, "pod %s is listed twice", name)
			c.of[name] = i
		}
	}
	for _, n := range slices.Concat(c.Nodes, c.NewNodes) {
		put(n.Name, n.Pods)
	}
	put("the list of unplaced pods", c.Unplaced)
	for name := range c.of {
		c.must(at[name] != "", "pod %s is neither placed nor listed as unplaced", name)
	}
}

// plan checks every node, the limits, and the sums.
func (c *checker) plan() {
	c.placed = make([]int64, len(c.Pods))
	for _, n := range c.Nodes {
		c.node(n.Name, n.Pods, n.Free, n.Labels, n.Taints)
	}
	price, cost, taken, count, used := int64(0), int64(0), map[string]int64{}, make([]int64, len(c.Pools)), make([][]int64, len(c.Pools))
	for _, n := range c.NewNodes {
		t := &c.Types[n.Type]
		o := &t.Offerings[n.Offering]
		for key, values := range n.Labels {
			may, there := o.Labels[key]
			c.must(there && (may == nil || slices.Contains(may, append(values, "")[0])), "%s: %s does not allow the label %s=%s", n.Name, t.Name, key, values)
		}
		for key, values := range o.Labels {
			c.must(n.Labels[key] != nil || values == nil, "%s: it lacks the label %s of %s", n.Name, key, t.Name)
		}
		c.node(n.Name, n.Pods, t.Free, n.Labels, c.Pools[t.Pool].Taints)
		price, cost, taken[o.Stock] = sum(price, o.Price), sum(cost, o.Cost), sum(taken[o.Stock], o.Takes)
		usage, uses := c.alternatives(n)
		for name, amount := range uses {
			taken[name] = sum(taken[name], amount)
		}
		count[t.Pool]++
		used[t.Pool] = added(used[t.Pool], usage)
	}
	for name, n := range taken {
		c.must(name == "" || n <= c.Stock[name], "nothing is left of %s: %d are taken of %d", name, n, c.Stock[name])
	}
	for k, p := range c.Pools {
		c.must(p.MaxNodes == nil || count[k] <= *p.MaxNodes, "pool %s: too many new nodes: %d", p.Name, count[k])
		for i, n := range used[k] {
			c.must(n <= p.Limits[i], "pool %s: limit %d is %d, %d are used", p.Name, i, p.Limits[i], n)
		}
	}
	c.must(price == c.PricePerHour && cost == c.CostPerHour, "price and cost are %d and %d, the document says %d and %d", price, cost, c.PricePerHour, c.CostPerHour)
}

// node checks what is on one node, and counts its pods.
func (c *checker) node(where string, pods []string, free []int64, has labels, taints []taint) {
	used, together := []int64(nil), map[string]int64{}
	for key, values := range has {
		c.must(len(values) == 1, "%s: the label %s has no single value", where, key)
	}
	for _, name := range pods {
		i := c.of[name]
		if i >= len(c.Pods) {
			continue
		}
		p := &c.Pods[i]
		c.placed[i]++
		used = added(used, p.Requests)
		together[p.Apart]++
		c.must(p.Apart == "" || together[p.Apart] <= c.Apart[p.Apart], "%s: pod %s must be apart from others there", where, name)
		c.must(p.accepts(has), "%s: its labels do not match what pod %s requires", where, name)
		c.must(p.tolerates(taints), "%s: pod %s does not tolerate a taint", where, name)
	}
	for r, n := range used {
		c.must(n <= free[r], "%s: %d of %s are used, %d are free", where, n, c.Resources[r], free[r])
	}
}

// accepts reports whether a node with one of these values for each label may suit the pods.
func (p *podClass) accepts(has labels) bool {
	return slices.ContainsFunc(p.Requires, func(all []expression) bool {
		return !slices.ContainsFunc(all, func(e expression) bool {
			values, there := has[e.Key]
			if !there {
				return e.Operator != "NotIn" && e.Operator != "DoesNotExist"
			}
			return values != nil && !slices.ContainsFunc(values, e.matches)
		})
	})
}

func (e *expression) matches(value string) bool {
	switch e.Operator {
	case "In", "NotIn":
		return slices.Contains(e.Values, value) == (e.Operator == "In")
	case "Gt", "Lt":
		n, err := strconv.ParseInt(value, 10, 64)
		than, bad := strconv.ParseInt(append(e.Values, "")[0], 10, 64)
		return err == nil && bad == nil && (e.Operator == "Gt" && n > than || e.Operator == "Lt" && n < than)
	}
	return e.Operator == "Exists"
}

func (p *podClass) tolerates(taints []taint) bool {
	return !slices.ContainsFunc(taints, func(t taint) bool {
		return t.Effect != "PreferNoSchedule" && !slices.ContainsFunc(p.Tolerations, func(by taint) bool {
			return (by.Key == t.Key || by.Key == "") && (by.Effect == t.Effect || by.Effect == "") &&
				(by.Operator == "Exists" || (by.Operator == "Equal" || by.Operator == "") && by.Value == t.Value)
		})
	})
}

// kind is nodes of one cost that hold at most so much value.
type kind struct{ cost, value *big.Int }

// bound searches for nodes that cost less than the bound and hold the value of the placed pods.
func (c *checker) bound() {
	missing, given, kinds := new(big.Int), map[string]*big.Int{}, []kind{}
	c.must(c.Bound.CostPerHour <= c.CostPerHour, "the bound is above the cost")
	for i, n := range c.placed {
		missing.Add(missing, new(big.Int).Mul(big.NewInt(n), big.NewInt(c.Bound.Values[i])))
	}
	for i, n := range c.Nodes {
		missing.Sub(missing, c.holds(n.Free, c.Bound.Nodes[i], n.Labels, n.Taints))
	}
	for i, t := range c.Types {
		p, known := &c.Pools[t.Pool], map[string]*big.Int{} // by labels
		never := p.MaxNodes != nil && *p.MaxNodes <= 0
		for k, n := range t.Usage {
			never = never || n > p.Limits[k]
		}
		for _, o := range t.Offerings {
			if never || o.Cost >= c.Bound.CostPerHour || o.Stock != "" && o.Takes > c.Stock[o.Stock] {
				continue // no set has one that is cheaper than the bound
			}
			key := fmt.Sprint(o.Labels)
			if known[key] == nil {
				known[key] = c.holds(t.Free, c.Bound.Types[i], o.Labels, p.Taints)
			}
			if o.Stock != "" && o.Cost == 0 { // all of the reservation is taken, by what is best
				if all := new(big.Int).Mul(known[key], big.NewInt(c.Stock[o.Stock]/o.Takes)); given[o.Stock] == nil || all.Cmp(given[o.Stock]) > 0 {
					given[o.Stock] = all
				}
			} else if known[key].Sign() > 0 {
				kinds = append(kinds, kind{big.NewInt(o.Cost), known[key]})
			}
		}
	}
	for _, value := range given {
		missing.Sub(missing, value)
	}
	// What holds most for its cost comes first. Kinds that hold no more for no less are not needed.
	slices.SortFunc(kinds, func(a, b kind) int {
		return cmp.Or(new(big.Int).Mul(a.cost, b.value).Cmp(new(big.Int).Mul(b.cost, a.value)), b.value.Cmp(a.value))
	})
	for _, k := range kinds {
		if !slices.ContainsFunc(c.kinds, func(u kind) bool { return u.cost.Cmp(k.cost) <= 0 && u.value.Cmp(k.value) >= 0 }) {
			c.kinds = append(c.kinds, k)
		}
	}
	found := c.cheaper(0, missing, big.NewInt(c.Bound.CostPerHour))
	c.must(found || c.steps > 0, "the bound is not confirmed: the search for a cheaper set of nodes is too long")
	c.must(!found, "the bound is too high: a set of nodes that costs less holds the value of the pods")
}

// cheaper reports whether kinds[k:] hold the missing value for less than most; false at no steps.
func (c *checker) cheaper(k int, missing, most *big.Int) bool {
	c.steps--
	switch {
	case most.Sign() <= 0 || c.steps <= 0:
		return false
	case missing.Sign() <= 0:
		return true
	case k == len(c.kinds) || new(big.Int).Mul(missing, c.kinds[k].cost).Cmp(new(big.Int).Mul(most, c.kinds[k].value)) >= 0:
		return false // even fractions of nodes cost too much
	}
	return c.cheaper(k, new(big.Int).Sub(missing, c.kinds[k].value), new(big.Int).Sub(most, c.kinds[k].cost)) || c.cheaper(k+1, missing, most)
}

// holds is the value of the placed pods that one node holds at most.
func (c *checker) holds(free []int64, prices []*big.Int, has labels, taints []taint) *big.Int {
	most := new(big.Int)
	for r, n := range free {
		most.Add(most, new(big.Int).Mul(prices[r], big.NewInt(n)))
	}
	for i := range c.Pods {
		p, count, above := &c.Pods[i], c.placed[i], new(big.Int).Lsh(big.NewInt(c.Bound.Values[i]), c.Bound.Shift)
		if p.Apart != "" {
			count = min(count, c.Apart[p.Apart])
		}
		for r, n := range p.Requests {
			if n > 0 {
				count = min(count, free[r]/n)
				above.Sub(above, new(big.Int).Mul(prices[r], big.NewInt(n)))
			}
		}
		if count > 0 && above.Sign() > 0 && p.accepts(has) && p.tolerates(taints) {
			most.Add(most, above.Mul(above, big.NewInt(count)))
		}
	}
	return most.Rsh(most, c.Bound.Shift)
}
