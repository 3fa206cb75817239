// Package execution carries out the commands of a plan as a state machine without side effects. It
// says what to do now, is told what has happened, and says what to do next. Replacements are bought
// and must be ready before a node is drained. There are two exceptions: a command with
// [plan.Command.AtOnce] does not wait for its replacements, and the node of a command with
// [plan.Command.TerminateFirst] is given back before its successor is bought. A node is given back
// once it is drained. If a command fails before it drains a node, what it has bought is given back.
// After that, bought nodes stay, because pods may run there. The caller carries out the actions:
// package drain says how a node is emptied, and the interfaces Creator and Deleter of package
// cloudprovider buy and give back machines.
//
// A [Run] is in memory only. After a restart, first uncordon the nodes of unfinished commands whose
// machines are not being given back, because a plan puts no pod on a cordoned node. Then plan
// again. The new plan treats nodes that were bought already like all other nodes of the cluster.
package execution
