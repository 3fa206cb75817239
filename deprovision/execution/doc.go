// Package execution carries out the commands of a plan as a state machine without side effects. It
// says what to do now, is told what has happened, and says what to do next. Replacements are bought
// and must be ready before a node is drained. A node is given back once it is drained. If a command
// fails, what it has bought is given back. Only a node that goes first is given back before its
// successor is bought. The caller carries out the actions: package drain says how a node is
// emptied, and an interface of package cloudprovider buys nodes.
//
// A [Run] is in memory only. After a restart, plan again: first uncordon the nodes of unfinished
// commands whose machines are not being given back, because a plan puts no pod on a cordoned node.
// Nodes that were bought already are part of the cluster then.
package execution
