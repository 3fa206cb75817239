package topology

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// class is a class of the input and its constraints.
type class struct {
	*Class
	all  interpod.Constraints // hard and soft
	soft []Preference         // in the order of giving up
}

// group is a group of the index.
type group struct {
	key      string
	keyID    int32
	hostname bool   // the key is the hostname
	filter   int32  // index into filters; -1 for none
	spread   bool   // it is a spread's
	tag      string // identifies the group if it acts within a node
	what     string // describes its pods
	daemons  string // the pseudo-label of nodes that meet affinity to it, if it has pods of DaemonSets; see [Problem.Sides]
	members  []int  // classes, ascending
}

// read turns the constraints of a class into groups and filters.
func (p *Problem) read(c *class) error {
	var err error
	pod := c.Pod
	if p.ignoresSoft {
		pod = hardOnly(pod)
	}
	if c.all, err = p.index.Read(pod, c.Asked); err != nil {
		return err
	}
	for i := len(p.filters); i < len(p.index.Filters()); i++ {
		p.filters = append(p.filters, newFilter(i, &p.index.Filters()[i], p.index.Keys(), c.Tolerated))
	}
	return nil
}

// hardOnly returns the pod without preferences about other pods.
func hardOnly(pod *corev1.Pod) *corev1.Pod {
	out := *pod
	out.Spec.TopologySpreadConstraints = slices.DeleteFunc(slices.Clone(out.Spec.TopologySpreadConstraints), func(s corev1.TopologySpreadConstraint) bool {
		return s.WhenUnsatisfiable == corev1.ScheduleAnyway
	})
	if a := out.Spec.Affinity; a != nil {
		own := *a
		if own.PodAffinity != nil {
			own.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution}
		}
		if own.PodAntiAffinity != nil {
			own.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution}
		}
		out.Spec.Affinity = &own
	}
	return &out
}

// readRunning reads the required anti-affinity of running pods, by node.
func (p *Problem) readRunning(nodes []Node) [][]interpod.Constraints {
	out := make([][]interpod.Constraints, len(nodes))
	for n := range nodes {
		out[n] = make([]interpod.Constraints, len(nodes[n].Running))
		for k, pod := range nodes[n].Running {
			out[n][k] = p.index.Keeps(pod)
		}
	}
	return out
}

// makeGroups copies the groups of the index, adds those of together, and finds the members of all.
// Classes that must be together have affinity to a group of their own.
func (p *Problem) makeGroups(together []Together) {
	custom := make([]int32, len(together))
	for i, t := range together {
		custom[i] = p.index.Custom(t.Key, t.Name, "together "+t.Name)
	}
	for _, g := range p.index.Groups() {
		key := p.index.Keys()[g.Key]
		p.groups = append(p.groups, group{
			key: key, keyID: g.Key, hostname: key == corev1.LabelHostname, filter: g.Filter, spread: g.Spread, tag: "pods " + g.Text, what: g.What,
		})
	}
	p.kept = make([]bool, len(p.groups))
	for i := range p.classes {
		c := &p.classes[i]
		p.index.Join(&c.all, c.Pod)
		c.all.MemberOf = slices.Clone(c.all.MemberOf)
	}
	for i, t := range together {
		for _, k := range t.Classes {
			c := &p.classes[k]
			c.all.MemberOf = append(c.all.MemberOf, custom[i])
			// It is not Hard: required terms of a manifest are either all met by one pod or not
			// met.
			c.all.Terms = append(c.all.Terms, interpod.Term{Group: custom[i], Self: true, Weight: always})
		}
	}
	for i := range p.classes {
		c := &p.classes[i]
		slices.Sort(c.all.MemberOf)
		for _, g := range c.all.MemberOf {
			p.groups[g].members = append(p.groups[g].members, i)
		}
	}
	for _, g := range p.groups {
		if g.filter >= 0 {
			f := &p.filters[g.filter]
			f.split = f.split || slices.ContainsFunc(g.members, func(m int) bool { return f.side(p.classes[m].Required) == "" })
		}
	}
}

// readDaemons reads the constraints of the pods that run on nodes to buy, and marks the groups that
// affinity finds on such nodes. A class that is in the group itself may begin a domain without
// them.
func (p *Problem) readDaemons(pods []*corev1.Pod) {
	for i, pod := range pods {
		d := &p.daemons[i]
		p.index.Join(d, pod)
		d.MemberOf = slices.DeleteFunc(slices.Clone(d.MemberOf), func(g int32) bool { return p.groups[g].spread })
	}
	for i := range p.classes {
		for _, t := range p.classes[i].all.Terms {
			if t.Hard && !t.Anti && !t.Self && slices.ContainsFunc(p.daemons, func(d interpod.Constraints) bool { return slices.Contains(d.MemberOf, t.Group) }) {
				p.groups[t.Group].daemons = fmt.Sprintf("%s%d)", daemonPrefix, t.Group)
			}
		}
	}
	for i := range p.nodes {
		if all, err := p.nodes[i].Labels.Intersect(p.Sides(p.nodes[i].Labels, nil)); err == nil { // the labels are new
			p.nodes[i].Labels = all
		}
	}
}

