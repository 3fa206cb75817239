// Package bruteforce judges plans of small problems by trying everything. [Draw] makes a problem
// from a seed. [Model] says which binds kube-scheduler accepts; it is written from the public
// documentation of Kubernetes and shares no code with the planner. [Search] finds how many pods
// have a place at most, and the lowest price for given pods.
package bruteforce
