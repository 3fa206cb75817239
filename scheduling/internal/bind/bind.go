package bind

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// Filter is a filter of kube-scheduler.
type Filter uint8

// The filters, in the order in which they are checked. None refuses no pod.
const (
	None     Filter = iota
	Labels          // labels or taints
	Free            // free capacity
	Ports           // host ports
	Interpod        // constraints between pods
	Other           // one that the caller knows
)

// Refusal says which filter refuses a pod on a node. The zero value means none.
type Refusal struct {
	By Filter
	// Resource is the first resource that is short, Port is the taken port, Violation the
	// constraint, and Other what another filter says.
	Resource  int
	Port      hostport.Port
	Violation interpod.Violation
	Other     string
}

// OK reports whether the node accepts the pod.
func (r Refusal) OK() bool { return r.By == None }

// Words describes a refusal. The resources are those of needs.
func (c *Cluster) Words(r Refusal, resources []corev1.ResourceName) string {
	switch r.By {
	case None:
		return ""
	case Labels:
		return "its node excludes it by labels or taints"
	case Free:
		return fmt.Sprintf("its node does not have enough %s", resources[r.Resource])
	case Ports:
		return r.Port.String() + " is taken on its node"
	case Other:
		return r.Other
	case Interpod: // below
	}
	g := &c.Index.Groups()[r.Violation.Group]
	key := c.Index.Keys()[g.Key]
	switch r.Violation.Rule {
	case interpod.SpreadRule:
		return fmt.Sprintf("spread of %s over %s", g.What, key)
	case interpod.AffinityRule:
		return fmt.Sprintf("affinity to %s by %s", g.What, key)
	case interpod.AntiAffinityRule:
		return fmt.Sprintf("anti-affinity to %s by %s", g.What, key)
	case interpod.KeptRule:
		return fmt.Sprintf("other pods that keep away from %s by %s", g.What, key)
	case interpod.RatioRule:
		return fmt.Sprintf("ratio %s", g.Ratio)
	case interpod.None:
	}
	return ""
}

// Check returns the refusal of one more pod of the class on a node.
func (c *Cluster) Check(cl *Class, n *Node) Refusal {
	if r := c.Alone(cl, n); !r.OK() {
		return r
	}
	if v := c.Between(&cl.Constraints, n.Values, nil); !v.OK() {
		return Refusal{By: Interpod, Violation: v}
	}
	return Refusal{}
}

// Between returns the first constraint between pods that refuses one more pod at these values; see
// [interpod.State.Check].
func (c *Cluster) Between(x *interpod.Constraints, values []int32, skip []bool) interpod.Violation {
	return c.State.Check(x, values, skip, c.Low)
}

// Alone is [Cluster.Check] without constraints between pods.
func (c *Cluster) Alone(cl *Class, n *Node) Refusal {
	if !c.Suits(cl, n.LabelClass) {
		return Refusal{By: Labels}
	}
	if i := cl.short(n); i >= 0 {
		return Refusal{By: Free, Resource: i}
	}
	if i := slices.IndexFunc(cl.Ports, n.taken); i >= 0 {
		return Refusal{By: Ports, Port: cl.Ports[i]}
	}
	return Refusal{}
}

// Exceeds reports whether a node has not enough free capacity for the class.
func (cl *Class) Exceeds(n *Node) bool { return cl.short(n) >= 0 }

// short returns the first resource of which a node has not enough; -1 if there is none.
func (cl *Class) short(n *Node) int {
	for i, q := range cl.Need {
		if q > n.Free[i] && q > 0 {
			if q -= cl.attached(n, i); q > n.Free[i] && q > 0 {
				return i
			}
		}
	}
	return -1
}

func (n *Node) taken(p hostport.Port) bool { return slices.ContainsFunc(n.Ports, p.Conflicts) }

// attached returns how much of a resource a pod does not take because its volumes are already
// attached.
func (cl *Class) attached(n *Node, resource int) int64 {
	out := int64(0)
	for _, s := range cl.Shared {
		if s.Resource == resource && slices.Contains(n.Shared, s.Name) {
			out++
		}
	}
	return out
}

// Add binds a pod of the class to a node without [Cluster.Check].
func (c *Cluster) Add(cl *Class, n *Node, terminating bool) {
	c.Take(cl, n)
	c.Count(cl, n, terminating, 1)
}

// Take is [Cluster.Add] without the counts of constraints between pods.
func (c *Cluster) Take(cl *Class, n *Node) {
	for i, q := range cl.Need {
		n.Free[i] -= q - cl.attached(n, i)
	}
	for _, s := range cl.Shared {
		if !slices.Contains(n.Shared, s.Name) {
			n.Shared = append(n.Shared, s.Name)
		}
	}
	n.Ports = append(n.Ports, cl.Ports...)
}

// Release undoes the last [Cluster.Take] on the node. The class must not share volumes.
func (c *Cluster) Release(cl *Class, n *Node) {
	for i, q := range cl.Need {
		n.Free[i] += q
	}
	n.Ports = n.Ports[:len(n.Ports)-len(cl.Ports)]
}

