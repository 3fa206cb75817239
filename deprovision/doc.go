// Package deprovision decides which nodes to give back: empty ones, nodes past their age, nodes that would not be bought again, and
// nodes that cost more than their pods need. It is a function of a snapshot and a moment, and changes nothing itself.
//
// [Rank] lists the nodes in the order in which they should go, with the price of each, the disruption of emptying it, the most that
// giving it back can save, and its blockers. It needs only the snapshot.
//
// [Plan] asks a [Simulator] where pods would go. It returns commands, each of which is right after those before it, and one [Verdict]
// for every node. Package eligibility decides which nodes may go, package eviction what pods allow, package budget what pools allow,
// package drift which nodes have drifted, and package drain how a node is emptied. Package execution carries commands out.
//
// Pods that move without a command, such as pending ones and those of nodes that leave, are up to the simulator: its answers must be
// right whenever they move. So are preferences of pods (preferred affinities, spreads with ScheduleAnyway): no plan fails because of
// them.
package deprovision
