// Package pipeline connects the packages of Joinery beyond package plan: what a market offers to
// pools, what manifests say about a cluster, and plans as claims that a provider can buy. Its code
// shows how they fit together; import it, or copy what you need.
//
//	manifests ─► Snapshot ─► plan.Make ─► Claim ─► cloudprovider.Create ─► InFlight ─► the next Snapshot
package pipeline
