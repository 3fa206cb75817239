// Package bruteforce judges plans of small problems by trying everything. [Model] says which binds
// kube-scheduler accepts; it is written from the public documentation of Kubernetes and shares no
// code with the planner. [Search] finds how many pods have a place at most, and the lowest price
// for given pods. The tests draw the problems and compare.
package bruteforce
