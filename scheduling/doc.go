// Package scheduling turns pods, pools and a cluster into what each pod still needs of a node, or why it can't have one.
//
// [Compile] reads a [Snapshot] once: pods become classes (pods that are alike in everything that bears on placement),
// instance types become shapes (what is left of a type once the daemons of a pool run on it), and existing nodes become
// rooms. Everything after that is a dialogue of rounds with a packer, in the manner of a state machine that returns
// work: [Problem.Start] settles which class goes to which domains, [State.Round] says what to pack, the packer answers
// with an [Outcome], and [State.Advance] settles again, from the start, with what was learnt. When [State.Done],
// [State.Result] says where every pod goes and in which order kube-scheduler will accept the bindings, and
// [State.Explain] why the others go nowhere.
//
// # What is decided here, and what by the packer
//
// Scheduling decides domains, the packer decides bins. A constraint on a domain (spread, affinity and anti-affinity over
// zones, capacity types or any label; volumes) is settled by giving pods to combinations of label values. A constraint
// within one node (host ports, anti-affinity and spread by hostname, attach limits) crosses as tags and limits: at most so
// many things with a tag while I am here. Pods that must share a node cross as one bundle. Taints cross as a
// pseudo-label: to tolerate is to accept its value.
//
// # Where the parts are
//
// Package podclass says which pods are alike and in what order they come, package volume where their volumes let them go,
// package admission what an API server makes of them, and package topology gives them to domains. Here they are put
// together: compiling, rounds, results and explanations.
//
// What a node must be is an element of package requirements throughout: nothing here compares labels by itself.
//
// All work depends on classes, domains and offerings; only dealing pods out at the end depends on pods. Nothing here
// reads a clock, and the same snapshot gives the same result whatever the order of its lists.
package scheduling
