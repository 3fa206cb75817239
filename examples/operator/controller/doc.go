// Package controller is a node provisioner for Kubernetes, made of the packages of Joinery: pods that find no place get nodes,
// and nodes that are not worth their price are given back.
//
// It reads and writes Karpenter's own resources (NodePool and NodeClaim of karpenter.sh/v1), so existing manifests and habits
// keep working. Each file is one concept:
//
//	operator.go   the manager, the caches and who watches what
//	snapshot.go   caches -> scheduling.Snapshot, capacity in flight included
//	provision.go  pending pods -> NodeClaims
//	claim.go      NodeClaim <-> cloudprovider.NodeClaim
//	lifecycle.go  launched, registered, initialized
//	terminate.go  drain, delete, finalizers
//	disrupt.go    deprovision.Plan -> replacements first, then the nodes
//	notice.go     what the cloud says about machines that it takes back
//	review.go     machines and claims that belong to nobody
//	pool.go       status and hash of NodePools
//	metrics.go    what a dashboard shows
//
// All state is in the API server and in the cloud: the process may end between any two calls, and the next one goes on.
package controller
