// Package podclass selects the pods to place, groups equal ones, and orders them.
//
// Planning costs work for each class of pods, not for each pod. [Group] compares everything that
// affects placement, and nothing else. Images, environments and labels that no selector looks at do
// not count.
package podclass
