// Package deprovision decides which nodes to give back: empty nodes, nodes past their maximum age,
// nodes that would not be bought again, and nodes that cost more than their pods need. It works on
// a snapshot and a moment, and changes nothing itself.
//
// [Rank] lists the nodes in the order in which they should go. For each it gives the price, the
// disruption of emptying it, an upper bound of the saving, and its blockers. It needs only the
// snapshot.
//
// Package plan decides which nodes go and where their pods go. Package policy has other objectives
// and rankers than the defaults. Each of the other packages answers one question:
//
//   - eligibility: which nodes may go
//   - eviction: what the pods allow
//   - budget: what the pools allow
//   - drift: which nodes have drifted
//   - drain: how a node is emptied
//   - execution: how the commands of a plan are carried out
//   - deletioncost: which pods should go first when workloads are scaled down
package deprovision

import (
	"errors"
	"fmt"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Cluster is a cluster at one moment. It is plain data and is only read.
type Cluster struct {
	// Nodes are all nodes of the cluster, including those that belong to no pool.
	Nodes []eligibility.Node
	// Pools must include every pool that a node refers to.
	Pools []nodepool.NodePool
	// PodDisruptionBudgets are the budgets of all namespaces.
	PodDisruptionBudgets []*policyv1.PodDisruptionBudget
	// Groups are the sets of pods that run only together.
	Groups []eviction.Group
	// Interruptions are the nodes whose machines the cloud takes back.
	Interruptions []Interruption
	// Now is the moment to plan for.
	Now time.Time
}

// Interruption is a node whose machine the cloud takes back.
type Interruption struct {
	Node string
	// Deadline is when the machine goes. The zero time means that it may go at any moment.
	Deadline time.Time
	// Force says that the machine does not respond, so it cannot be drained.
	Force bool
	// Why is the cloud's message.
	Why string
}

// Errors of [Cluster.Validate] that do not name a node.
var (
	// ErrNoTime says that Now is not set, as in the zero Cluster. Ages and budgets would be wrong.
	ErrNoTime = errors.New("deprovision: Cluster.Now is not set")
	// ErrNoNode says that an element of Nodes has no Node.
	ErrNoNode = errors.New("deprovision: a node of the cluster is nil")
)

// MissingPoolError says that a node's pool is not in Cluster.Pools, so its budgets are unknown.
type MissingPoolError struct{ Node, Pool string }

// Error names the node and its pool.
func (e *MissingPoolError) Error() string {
	return fmt.Sprintf("deprovision: node %s is of pool %q, which is not in Cluster.Pools", e.Node, e.Pool)
}

// DuplicateNodeError says that two nodes of the cluster have the same name.
type DuplicateNodeError struct{ Node string }

// Error returns a sentence with the name.
func (e *DuplicateNodeError) Error() string {
	return fmt.Sprintf("deprovision: two nodes of the cluster have the name %s", e.Node)
}

// Validate returns the first of [ErrNoTime], [ErrNoNode], [*DuplicateNodeError] and
// [*MissingPoolError] that applies, an error that names a nil pod or PodDisruptionBudget, a pool of
// the same kind and name as another, or a group that has no meaning, or nil. A cluster without nodes
// is valid.
func (c *Cluster) Validate() error {
	if c.Now.IsZero() {
		return ErrNoTime
	}
	known := make(map[string]bool, len(c.Pools))
	for i := range c.Pools { // a Provisioner may share a NodePool's name during a migration
		same := func(p nodepool.NodePool) bool { return p.Kind == c.Pools[i].Kind && p.Name == c.Pools[i].Name }
		if slices.ContainsFunc(c.Pools[:i], same) {
			return fmt.Errorf("deprovision: two pools of the cluster have the name %s", c.Pools[i].Name)
		}
		known[c.Pools[i].Name] = true
	}
	if k := slices.Index(c.PodDisruptionBudgets, nil); k >= 0 {
		return fmt.Errorf("deprovision: PodDisruptionBudgets[%d] is nil; leave it out", k)
	}
	names := make(map[string]bool, len(c.Nodes))
	for i := range c.Nodes {
		switch n := &c.Nodes[i]; {
		case n.Node == nil:
			return ErrNoNode
		case names[n.Name()]:
			return &DuplicateNodeError{n.Name()}
		case n.Pool != nil && !known[n.Pool.Name]:
			return &MissingPoolError{n.Name(), n.Pool.Name}
		}
		if k := slices.Index(c.Nodes[i].Pods, nil); k >= 0 {
			return fmt.Errorf("deprovision: node %s: Pods[%d] is nil; leave it out", c.Nodes[i].Name(), k)
		}
		names[c.Nodes[i].Name()] = true
	}
	return checkGroups(c.Groups)
}

// checkGroups returns an error for the first group that has no meaning: one without Name or
// Member, one named like another, or one with a negative minimum. It returns nil if there is none.
func checkGroups(groups []eviction.Group) error {
	known := map[string]bool{}
	for i := range groups {
		switch g := &groups[i]; {
		case g.Name == "":
			return fmt.Errorf("deprovision: group %d has no name", i)
		case known[g.Name]:
			return fmt.Errorf("deprovision: two groups have the name %s, and names must be unique", g.Name)
		case g.Member == nil:
			return fmt.Errorf("deprovision: group %s: Member is nil; it must say which pods are in the group", g.Name)
		case g.Minimum < 0:
			return fmt.Errorf("deprovision: group %s: Minimum is %d, must not be negative; 0 means all running pods", g.Name, g.Minimum)
		}
		known[groups[i].Name] = true
	}
	return nil
}
