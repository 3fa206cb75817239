// Package pipeline is where the packages of Joinery meet: short adaptors from one stage to the next. Its code is the
// documentation of the seams; copy what you need of it, or import it.
//
//	manifests ─► scheduling.Snapshot ─► scheduling.Compile ─► State.Round ─► binpack.Pack ─► State.Advance ─► Result
package pipeline
