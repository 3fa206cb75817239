// Package bind puts pods on named nodes, one after the other, if kube-scheduler's filters accept
// them: by labels, taints, free capacity, host ports, volumes, and constraints between pods. The
// verifier of plans and package whatif share it. It knows nothing of planning.
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

// Class is a set of indistinguishable pods, or the pod of a DaemonSet.
type Class struct {
	// Constraints are the required constraints between pods, and the groups that count these pods.
	interpod.Constraints
	// Number identifies the class; the classes of a cluster count from 0. DaemonSets do not need
	// one.
	Number int
	// Required is what it requires of labels.
	Required    requirements.Alternatives
	Tolerations []corev1.Toleration
	// Need is what one pod needs, by resource, and Ports are its host ports.
	Need  []int64
	Ports []hostport.Port
	// Shared are the volumes that are attached once for all pods of a node. Need counts each of
	// them.
	Shared []Shared
}

// Shared is a volume, and the resource that counts it.
type Shared struct {
	Name     string
	Resource int
}

// Node is a node with the pods bound to it.
type Node struct {
	// LabelClass is equal for nodes whose labels and taints are the same for all classes.
	LabelClass int32
	// Values are the node's values of the keys of the index.
	Values []int32
	// Free is the free capacity, Ports are the taken host ports, and Shared the attached volumes.
	Free   []int64
	Ports  []hostport.Port
	Shared []string
}

// labelClass is the relevant labels and the taints of nodes.
type labelClass struct {
	labels map[string]string
	taints []corev1.Taint
}

// Answers remembers answers to numbered questions: 1 for yes, -1 for no, and 0 for unknown. The
// zero value knows none.
type Answers []int8

// Of returns the answer to question i. The first time it calls ask.
func (a *Answers) Of(i int, ask func() bool) bool {
	for i >= len(*a) {
		*a = append(*a, 0)
	}
	known := &(*a)[i]
	if *known == 0 {
		if *known = -1; ask() {
			*known = 1
		}
	}
	return *known > 0
}

// Cluster is the label classes of nodes and the counts of constraints between pods. It is not safe
// for concurrent use.
type Cluster struct {
	Index  *interpod.Index
	Values *interpod.Values
	// State has the upper counts of pods. It is nil until the cluster is started.
	State *interpod.State
	// Low has the lower counts. It is nil if no pod or node moves by itself; see
	// [interpod.State.Check].
	Low *interpod.State

	asked  requirements.Keys
	labels *labelClasses
}

// labelClasses are numbered, and only ever added to.
type labelClasses struct {
	list   []labelClass
	at     map[string]int32
	suits  []Answers // by class and label class
	passed []Answers // by node filter and label class
	text   []byte    // reused
}

// New returns a cluster without nodes. The index must have the constraints of all classes; asked
// are the label keys that classes require.
func New(x *interpod.Index, asked requirements.Keys) *Cluster {
	for _, f := range x.Filters() {
		asked = asked.Union(f.Asked.Keys())
	}
	return &Cluster{Index: x, Values: &interpod.Values{}, asked: asked, labels: &labelClasses{at: map[string]int32{}}}
}

// Start creates the counts. It is faster if all nodes were described before.
func (c *Cluster) Start() { c.State = interpod.NewState(c.Index, c.Values) }

// Clone returns an independent copy.
func (c *Cluster) Clone() *Cluster {
	out, l := c.Fork(), c.labels
	out.labels = &labelClasses{list: slices.Clip(l.list), at: maps.Clone(l.at), suits: slices.Clone(l.suits), passed: slices.Clone(l.passed)}
	for _, table := range [][]Answers{out.labels.suits, out.labels.passed} {
		for i, row := range table {
			table[i] = slices.Clone(row)
		}
	}
	return out
}

// Fork returns a copy with counts of its own. It shares with the cluster what is known of labels, so
// no two goroutines may use both. It is much cheaper than [Cluster.Clone] if there are many classes.
func (c *Cluster) Fork() *Cluster {
	out := *c
	if c.Low != nil {
		out.Low = c.Low.Clone()
	}
	out.State = c.State.Clone()
	return &out
}

// Describe fills in the values and the label class of a node. It does not modify the labels.
func (c *Cluster) Describe(n *Node, labels map[string]string, list []corev1.Taint) {
	n.Values = c.Values.At(c.Index, labels)
	l := c.labels
	text := l.text[:0]
	for k := range c.asked.All() {
		if v, ok := labels[k]; ok {
			text = append(append(append(append(text, k...), '='), v...), ',')
		}
	}
	for i := range list {
		text = append(append(text, '|'), taints.Text(list[i])...)
	}
	l.text = text
	id, ok := l.at[string(text)]
	if !ok {
		id = int32(len(l.list))
		l.at[string(text)] = id
		own := maps.Clone(labels)
		maps.DeleteFunc(own, func(k, _ string) bool { return !c.asked.Contains(k) })
		l.list = append(l.list, labelClass{own, list})
	}
	n.LabelClass = id
}

// Labels returns the relevant labels of a label class, which must not be modified.
func (c *Cluster) Labels(class int32) map[string]string { return c.labels.list[class].labels }

// Suits reports whether labels and taints of a label class suit pods of the class.
func (c *Cluster) Suits(cl *Class, class int32) bool {
	return row(&c.labels.suits, cl.Number).Of(int(class), func() bool {
		k := &c.labels.list[class]
		return cl.Required.Matches(k.labels) && taints.Tolerates(cl.Tolerations, k.taints)
	})
}

// Tainted reports whether nodes of a label class have a PreferNoSchedule taint that pods of the
// class do not tolerate.
func (c *Cluster) Tainted(cl *Class, class int32) bool {
	_, bad := taints.Untolerated(c.labels.list[class].taints, cl.Tolerations, corev1.TaintEffectPreferNoSchedule)
	return bad
}

// row returns a row of a table, which grows to have it.
func row(table *[]Answers, i int) *Answers {
	for i >= len(*table) {
		*table = append(*table, nil)
	}
	return &(*table)[i]
}

// passes returns which node filters of spreads accept the node.
func (c *Cluster) passes(n *Node) func(filter int32) bool {
	return func(filter int32) bool {
		f := &c.Index.Filters()[filter]
		for _, k := range f.Keys {
			if n.Values[k] < 0 {
				return false
			}
		}
		return row(&c.labels.passed, int(filter)).Of(int(n.LabelClass), func() bool {
			k := &c.labels.list[n.LabelClass]
			return f.Asked.Matches(k.labels) && (!f.HonorTaints || taints.Tolerates(f.Tolerations, k.taints))
		})
	}
}
