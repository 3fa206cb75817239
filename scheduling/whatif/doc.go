// Package whatif answers many questions about one cluster: if these nodes went, where would their pods go, and what would
// have to be bought?
//
// A cluster is compiled once into integers: classes of pods, free room by node, sets of nodes that suit a class, and the
// counts behind every constraint between pods. A question then costs what it changes (the pods that move and the nodes
// that are looked at for them), not the cluster: pods are put on named nodes one at a time under the same rules by which
// kube-scheduler filters, so that an answer can be carried out in the order of its placements. Nothing about a domain has
// to be assigned beforehand, for every node here has all its labels.
//
// Soft constraints (preferred affinities, spreads with ScheduleAnyway) keep no pod from a node. Of nodes that take a pod, the
// one is chosen that meets most of them by weight, and of equals the fullest; for what is to be bought they are not asked.
package whatif
