// Package requirements is the set algebra of label requirements: what a node must be.
//
// A [Requirement] speaks of one label key and denotes a set over the values that label may have, plus "absent", the
// node that does not carry the label. A [Set] speaks of many keys at once and denotes the nodes that satisfy all of
// them; [Alternatives] is a union of Sets, as the OR-terms of a pod's node affinity are.
//
// The algebra is exact. Requirements of one key form a Boolean algebra: intersection, union, complement, emptiness,
// subset and membership never approximate. Three things that are easily confused are three different values here:
//
//   - anything: the key is not constrained (the zero Set; NotIn with no values);
//   - absent: the label must not be there (DoesNotExist);
//   - impossible: nothing satisfies it (In a and In b together).
//
// In, Exists, Gt, Lt, Gte and Lte exclude absent; NotIn contains it; DoesNotExist is exactly it. These are the meanings
// that kube-scheduler gives to the operators of node affinity.
//
// # Integers
//
// Gt, Lt, Gte and Lte speak of canonical decimal integers from 0 to 2^63-1: "0", "7", "42". A value such as "007" or
// "7.0" is a word, not a number, and no bound contains it. kube-scheduler also reads "007" as seven; catalogues and
// clouds do not write labels that way, and one number with one spelling is what keeps the algebra exact.
//
// # Unknown and absent
//
// Whether a key that a node's set does not mention is "unknown, may still get any value" or "known to be absent" is an
// argument, [Keys], never a global: a node that is yet to be bought leaves its well-known labels open, a running node
// leaves none. See [Set.Compatible].
//
// All types are immutable values, safe for concurrent use; no function modifies its arguments. Every value has one
// canonical form, so equal sets print the same text, and [Parse] reads it back.
package requirements
