// Package plan is scheduling and binpack together: pods, pools and nodes in, a plan out. The adaptor between the two is the
// documentation of their seam; copy what you need of it, or import it.
//
//	Snapshot ─► scheduling.Compile ─► Problem.Solve ◄─► binpack.Pack
//	                                       └─► Bindings, NewNodes, Unplaced with reasons and fixes, Cost with a bound
//
// It knows no cloud and no catalogue: what can be bought is in the snapshot's pools.
package plan