// Count adds a pod to the counts of constraints between pods; sign -1 subtracts it. A terminating
// pod may be gone at any moment.
func (c *Cluster) Count(cl *Class, n *Node, terminating bool, sign int32) {
	if len(cl.MemberOf)+len(cl.Terms) == 0 {
		return
	}
	c.State.Add(&cl.Constraints, n.Values, c.passes(n), terminating, sign)
	if c.Low != nil && !terminating {
		c.Low.Add(&cl.Constraints, n.Values, c.passes(n), false, sign)
	}
}

// CountMoving is [Cluster.Count] for a pod that may or may not be on the node, at these values. If
// the pod moves within a domain, one of its two places must have the value [interpod.Absent] there;
// see [Cluster.Elsewhere].
func (c *Cluster) CountMoving(cl *Class, n *Node, values []int32, terminating bool, sign int32) {
	c.State.Add(&cl.Constraints, values, c.passes(n), terminating, sign)
}

// CountNode counts the node in its domains of spreads; sign -1 undoes that.
func (c *Cluster) CountNode(n *Node, sign int32) {
	c.State.AddNode(n.Values, c.passes(n), sign)
	if c.Low != nil {
		c.Low.AddNode(n.Values, c.passes(n), sign)
	}
}

// CountMovingNode is [Cluster.CountNode] for a node that may or may not be there.
func (c *Cluster) CountMovingNode(n *Node, sign int32) {
	if c.Low != nil {
		c.Low.AddNode(n.Values, c.passes(n), sign)
	}
}

// Elsewhere returns the values of a node without those of another one. If a node filter
// distinguishes the two nodes, it returns all its values.
func (c *Cluster) Elsewhere(n, other *Node) []int32 {
	here, there := c.passes(n), c.passes(other)
	for f := range c.Index.Filters() {
		if here(int32(f)) != there(int32(f)) {
			return n.Values
		}
	}
	out := slices.Clone(n.Values)
	for k, v := range other.Values {
		if v == out[k] {
			out[k] = interpod.Absent
		}
	}
	return out
}

// Unreserved returns the free capacity of a node that keeps room for these DaemonSets, without the
// needs of those that a taken port or the anti-affinity of counted pods keeps away. Unlike missing
// affinity or a spread, no pod that is bound later changes that.
func (c *Cluster) Unreserved(daemons []*Class, n *Node) []int64 {
	free := slices.Clone(n.Free)
	for _, d := range daemons {
		rule := c.State.Check(&d.Constraints, n.Values, nil, nil).Rule
		if rule == interpod.AntiAffinityRule || rule == interpod.KeptRule || slices.ContainsFunc(d.Ports, n.taken) {
			for i, q := range d.Need {
				free[i] = Sum(free[i], q)
			}
		}
	}
	return free
}

// StartDaemons binds the pods of DaemonSets to a node whose free capacity is without their needs.
// It returns those that constraints between pods count. A pod does not start if it does not fit,
// its port is taken, or other pods keep it away; its need stays reserved. Late pods are those that
// do not fit. They start as soon as there is room, for example after another pod ends, so their
// ports stay reserved, too.
func (c *Cluster) StartDaemons(daemons []*Class, n *Node) (counted, late []*Class) {
	if len(daemons) == 0 {
		return nil, nil
	}
	free := slices.Clone(n.Free)
	for _, d := range daemons {
		for i, q := range d.Need {
			free[i] = Sum(free[i], q)
		}
	}
	for _, d := range daemons {
		if !Fits(d.Need, free) {
			late, n.Ports = append(late, d), append(n.Ports, d.Ports...)
			continue
		}
		if slices.ContainsFunc(d.Ports, n.taken) || !c.State.Check(&d.Constraints, n.Values, nil, nil).OK() {
			continue
		}
		for i, q := range d.Need {
			free[i] -= q
		}
		n.Ports = append(n.Ports, d.Ports...)
		if len(d.MemberOf)+len(d.Terms) > 0 {
			c.Count(d, n, false, 1)
			counted = append(counted, d)
		}
	}
	return counted, late
}

// CountLate counts the late daemons of nodes as pods that may or may not be there: kube-scheduler
// may, now or later, see room that we do not see.
func (c *Cluster) CountLate(late [][]*Class, node func(int) *Node) {
	for i, daemons := range late {
		for _, d := range daemons {
			if len(d.MemberOf)+len(d.Terms) == 0 {
				continue
			}
			if c.Low == nil {
				c.Low = c.State.Clone()
			}
			c.CountMoving(d, node(i), node(i).Values, false, 1)
		}
	}
}

// Fits reports whether free capacity covers a need. A negative amount does not matter to a need of
// 0.
func Fits(need, free []int64) bool {
	for i, q := range need {
		if q > free[i] && q > 0 {
			return false
		}
	}
	return true
}

// Sum returns the sum of two amounts, at most the largest number.
func Sum(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
