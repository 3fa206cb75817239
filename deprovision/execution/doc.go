// Package execution carries out the commands of a plan as a state machine without side effects. It
// says what to do now, is told what has happened, and says what to do next. Replacements are bought
// and must be ready before a node is drained. There are two exceptions: a command with
// [plan.Command.AtOnce] does not wait for its replacements, and the node of a command with
// [plan.Command.TerminateFirst] is given back before its successor is bought. A node is given back
// once it is drained. If a command fails before one of its nodes is drained or dies, what it has
// bought is given back. After that, bought nodes stay, because pods may run there. The caller
// carries out the actions: package drain says how a node is emptied, and the interfaces Creator and
// Deleter of package cloudprovider buy and give back machines. The section "Writing a policy" of
// docs/guide.md has a program that goes from a plan to the end of its commands.
//
// Every node that the commands name may die at any time; [Run.Tell] says what follows. If a command
// does not end as [Done], make a new plan when the run is finished.
//
// A [Run] is in memory only. After a restart, first uncordon the nodes of unfinished commands whose
// machines are not being given back, because a plan puts no pod on a cordoned node. Then make a new
// plan. Bought nodes that have joined are nodes of the cluster like all others. Bought nodes that
// have not joined yet belong into the snapshot of the new plan as scheduling.NodeClaims, with the
// labels and figures of what was bought. Then pods are planned there, and nothing is bought twice.
// So store the claim of a node before you buy it; the interface Lister of package cloudprovider
// says which machines exist.
package execution
