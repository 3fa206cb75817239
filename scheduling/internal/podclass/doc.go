// Package podclass says which pods are to be placed, which of them are alike, in what order they come, and what each
// takes of a node.
//
// Placing costs work for each class of pods rather than for each pod, and a workload's replicas are one class: [Group]
// compares everything that bears on placement, and nothing else. An image, an environment or a label that no selector
// looks at keep no pods apart.
//
// All functions are pure; only [Sort] changes what it is given.
package podclass
