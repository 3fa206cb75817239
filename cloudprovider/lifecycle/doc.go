// Package lifecycle decides, as pure functions of what was seen, which instances have no owner, which claims will not
// become nodes any more, and which nodes cannot be repaired.
//
// Nothing is done here: the caller deletes what it is told to, as often as it is told to. Deleting is idempotent, so a
// decision that is carried out twice does no harm.
//
// The order of reading matters: the cloud first, then the claims. An instance that is launched between the two readings is
// then missing from the list of instances, which [Timeouts.Lag] forgives, instead of being one without a claim.
package lifecycle
