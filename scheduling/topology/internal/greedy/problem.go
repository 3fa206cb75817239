// Package greedy places pods as Karpenter does: one at a time, the largest first, each on the first node that takes it,
// and nothing is taken back. Its plan is nobody's to buy. It says which pods such a planner has room for, and so who goes
// first where pods exclude each other.
//
// The rules are those of Karpenter v1.14 as far as they decide who is placed: existing nodes come before nodes to buy, those
// with fewer pods before fuller ones, and both before another node of the first pool that can hold the pod. A node to buy is
// no more decided than its pods need: a spread settles its domain, affinity and anti-affinity narrow it, and a pod that
// keeps others away counts in every domain that its node may still be in. Pods that find no place are tried again as long
// as anybody else finds one. A pool with limits offers what is within them, and a new node counts against them with the most that
// it may still be. Prices do not matter. What Karpenter does against kube-scheduler is done here, too, for such pods take others'
// places until they are refused.
package greedy

import "github.com/joinery-sdk/joinery/requirements"

// Problem is what there is to place, and where. It is not modified.
type Problem struct {
	Classes []Class
	Groups  []Group
	// Nodes are those that exist, in the order in which they are tried.
	Nodes []Node
	// Pools are in the order in which they are tried.
	Pools []Pool
	// Ties says which of several values that are as good as each other is taken, for Karpenter takes any: the first one (0), the
	// last one (1), or with larger numbers now this one, now that, always in the same way. The node of the first of a
	// kind may be in a second domain as well (0), is in no other (1), or now so, now so.
	Ties int
}

// Class is pods that are alike.
type Class struct {
	Requests []int64
	// Stages are what the pods ask, then the same with one preference after another given up.
	Stages []Stage
	// Groups are those that count the pods.
	Groups []int
	// Shared are those of Requests that pods on one node take together.
	Shared []Shared
}

// Shared is something that all pods on a node take one unit of a dimension for, however many of them use it.
type Shared struct {
	Name      string
	Dimension int
}

// Stage is what pods ask with some preferences given up.
type Stage struct {
	Required requirements.Alternatives
	// Asked is Required without what volumes and preferences add: it says over which values a spread looks.
	Asked   requirements.Alternatives
	Spreads []Spread
	Terms   []Term
	// Anew numbers what the nodes are whose pods a spread counts, as far as giving up has changed it: for each number a spread
	// begins to count anew when it is first asked, for Karpenter takes it for another one then.
	Anew int
	// Tags and Limits act within one node: the pods go only where it has no more things with a tag. Keeps are the limits that
	// hold for those who come later, too.
	Tags   []string
	Limits []Limit
	Keeps  []Limit
}

// Spread asks that a domain has no more pods of a group than the emptiest has, and the skew.
type Spread struct {
	Group, MaxSkew, MinDomains int
	Self                       bool // the pods are in the group
}

// Term is affinity to a group, or anti-affinity.
type Term struct {
	Group            int
	Anti, Hard, Self bool
}

// Limit allows a node at most Max things with a tag.
type Limit struct {
	Tag string
	Max int
}

// Group is pods that are counted by the values of a label.
type Group struct {
	Key string
	// Within says that the label is the hostname. Its members on a node are counted by the tag.
	Within bool
	Tag    string
	// Kept says that some pods must keep away from the group.
	Kept bool
	// Running are its pods that run, and Owners those that keep away from it, by value.
	Running, Owners map[string]int
	// Values are those that some node may have.
	Values []string
	// Filter is on which nodes pods count; the zero value is all.
	Filter requirements.Alternatives
}

// Node is an existing node.
type Node struct {
	Labels requirements.Set
	Free   []int64
	Tags   []string
	Limits []Limit
	Shared []string // names of what is in use there
}

// Pool is what one pool can buy.
type Pool struct {
	// Asks is what the pool asks of its nodes. Of labels that neither it nor their pods ask about a new node has none yet.
	Asks  requirements.Set
	Cells []Cell
	// Left is what its limits leave, in the dimensions of Size.Usage; none where it has no limits.
	Left []int64
}

// Cell is what can be bought under one set of labels.
type Cell struct {
	Labels requirements.Set
	// Sizes are all that is for sale; the cheapest that holds a node's pods says what the node is after all.
	Sizes []Size
}

// Size is an offering: its room, its price, and what it takes of what its pool's limits leave.
type Size struct {
	Room  []int64
	Price float64
	Usage []int64
}
