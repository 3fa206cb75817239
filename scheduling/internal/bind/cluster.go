// Package bind puts pods on named nodes, one after the other, where kube-scheduler's filters let them: by labels, taints, free
// capacity, host ports, volumes, and constraints between pods. The last check of a plan and questions about one snapshot share it. It
// knows nothing of how pods are planned: no domains, no tags and limits, no bundles.
package bind

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
)

// Class is pods that are alike, or the pod of a DaemonSet.
type Class struct {
	// Constraints between pods are the required ones alone, and the groups that count these pods.
	interpod.Constraints
	// Number tells it from the other classes of a cluster, which count from 0. It does not matter for DaemonSets.
	Number int
	// Required and Tolerations are what it asks of labels and puts up with.
	Required    requirements.Alternatives
	Tolerations []corev1.Toleration
	// Need is what one pod takes, by resource, and Ports its host ports.
	Need  []int64
	Ports []hostport.Port
	// Shared are the volumes that pods on one node attach once, however many use them; Need has one for each.
	Shared []Shared
}

// Shared is a volume, and the resource that counts it.
type Shared struct {
	Name     string
	Resource int
}

// Node is a node with what is free there after all that is bound to it.
type Node struct {
	// Kind is the same for nodes that no class can tell apart by labels and taints.
	Kind int32
	// Values are those of the keys of the index.
	Values []int32
	// Free is what is left, Ports are the host ports taken, and Shared the volumes attached.
	Free   []int64
	Ports  []hostport.Port
	Shared []string
}

// kind is what the labels that anybody asks about and the taints say of nodes.
type kind struct {
	labels map[string]string
	taints []corev1.Taint
}

// answer is what is known of a question. The zero value is nothing.
type answer uint8

const (
	unknown answer = iota
	yes
	no
)

func answered(ok bool) answer {
	if ok {
		return yes
	}
	return no
}

// Cluster is what nodes have in common: their kinds, and the counts behind constraints between pods. It is not safe for concurrent use.
type Cluster struct {
	Index  *interpod.Index
	Values *interpod.Values
	// State counts the pods. It is nil until the cluster is started.
	State *interpod.State
	// Low is nil where every pod stays until it is removed. Otherwise State counts the most pods that may be at a place, over the
	// fewest nodes, and Low the fewest pods over the most nodes: what moves by itself is in State wherever it may be, and not in
	// Low. A pod is then let in only if it would be whenever the others move.
	Low *interpod.State

	asked  requirements.Keys
	kinds  []kind
	kindAt map[string]int32
	suits  [][]answer // by class and kind
	passed [][]answer // by node filter and kind
	text   []byte     // reused
}

// New is a cluster without nodes. The index must know the constraints of all classes; asked are the label keys that some class asks
// about.
func New(x *interpod.Index, asked requirements.Keys) *Cluster {
	for _, f := range x.Filters() {
		asked = asked.Union(f.Asked.Keys())
	}
	return &Cluster{Index: x, Values: &interpod.Values{}, asked: asked, kindAt: map[string]int32{}}
}

// Start begins to count. The values of nodes that were described before are known to be all that there are, which only matters for speed.
func (c *Cluster) Start() { c.State = interpod.NewState(c.Index, c.Values) }

// Clone is a copy that changes by itself.
func (c *Cluster) Clone() *Cluster {
	out := *c
	if c.Low != nil {
		out.Low = c.Low.Clone()
	}
	out.State, out.kinds, out.kindAt, out.text = c.State.Clone(), slices.Clip(c.kinds), maps.Clone(c.kindAt), nil
	out.suits, out.passed = slices.Clone(c.suits), slices.Clone(c.passed)
	for _, table := range [][][]answer{out.suits, out.passed} {
		for i, row := range table {
			table[i] = slices.Clone(row)
		}
	}
	return &out
}

// Describe fills in what labels and taints say of a node. The labels are read, and not kept.
func (c *Cluster) Describe(n *Node, labels map[string]string, list []corev1.Taint) {
	n.Values = c.Values.At(c.Index, labels)
	text := c.text[:0]
	for k := range c.asked.All() {
		if v, ok := labels[k]; ok {
			text = append(append(append(append(text, k...), '='), v...), ',')
		}
	}
	for i := range list {
		text = append(append(text, '|'), taints.Text(list[i])...)
	}
	c.text = text
	id, ok := c.kindAt[string(text)]
	if !ok {
		id = int32(len(c.kinds))
		c.kindAt[string(text)] = id
		own := map[string]string{}
		for k := range c.asked.All() {
			if v, ok := labels[k]; ok {
				own[k] = v
			}
		}
		c.kinds = append(c.kinds, kind{own, list})
	}
	n.Kind = id
}

// Labels are those of nodes of a kind that some class asks about. They must not be modified.
func (c *Cluster) Labels(kind int32) map[string]string { return c.kinds[kind].labels }

// Suits reports whether labels and taints let pods of the class onto nodes of a kind.
func (c *Cluster) Suits(cl *Class, kind int32) bool {
	known := at(&c.suits, cl.Number, int(kind))
	if *known == unknown {
		k := &c.kinds[kind]
		*known = answered(cl.Required.Matches(k.labels) && taints.Tolerates(cl.Tolerations, k.taints))
	}
	return *known == yes
}

// at is the place of an answer in a table, which grows as it must.
func at(table *[][]answer, i, j int) *answer {
	for i >= len(*table) {
		*table = append(*table, nil)
	}
	row := &(*table)[i]
	for j >= len(*row) {
		*row = append(*row, unknown)
	}
	return &(*row)[j]
}

// passes says which node filters of spreads a node passes.
func (c *Cluster) passes(n *Node) func(filter int32) bool {
	return func(filter int32) bool {
		f := &c.Index.Filters()[filter]
		for _, k := range f.Keys {
			if n.Values[k] < 0 {
				return false
			}
		}
		known := at(&c.passed, int(filter), int(n.Kind))
		if *known == unknown {
			k := &c.kinds[n.Kind]
			*known = answered(f.Asked.Matches(k.labels) && (!f.HonorTaints || taints.Tolerates(f.Tolerations, k.taints)))
		}
		return *known == yes
	}
}
