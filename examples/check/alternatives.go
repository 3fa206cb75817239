package main

import (
	"maps"
	"math"
	"slices"
)

// choices are the type and offering of a new node, and its alternatives.
func (n *node) choices() [][2]int { return append([][2]int{{n.Type, n.Offering}}, n.Alternatives...) }

// alternatives checks what a new node may become, and returns the most that it counts.
func (c *checker) alternatives(n node) (usage []int64, uses map[string]int64) {
	var need []int64
	for _, name := range n.Pods {
		if i := c.of[name]; i < len(c.Pods) {
			need = added(need, c.Pods[i].Requests)
		}
	}
	values, p := map[string]map[string]bool{}, &c.Pools[c.Types[n.Type].Pool]
	uses, usage = map[string]int64{}, make([]int64, len(p.Limits))
	for _, x := range n.choices() {
		t := &c.Types[x[0]]
		o := &t.Offerings[x[1]]
		for r, sum := range need {
			c.must(sum <= t.Free[r], "%s: its alternative %s is too small for its pods", n.Name, t.Name)
		}
		suits := func(has labels) bool {
			return !slices.ContainsFunc(n.Pods, func(name string) bool { return c.of[name] < len(c.Pods) && !c.Pods[c.of[name]].accepts(has) })
		}
		c.must(suits(o.Labels), "%s: its alternative %s does not suit its pods", n.Name, t.Name)
		for k, u := range t.Usage {
			usage[k] = max(usage[k], u)
		}
		for name, u := range o.Uses {
			uses[name] = max(uses[name], u)
		}
		for key := range p.MinValues {
			if values[key] == nil {
				values[key] = map[string]bool{}
			}
			for _, v := range o.Labels[key] {
				one := maps.Clone(o.Labels)
				one[key] = []string{v}
				values[key][v] = values[key][v] || suits(one)
			}
		}
	}
	for key, want := range p.MinValues {
		maps.DeleteFunc(values[key], func(_ string, suits bool) bool { return !suits })
		c.must(len(values[key]) >= want, "%s: pool %s demands %d values of %s (minValues), the node and its alternatives have %d", n.Name, p.Name, want, key, len(values[key]))
	}
	return usage, uses
}

// sum adds without overflow.
func sum(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

func added(a, b []int64) []int64 {
	a = append(a, make([]int64, len(b)-len(a))...)
	for i := range b {
		a[i] = sum(a[i], b[i])
	}
	return a
}
