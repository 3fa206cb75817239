// Package execution carries out the commands of a plan as a state machine without side effects: it says what to do now, is told
// what has happened, and says what to do then. Replacements are bought and must be ready before a node is drained, a node is given
// back once it is drained, and what a command has bought before it failed is taken back. What an action does is up to the caller:
// package drain says how a node is emptied, and an interface of package cloudprovider buys.
package execution
