package capacityquota

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// Budget is what a quota still allows of one resource, in the units of package resources. The zero
// value allows nothing.
type Budget struct {
	// Quota is the name of the quota. Resource is what it limits, or [Nodes], and Max is how much.
	Quota    string
	Resource corev1.ResourceName
	Max      int64
	// Left is how much may still be bought, and Over is the excess over Max. At least one of them
	// is 0.
	Left, Over int64
}

// Text returns what is used of the budget, including what a plan takes, such as `quota "gpu-team":
// 8 of 8 nodes`.
func (b *Budget) Text(planned int64) string {
	return fmt.Sprintf("quota %q: %s of %s %s", b.Quota, resources.Humane(b.Resource, b.Max-b.Left+b.Over+planned), resources.Humane(b.Resource, b.Max), b.Resource)
}

// take counts an amount of the resource, and saturates.
func (b *Budget) take(amount int64) {
	fits := min(amount, b.Left)
	b.Left, b.Over = b.Left-fits, b.Over+min(amount-fits, 1<<62-b.Over)
}

// Set is a list of quotas that is asked many times. The zero value has none. It is immutable and
// safe for concurrent use.
type Set struct {
	quotas []Quota
	asked  []requirements.Set
	names  [][]corev1.ResourceName
	size   int // the number of budgets
}

// Compile returns the quotas as a Set, sorted by name. It keeps its argument and does not change
// it.
func Compile(quotas []Quota) Set {
	s := Set{quotas: slices.SortedStableFunc(slices.Values(quotas), func(a, b Quota) int { return strings.Compare(a.Name, b.Name) })}
	for i := range s.quotas {
		s.asked, s.names = append(s.asked, s.quotas[i].Requirements()), append(s.names, resources.Names(s.quotas[i].Limits))
		s.size += len(s.names[i])
	}
	return s
}

// Quotas returns the quotas, sorted by name; they must not be modified.
func (s Set) Quotas() []Quota { return s.quotas }

// Keys returns the labels that the quotas ask about.
func (s Set) Keys() requirements.Keys {
	var out requirements.Keys
	for _, asked := range s.asked {
		out = out.Union(asked.Keys())
	}
	return out
}

// Budgets returns what the existing nodes leave of the quotas, sorted by the names of quotas and
// resources. nodes is the number of existing nodes, and node returns the labels and capacity of
// each.
func (s Set) Budgets(nodes int, node func(i int) (labels map[string]string, capacity corev1.ResourceList)) []Budget {
	out := make([]Budget, 0, s.size)
	for k, q := range s.quotas {
		for _, name := range s.names[k] {
			most := resources.Capacity(name, q.Limits[name])
			out = append(out, Budget{Quota: q.Name, Resource: name, Max: most, Left: most})
		}
	}
	for i := range nodes {
		labels, capacity := node(i)
		for k, amount := range s.Of(labels, capacity) {
			out[k].take(amount)
		}
	}
	return out
}

// Of returns what a node counts against each of [Set.Budgets]; nil if no quota matches it.
func (s Set) Of(labels map[string]string, capacity corev1.ResourceList) []int64 {
	match := make([]bool, len(s.quotas))
	for i := range s.quotas {
		match[i] = s.quotas[i].Matches(labels)
	}
	return s.amounts(match, capacity)
}

func (s Set) amounts(match []bool, capacity corev1.ResourceList) []int64 {
	if !slices.Contains(match, true) {
		return nil
	}
	out := make([]int64, 0, s.size)
	for i := range s.quotas {
		for _, name := range s.names[i] {
			amount := int64(0)
			if match[i] {
				amount = Amount(name, capacity)
			}
			out = append(out, amount)
		}
	}
	return out
}

// Counter is [Set.Of] for nodes that do not exist yet, given what is known of their labels. An
// undecided label counts if one of its possible values matches. A Counter caches its answers, and
// is safe for concurrent use.
type Counter struct {
	set   Set
	mu    sync.Mutex
	known map[string][]bool // by labels
}

// Counter returns a counter of the quotas.
func (s Set) Counter() *Counter { return &Counter{set: s, known: map[string][]bool{}} }

// Of returns what a node counts against each of [Set.Budgets]; nil if no quota may match it. A key
// that node does not mention is absent.
func (c *Counter) Of(node requirements.Set, capacity corev1.ResourceList) []int64 {
	var few [256]byte
	key := node.AppendKey(few[:0])
	c.mu.Lock()
	match, ok := c.known[string(key)]
	if !ok {
		match = make([]bool, len(c.set.asked))
		for i, asked := range c.set.asked {
			match[i] = asked.Compatible(node, requirements.Keys{})
		}
		c.known[string(key)] = match
	}
	c.mu.Unlock()
	return c.set.amounts(match, capacity)
}
