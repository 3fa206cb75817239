package bind

import (
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// Filter is the part of kube-scheduler that keeps a pod from a node.
type Filter uint8

// The filters in the order in which they are asked. None refuses nothing.
const (
	None     Filter = iota
	Labels          // labels or taints
	Free            // free capacity
	Ports           // host ports
	Interpod        // constraints between pods
)

// Refusal says what keeps a pod from a node. The zero value is nothing.
type Refusal struct {
	By Filter
	// Resource is the first that is short, Port the one that is taken, Violation the constraint.
	Resource  int
	Port      hostport.Port
	Violation interpod.Violation
}

// OK reports that nothing does.
func (r Refusal) OK() bool { return r.By == None }

// Check is what keeps one more pod of the class from a node.
func (c *Cluster) Check(cl *Class, n *Node) Refusal {
	if r := c.Alone(cl, n); !r.OK() {
		return r
	}
	if v := c.State.Check(&cl.Constraints, n.Values, nil); !v.OK() {
		return Refusal{By: Interpod, Violation: v}
	}
	return Refusal{}
}

// Alone is [Cluster.Check] without constraints between pods.
func (c *Cluster) Alone(cl *Class, n *Node) Refusal {
	if !c.Suits(cl, n.Kind) {
		return Refusal{By: Labels}
	}
	for i, q := range cl.Need {
		if q > n.Free[i] && q > 0 && q-cl.attached(n, i) > n.Free[i] {
			return Refusal{By: Free, Resource: i}
		}
	}
	if i := slices.IndexFunc(cl.Ports, n.taken); i >= 0 {
		return Refusal{By: Ports, Port: cl.Ports[i]}
	}
	return Refusal{}
}

func (n *Node) taken(p hostport.Port) bool { return slices.ContainsFunc(n.Ports, p.Conflicts) }

// attached is how much of a resource a pod need not take, for its volumes are attached already.
func (cl *Class) attached(n *Node, resource int) int64 {
	out := int64(0)
	for _, s := range cl.Shared {
		if s.Resource == resource && slices.Contains(n.Shared, s.Name) {
			out++
		}
	}
	return out
}

// Add binds a pod of the class to a node, whatever [Cluster.Check] says of it.
func (c *Cluster) Add(cl *Class, n *Node, terminating bool) {
	for i, q := range cl.Need {
		n.Free[i] -= q - cl.attached(n, i)
	}
	for _, s := range cl.Shared {
		if !slices.Contains(n.Shared, s.Name) {
			n.Shared = append(n.Shared, s.Name)
		}
	}
	n.Ports = append(n.Ports, cl.Ports...)
	c.Count(cl, n, terminating, 1)
}

// Remove takes the pod off that was added to the node last. Its class must not share volumes.
func (c *Cluster) Remove(cl *Class, n *Node, terminating bool) {
	for i, q := range cl.Need {
		n.Free[i] += q
	}
	n.Ports = n.Ports[:len(n.Ports)-len(cl.Ports)]
	c.Count(cl, n, terminating, -1)
}

// Count adds a pod to the counts of constraints between pods, or takes it off with sign -1. Nothing else changes.
func (c *Cluster) Count(cl *Class, n *Node, terminating bool, sign int32) {
	if len(cl.MemberOf)+len(cl.Terms) > 0 {
		c.State.Add(&cl.Constraints, n.Values, c.passes(n), terminating, sign)
	}
}

// CountNode makes the node a domain of spreads, or takes it off with sign -1.
func (c *Cluster) CountNode(n *Node, sign int32) { c.State.AddNode(n.Values, c.passes(n), sign) }

// StartDaemons binds the pods of DaemonSets to a node whose free capacity does not have what they take, and returns those that constraints
// between pods count. One for which there is no space, whose port is taken, or that other pods keep away does not start; the space
// that was left for it stays free.
func (c *Cluster) StartDaemons(daemons []*Class, n *Node) []*Class {
	if len(daemons) == 0 {
		return nil
	}
	free := slices.Clone(n.Free)
	for _, d := range daemons {
		for i, q := range d.Need {
			free[i] = Sum(free[i], q)
		}
	}
	var counted []*Class
	for _, d := range daemons {
		if !Fits(d.Need, free) || slices.ContainsFunc(d.Ports, n.taken) || !c.State.Check(&d.Constraints, n.Values, nil).OK() {
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
	return counted
}

// Fits reports whether what is free covers a need. What is short already does not matter to who needs none of it.
func Fits(need, free []int64) bool {
	for i, q := range need {
		if q > free[i] && q > 0 {
			return false
		}
	}
	return true
}

// Sum adds up amounts, and stops at the largest number there is.
func Sum(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
