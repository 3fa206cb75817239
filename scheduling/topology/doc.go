// Package topology decides where pods go that ask something of other pods: spreads, affinity and anti-affinity over zones,
// capacity types, hostnames or any other label.
//
// [New] reads what classes of pods ask of each other and counts the pods that run. [Problem.WithShapes] adds what can be
// bought. [Problem.Start] and [Problem.Settle] then give every pod to a domain, a combination of label values, one after
// the other and only where kube-scheduler's rules hold at that moment, given all pods before: the order of settling is an
// order of binding. What comes out is a [Settlement]: lots to pack, the order, and who is left over. A packer that could
// not place everything makes [Settlement.Learn] tell new [Facts], and everything is settled again, from the start.
//
// # Order and choice
//
// Larger pods come first, then pods that follow others, then pods that spread by others. Within what is allowed, free
// room on existing nodes comes before the price, and the price before balance. Pods that spread over two keys at once get
// quotas for combinations first; see package quota. Soft constraints are tried as if they were hard and given up one at a
// time; see [Preference].
//
// # Within one node
//
// Constraints by hostname act within one node and are left to the packer: they become tags and limits. Pods that must
// share a node, because one has affinity to another by hostname, become one bundle.
//
// # Domains that are better left alone
//
// kube-scheduler counts a domain as soon as an eligible node stands in it. Where that alone keeps pods out, the domain is
// closed to new nodes, unless somebody cannot do without it.
//
// Everything is a function of its arguments, and its result is the same whatever the order of maps.
package topology
