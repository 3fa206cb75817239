// Package requirements is the set algebra of label requirements: what a node must be.
//
// A [Requirement] constrains one label key. It denotes the set of values that the label may have;
// one member of that set can be "absent", a node without the label. A [Set] constrains many keys
// and denotes the nodes that satisfy all of its requirements. [Alternatives] is a union of Sets,
// like the OR-terms of a pod's node affinity.
//
// The algebra is exact. Requirements of one key form a Boolean algebra: intersection, union,
// complement, emptiness, subset and membership never approximate. Three values that are easily
// confused are different here:
//
//   - anything: the key is not constrained (the zero Set; NotIn with no values);
//   - absent: the label must not be there (DoesNotExist);
//   - impossible: nothing satisfies it (In a and In b together).
//
// In, Exists, Gt, Lt, Gte and Lte exclude absent. NotIn contains it, and DoesNotExist contains
// nothing else. kube-scheduler gives the operators of node affinity the same meanings.
//
// # Integers
//
// Gt, Lt, Gte and Lte compare canonical decimal integers from 0 to 2^63-1: "0", "7", "42". A value
// such as "007" or "7.0" is a word, not a number, and no bound contains it. Here the package
// differs from kube-scheduler, which reads "007" as seven. Catalogues and clouds do not write such
// labels, and the algebra is exact because each number has one spelling.
//
// # Unknown and absent
//
// A key that a node's set does not mention is either unknown, so that it may still get any value,
// or known to be absent. The caller decides which, by an argument of type [Keys]; there is no
// global list. A node that is yet to be bought leaves its well-known labels open, and a running
// node leaves none open. See [Set.Compatible].
//
// All types but [Builder] are immutable values and safe for concurrent use; only
// [Set.UnmarshalText] replaces its receiver. No function modifies its arguments. Every value has
// one canonical form. So equal sets print the same text, and [Parse] reads it back.
package requirements
