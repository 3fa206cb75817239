// Package lifecycle decides from what was observed which instances have no owner, which claims will
// never become nodes, and which broken nodes to replace or reboot. Its functions are pure.
//
// The package does nothing itself: the caller deletes what the decisions name, and repeats that
// while they name it. Deleting is idempotent, so carrying out a decision twice does no harm.
//
// Read the cloud first, then the claims. An instance that is launched between the two is then
// missing from the list of instances, which [Timeouts.Lag] tolerates. In the other order it would
// be an instance without a claim.
package lifecycle
