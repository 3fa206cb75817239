// Package deprovision decides which nodes to give back: those that are empty, too old, no longer what would be bought, or
// dearer than what their pods need. It is a function of a snapshot and a moment; it changes nothing itself.
//
// [Rank] lists the nodes in the order in which they should go: what each costs, what emptying it costs and why, what giving it
// back could save at most, and what forbids it. It needs nothing but the snapshot.
//
// [Plan] asks a [Simulator] where pods would go, and gives commands in an order in which each is still right after those before
// it, and one [Verdict] for every node that says why it stays. What is eligible is decided by package eligibility, what pods
// allow by package eviction, what pools allow by package budget, drift by package drift, and how a chosen node is emptied by
// package drain. Package execution carries commands out.
//
// Where pods go is the simulator's business. One that keeps to what pods would rather have (preferred affinities, spreads with
// ScheduleAnyway) may do so among places that it has; no plan fails for it.
package deprovision