// always is the weight of a term that is never given up although it is not Hard.
const always = 1 << 20

// countRunning counts running pods by group. Groups by hostname become tags and limits of the node.
func (p *Problem) countRunning(together []Together) {
	own := len(p.groups) - len(together) // the first of their groups

	p.nodeValues = make([][]int32, len(p.nodes))
	for i := range p.nodes {
		p.nodeValues[i] = p.valuesOf(&p.nodes[i])
	}
	p.running = interpod.NewState(p.index, p.values)
	for i := range p.nodes {
		node := &p.nodes[i]
		node.Tags, node.Limits = slices.Clip(node.Tags), slices.Clip(node.Limits) // the caller owns the slices
		passes := func(filter int32) bool { return p.filters[filter].passes(node.Labels) }
		tags, limits := len(node.Tags), len(node.Limits)
		for k, pod := range node.Running {
			c := &p.keeps[i][k]
			c.MemberOf = p.index.MemberOf(pod)
			for i, t := range together {
				if t.Running != nil && t.Running(pod) {
					c.MemberOf = append(slices.Clip(c.MemberOf), int32(own+i))
				}
			}
			terminating := pod.DeletionTimestamp != nil
			p.running.Add(c, p.nodeValues[i], passes, terminating, 1)
			for _, g := range c.MemberOf {
				if gr := &p.groups[g]; gr.hostname && (!gr.spread || !terminating) && (gr.filter < 0 || passes(gr.filter)) {
					node.Tags = append(node.Tags, gr.tag)
				}
			}
			for _, t := range c.Terms {
				p.kept[t.Group] = true
				if p.groups[t.Group].hostname {
					node.Limits = append(node.Limits, Limit{p.groups[t.Group].tag, 0})
				}
			}
			if k < len(node.Running)-node.Starting {
				node.certain = certain{node.Tags[tags:len(node.Tags):len(node.Tags)], node.Limits[limits:len(node.Limits):len(node.Limits)]}
			}
		}
	}
}

// valuesOf returns the values of a node, by key of the index.
func (p *Problem) valuesOf(n *Node) []int32 {
	out := make([]int32, len(p.index.Keys()))
	for k, key := range p.index.Keys() {
		out[k] = interpod.Absent
		if v, ok := n.value(key); ok {
			out[k] = p.values.Of(int32(k), v)
		}
	}
	return out
}

// divide counts the pods of each ratio.
func (p *Problem) divide() {
	total := map[int32]int{}
	for i := range p.classes {
		for _, g := range p.classes[i].all.Ratios {
			total[g] += p.classes[i].Count
		}
	}
	for i := range p.nodes {
		for _, pod := range p.nodes[i].Running {
			if g, ok := p.index.RatioOf(pod); ok && pod.DeletionTimestamp == nil {
				total[g]++
			}
		}
	}
	p.index.Divide(total)
}

// leaving is a node that takes no pods and will be gone. Until then kube-scheduler counts its pods,
// and it is a domain of spreads.
type leaving struct {
	Node
	pods   []interpod.Constraints // their anti-affinity and the groups that they are in
	values []int32
}

func (p *Problem) readLeaving(nodes []Node) {
	keeps := p.readRunning(nodes)
	for i := range nodes {
		p.leaving = append(p.leaving, leaving{Node: nodes[i], pods: keeps[i]})
	}
}

// placeLeaving finds the groups and values that leaving nodes count for.
func (p *Problem) placeLeaving() {
	for i := range p.leaving {
		n := &p.leaving[i]
		n.values = p.valuesOf(&n.Node)
		for k, pod := range n.Running {
			n.pods[k].MemberOf = p.index.MemberOf(pod)
		}
	}
}

// Leaves reports whether leaving nodes affect where pods may go: a constraint counts one of their
// pods or keeps pods from it, or they are domains of a spread.
func (p *Problem) Leaves() bool {
	for i := range p.leaving {
		for k := range p.leaving[i].pods {
			if c := &p.leaving[i].pods[k]; len(c.MemberOf)+len(c.Terms) > 0 {
				return true
			}
		}
	}
	if len(p.leaving) == 0 {
		return false
	}
	for i := range p.groups {
		if p.groups[i].spread && !p.withinNode[i] {
			return true
		}
	}
	return false
}
