// Package pipeline is where the packages of Joinery meet beyond package plan: what a market offers pools, what manifests say of a
// cluster, plans as claims of a provider and buying them. Its code is the documentation of the seams; copy what you need of it, or
// import it.
//
//	manifests ─► Snapshot ─► plan.Make ─► Claim ─► cloudprovider.Create ─► InFlight ─► the next Snapshot
package pipeline
