// Package nodekind groups the nodes that a pool can buy, by their daemons and by the labels that
// spreads and affinities of pods distinguish.
package nodekind

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/once"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// SomeHost returns a hostname for a new node. It is not a valid label value, so no pod can ask for
// it.
func SomeHost() requirements.Set {
	return requirements.MustOf(requirements.In(corev1.LabelHostname, "a new node"))
}

// Daemon is a DaemonSet whose pods tolerate the taints of the pool.
type Daemon struct {
	Number   int // its position in the problem
	Required requirements.Alternatives
}

// Kind is the daemons of a node, by number, and its pseudo-labels; see [topology.Problem.Sides].
type Kind struct {
	Daemons []int
	Sides   requirements.Set
}

// Kinds has what depends on the labels of a pool's node. It is computed once for all offerings that
// agree in the labels that daemons and filters look at. It is safe for concurrent use.
type Kinds struct {
	topology *topology.Problem
	host     requirements.Set
	always   []int // daemons on all nodes of the pool
	depends  []Daemon
	keys     requirements.Keys
	known    once.Map[string, Kind] // by the labels of shape and offering that have these keys
}

// New returns the kinds of a pool.
func New(daemons []Daemon, t *topology.Problem) *Kinds {
	k := &Kinds{topology: t, host: SomeHost()}
	if t.Splits() {
		k.keys = t.Keys()
	}
	for _, d := range daemons {
		if d.Required.Len() == 1 && d.Required.At(0).IsAnything() {
			k.always = append(k.always, d.Number)
			continue
		}
		k.depends, k.keys = append(k.depends, d), k.keys.Union(d.Required.Keys())
	}
	return k
}

// Of returns the kind of the nodes of an offering.
func (k *Kinds) Of(shape, offering requirements.Set) Kind {
	if len(k.depends) == 0 && !k.topology.Splits() {
		return Kind{Daemons: k.always}
	}
	shape, offering = shape.Restrict(k.keys), offering.Restrict(k.keys)
	return k.known.Of(string(offering.AppendKey(shape.AppendKey(nil))), func() Kind { return k.make(shape, offering) })
}

func (k *Kinds) make(shape, offering requirements.Set) Kind {
	out := Kind{Daemons: slices.Clip(k.always)}
	node, err := shape.Intersect(offering)
	if err != nil {
		return out
	}
	hosted, err := node.Intersect(k.host)
	if err != nil {
		return out
	}
	for _, d := range k.depends {
		if d.Required.Compatible(hosted, requirements.Keys{}) {
			out.Daemons = append(out.Daemons, d.Number)
		}
	}
	out.Sides = k.topology.Sides(node, out.Daemons)
	return out
}

// Chosen chooses one value for each label that set requires of a node. It leaves out pseudo-labels.
func Chosen(set requirements.Set) map[string]string {
	out := make(map[string]string, set.Len())
	for r := range set.All() {
		if r.AllowsAbsent() || r.Key() == taints.Key || r.Key() == requirements.NodeNameKey || topology.IsPseudo(r.Key()) {
			continue
		}
		if v, ok := topology.Chosen(r); ok {
			out[r.Key()] = v
		}
	}
	return out
}

// Open returns the labels that neither type nor offering decides, without the pool's name.
func Open(labels map[string]string, typ *instancetypes.InstanceType, o *instancetypes.Offering) requirements.Set {
	open := map[string]string{}
	for key, value := range labels {
		if key != nodepool.LabelKey && !decides(&o.Requirements, key) && !decides(&typ.Requirements, key) {
			open[key] = value
		}
	}
	return requirements.FromLabels(open)
}

func decides(s *requirements.Set, key string) bool {
	if !s.Has(key) { // cheaper than Get of a key that is missing
		return false
	}
	_, ok := s.Get(key).Single()
	return ok
}
