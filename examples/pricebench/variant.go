package pricebench

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// Variant adds to plain pods and types something that real clusters have.
type Variant struct {
	Name string
	// Apply returns the problem with the addition. It does not change its argument.
	Apply func(p binpack.Problem, rng *rand.Rand) binpack.Problem
}

// Variants are existing nodes, limits, weights, labels, categories and pods that stand apart.
func Variants() []Variant {
	return []Variant{{"nodes", withNodes}, {"limits", withLimits}, {"weights", withWeights}, {"labels", withLabels}, {"categories", withCategories}, {"diverse", withApart}}
}

// withNodes adds a node for every 25 pods, with up to 4 CPUs and 16 GiB free.
func withNodes(p binpack.Problem, rng *rand.Rand) binpack.Problem {
	pods := 0
	for _, it := range p.Items {
		pods += it.Count
	}
	for i := range pods / 25 {
		p.Nodes = append(p.Nodes, binpack.Node{Name: fmt.Sprintf("node-%d", i), Free: []int64{int64(1+rng.IntN(16)) * 250, int64(1+rng.IntN(16)) * 1024, 50}})
	}
	return p
}

// withLimits allows the pool a third more CPUs than the pods ask for.
func withLimits(p binpack.Problem, _ *rand.Rand) binpack.Problem {
	asked := int64(0)
	for _, it := range p.Items {
		asked += it.Size[0] * int64(it.Count)
	}
	p.Pools = slices.Clone(p.Pools)
	p.Pools[0].Limits = []int64{asked + asked/3 + 4000}
	p.Types = slices.Clone(p.Types)
	for i := range p.Types {
		p.Types[i].Usage = []int64{p.Types[i].Capacity[0] + 500}
	}
	return p
}

// withWeights adds a heavier pool of the same types, which may have two nodes.
func withWeights(p binpack.Problem, _ *rand.Rand) binpack.Problem {
	p.Pools = append(slices.Clone(p.Pools), binpack.Pool{Name: "preferred", Weight: 10, MaxNodes: new(2)})
	types := slices.Clone(p.Types)
	for _, t := range p.Types {
		t.Pool = 1
		types = append(types, t)
	}
	p.Types = types
	return p
}

// withLabels gives every type a second architecture at a price 20% below, which a third of the
// shapes runs on, and asks for a zone in every fifth shape.
func withLabels(p binpack.Problem, rng *rand.Rand) binpack.Problem {
	amd, arm := requirements.In("arch", "amd64"), requirements.In("arch", "arm64")
	var types []binpack.Type
	for _, t := range p.Types {
		t.Provides = requirements.MustOf(amd)
		types = append(types, t)
		t.Name, t.Provides, t.Offerings = t.Name+"-arm", requirements.MustOf(arm), slices.Clone(t.Offerings)
		for j := range t.Offerings {
			t.Offerings[j].Price -= t.Offerings[j].Price / 5
		}
		types = append(types, t)
	}
	p.Types, p.Items = types, slices.Clone(p.Items)
	zones := []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	for i := range p.Items {
		var b requirements.Builder
		if rng.IntN(3) > 0 {
			b.Add(amd)
		}
		if rng.IntN(5) == 0 {
			b.Add(requirements.In("topology.kubernetes.io/zone", zones[rng.IntN(len(zones))]))
		}
		set, _ := b.Set() // two keys never conflict
		p.Items[i].Requires = requirements.AnyOf(set)
	}
	return p
}

// withCategories lets each shape run in about half of the categories of types, as its owner
// happened to choose them.
func withCategories(p binpack.Problem, rng *rand.Rand) binpack.Problem {
	p.Types, p.Items = slices.Clone(p.Types), slices.Clone(p.Items)
	var all []string
	for i := range p.Types {
		category := p.Types[i].Name[:1]
		p.Types[i].Provides = requirements.MustOf(requirements.In("category", category))
		if !slices.Contains(all, category) {
			all = append(all, category)
		}
	}
	for i := range p.Items {
		rng.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
		p.Items[i].Requires = requirements.AnyOf(requirements.MustOf(requirements.In("category", all[:(len(all)+1)/2]...)))
	}
	return p
}

// withApart puts every fifth shape into a service that keeps its pods on different nodes.
func withApart(p binpack.Problem, rng *rand.Rand) binpack.Problem {
	p.Items = slices.Clone(p.Items)
	for i := range p.Items {
		if rng.IntN(5) == 0 {
			p.Items[i].Tags = []string{p.Items[i].Name}
			p.Items[i].Limits = []binpack.Limit{{Tag: p.Items[i].Name, Max: 1}}
		}
	}
	return p
}
