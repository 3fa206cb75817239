// Package cloudprovider is the interface to a cloud: how nodes are bought and given back, and what
// every implementation promises to its callers. It is the only package that describes side effects.
//
// A provider implements [Provider], which consists of six interfaces with one method each. A caller
// asks only for those that it needs. Abilities that only some clouds have are optional interfaces,
// found by type assertion: [BatchCreator], [RepairAdviser], [Rebooter], [RegistrationHook], and
// interruption.Source.
//
// Package cloudtest checks an implementation against the obligations below. Package memcloud is an
// implementation in memory, and examples/newprovider is the smallest implementation, meant to be
// copied. Two packages of pure functions serve callers: availability remembers what was refused,
// and lifecycle decides which instances have no owner.
//
// # The life of an instance
//
// A caller first records a [NodeClaim] with a token that was never used before. It then calls
// Create with this claim until the answer is known: an [Instance], or an error that says that there
// is none. The same token leads to the same instance, so a caller that lost the answer or was
// restarted repeats the call with the same claim. To give an instance back, the caller calls Delete
// until the answer is [ErrNotFound]. List finds instances that no caller claims any more. Two
// claims are the same if [NodeClaim.Equal] says so; a provider keeps [NodeClaim.Identity], a hash,
// beside the token.
//
// # Obligations
//
// Every implementation keeps all of these. The kit (package cloudtest) cites them word for word.
//
// The catalogue:
//
//   - InstanceTypes lists every type for every pool name, including types that are sold out now.
//   - The catalogue is valid: names are unique, prices are finite and not negative, allocatable
//     never exceeds capacity.
//   - Every type names its architecture and its operating system.
//   - Every offering names exactly one zone and exactly one capacity type.
//   - InstanceTypes gives the same answer, in the same order, as long as nothing has changed.
//   - An offering that was unavailable becomes available again by itself once there is capacity.
//
// Create:
//
//   - Create launches one of the candidates of the claim and nothing else.
//   - Create with a token that was used before returns the instance that was made then and makes no
//     second one.
//   - Concurrent calls of Create with one token make one instance.
//   - Create with the token of another claim fails with ErrInvalidSpec.
//   - Create distinguishes all tokens: up to 128 characters, capital and small letters, and every
//     character that a token may have.
//   - Create with the token of an instance that was deleted fails with ErrNotFound and makes none.
//   - Create refuses a claim that is not valid, or that has a candidate which is not in the
//     catalogue, with ErrInvalidSpec.
//   - Create fails with ErrInsufficientCapacity only if every candidate was refused, and names each
//     candidate without capacity.
//   - Create fails with ErrQuota if a quota refused every candidate, and says which quota and what
//     it blocks.
//   - Create that succeeds on a later candidate reports the candidates that were refused before it.
//   - Create that fails with an error of the closed list has made no instance in this call and has
//     not used up the token.
//   - After the provider is restarted, Create still knows its tokens, and all methods still know
//     the same instances.
//   - If a reply of the cloud was lost and Create is called again, it makes no second instance and
//     returns the first one as if nothing had been lost.
//   - The labels of an instance satisfy its claim: its requirements, its labels, the type and the
//     offering.
//   - An instance has no other labels, except a hostname that no other instance has.
//   - The resources of an instance are those that the catalogue promised for its type.
//   - The time of creation is that of the launch, wrong by at most a minute.
//
// Get and List:
//
//   - Get and List return what Create returned: the same id, type, offering, labels, resources,
//     claim, pool and token, and to the minute the same time of creation.
//   - Get and List eventually say that an instance is Running.
//   - Get fails with ErrNotFound for an id that does not exist.
//   - List returns every instance that Create made and that still exists, each once, in ascending
//     order of ids, however many there are.
//   - List returns only instances that Create made, and each with its claim, pool and token.
//   - If List cannot read everything, it fails. It never returns a part as if it were all.
//
// Delete:
//
//   - Delete ends an instance: eventually Get and Delete fail with ErrNotFound, and List leaves it
//     out.
//   - Delete can be repeated: until the instance is gone it succeeds, and afterwards it fails with
//     ErrNotFound.
//   - Delete fails with ErrNotFound for an id that does not exist.
//   - Delete knows every instance that Create has returned, at once.
//   - Delete touches no other instance.
//   - No method knows machines that Create has not made: the methods fail with ErrNotFound, and
//     Delete and Reboot leave such machines alone.
//
// Drift:
//
//   - Drifted reports nothing for an instance that was just made and fails with ErrNotFound for an
//     id that does not exist.
//
// All methods:
//
//   - A call whose context is done before it begins fails with the error of the context and no
//     code, and Create then makes no instance.
//   - Every failure that the cloud reports is one of the closed list of errors, and exactly one,
//     except internal errors, whose outcome is unknown.
//   - A call that could not read something, because a reply of the cloud was lost, asks again or
//     fails without a code. It never takes the loss for an answer.
//   - All methods may be called concurrently.
//   - Arguments are left as they are.
//   - Results belong to the caller, who may change them without any effect on later results.
//
// The optional interfaces:
//
//   - CreateMany returns one result for each claim, in the order of the claims, and one failure
//     does not spoil the rest.
//   - RepairPolicies are valid: each combination of condition, status and reason occurs once, and
//     no time is negative.
//   - Reboot keeps the instance, reboots once for each operation, also after the provider is
//     restarted, and fails with ErrNotFound for an id that does not exist.
//   - Interruptions delivers every event at least once. It repeats an event until the caller passes
//     back the cursor that came with it, and does not deliver it after that.
//
// # Labels and taints of nodes
//
// The provider says which labels a node should have ([Instance].Labels). The caller puts them on
// the node, together with the taints and startup taints of the claim, once, when the node has
// joined: [Instance.Register] computes the result. A provider may let machines register with some
// of the taints, so that no pod without a toleration arrives first. It does not have to, and a
// caller must not rely on it.
//
// # Tokens and ids
//
// A token is text chosen by the caller that has no meaning: 1 to 128 characters of A-Z a-z 0-9 . -
// _ / : ([NodeClaim.Validate]). If a cloud's labels or client tokens are shorter, the provider
// gives the cloud a hash and keeps the token elsewhere (idempotent.Journal.Hash). An id is the
// cloud's own, and it is exactly what a kubelet reports as its provider id: a provider does not pad
// or shorten it. Ids are ordered as Go compares strings, even if they contain numbers. Two ids are
// the same only if they are equal byte by byte. So the beginning of an id, an id with letters in
// the other case, a name, a token and the empty text are ids that do not exist.
//
// # Clocks
//
// Four durations matter:
//
//   - A provider's lag is how long the cloud needs to show all readers what was written
//     (aws.Options.Lag, idempotent.Journal.Lag). For that long after a call, something may exist
//     although no reader shows it.
//   - What a provider says about the past may be wrong by a minute: Instance.Created is from the
//     cloud's clock.
//   - A caller's own lag (lifecycle.Timeouts.Lag), which counts from the answer of Create, must be
//     longer than the provider's, so that a new instance is never taken for gone. The age at which
//     an instance without a claim counts as an orphan (lifecycle.Timeouts.Orphan) must be longer
//     than the minute by which Created may be wrong.
//   - A provider remembers a token for at least a day after its instance is gone. A caller must not
//     retry for longer than that. A provider that keeps nothing but what the cloud shows may
//     remember less after a restart; its documentation says how much (package aws: about an hour).
//     So a caller must not use a token again once it has heard that the instance is gone.
//
// All times that are compared with each other come from the process's own clock, except
// Instance.Created.
//
// # Consistency
//
// Clouds need time to tell all their machines what happened. Get and List may lag behind Create and
// Delete: for a while they may not know a new instance, or may still know an old one. They must not
// invent instances. The lag has a limit, which the provider's documentation states. Callers wait
// that long before they believe that something is gone (lifecycle.Timeouts).
//
// Two things must never lag: Create must know its tokens, and Delete must know what Create
// returned. A token is remembered for as long as its instance may exist, and for at least one day
// after that.
//
// # Errors
//
// The sentinels are a closed list. A provider returns an [*Error] with one of them as its code, the
// detail that belongs to the code, and the cloud's own error wrapped. [Advise] is the table of what
// a caller may do about each code.
//
// An error outside the list means that the outcome is unknown, for example a lost connection, an
// internal error of the cloud (HTTP 500 to 504, also of a call that only reads), or a context that
// was cancelled during the call. A caller then repeats the call with the same token. A provider
// never turns such an error into an error of the list: if the context is done, errors.Is finds
// context.Canceled or context.DeadlineExceeded and no code.
//
// # Retries, time and contexts
//
// A provider does not retry for long. If a call cannot be answered within a couple of seconds
// beyond the cloud's own latency, it returns [ErrThrottled] or [ErrNotReady], because the caller
// knows what else could be done meanwhile. A provider does not remember for its callers what was
// unavailable; it returns refusals as data. It watches its context in every wait, logs nothing, and
// starts no goroutine that outlives the call.
package cloudprovider
