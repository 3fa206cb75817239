// Package aws buys nodes from EC2. It implements the interfaces of package cloudprovider on the AWS SDK for Go v2, and passes the
// conformance kit of package cloudtest against two clouds that are not AWS: one of its own, and moto, which others wrote. FEATURES.md beside this file says
// what it can do, and which test shows it.
//
// Not all of it was seen on AWS. Each error code that the provider acts on is in the answer book, answers.yaml of package api, with the page or
// issue that it comes from; codes that are marked "unverified on AWS" have neither. "go test -run 'TestOnAWS$'" runs the kit in a sandbox account, provokes errors,
// and notes in the answer book what AWS said; the suite itself was tried on the other two clouds only.
//
// # Asking twice is safe
//
// One token leads to one machine at a time, whatever gets lost in between: call Create with the same claim until the answer is a launch or an error of the
// closed list. What a fleet was asked for under which tokens stands in the tags of its machines, and which machine is whose is written there before any
// caller is told (the seal of a batch). So:
//
//   - The answer was lost: within [Options].Lag the same request is sent again, with the same client token, which EC2 answers as before. Later the tags are
//     read instead, for EC2 forgets client tokens and would launch once more.
//   - The caller was restarted: a new provider reads the machines of the cluster once, and answers at once for the tokens that it finds. Any other token
//     may have led to a machine that does not show yet: Create fails with ErrNotReady until the lag has passed since the start, and says for how
//     long; [Options].Undecided says for which tokens that is so.
//   - The machine is gone: Create fails with ErrNotFound and says what it ended of, for a day after the end. A provider that was started since
//     knows that for as long as EC2 shows ended machines, about an hour. After that the token is as good as new, so callers must not use a token again
//     once they have heard that its machine is gone.
//   - EC2 launched more than was asked for: what has no owner is ended, if need be by [Provider.Maintain].
//
// Delete can be repeated until it fails with ErrNotFound. [Provider.Withdraw] takes back all that came of some tokens, for callers that were interrupted.
// Reading changes nothing in AWS. [Provider.Maintain] ends machines without an owner and collects launch templates and instance profiles: call it every few minutes.
//
// Claims that the same offerings will do for, with the same labels, taints and requirements, are one fleet if they are made at the same time.
//
// # Upgrades and neighbours
//
// Machines keep the records and hashes of the version that launched them, and every later version reads them: a field that a node class
// gains changes no hash as long as it is not set, and hashes of a version that is not known are not compared. A machine whose tags were spoiled or taken off is
// known by others of its fleet. Where these say nothing it is left alone and named in [Provider.Notes]: by List as long as it carries the tag of the cluster, and
// otherwise by [Provider.Maintain], which finds it by its launch template or its instance profile; neither shows a machine of a class with a profile of its own
// once the template is gone.
//
// Only one provider at a time may launch for a cluster: give it the lease that it is elected by ([Options].Lease). One that sees another launch after its own first
// launch stops for ten minutes. Karpenter takes machines that carry its tags for its own, so ours carry others unless [Options].KarpenterTags is set.
//
// # Retries and limits
//
// Calls are held back by token buckets of the sizes that AWS publishes (package api), so that EC2 need not throttle them; providers of one account and
// region should share their buckets. A call that is throttled all the same, or whose answer was lost, is repeated by the SDK, three times within about two
// seconds. Then Create fails with ErrThrottled, or with an error outside of the closed list where the outcome is unknown: ask again. A fleet that EC2 had nothing
// for is not repeated: the refusals are in the error, and planning around them is the caller's (package availability, pipeline.Buyer in the examples).
//
// Readers of EC2 lag behind its writers. [Options].Lag is the bound that the provider trusts, a minute by default.
//
// # Failures
//
// Errors name the call as an IAM action, EC2's code and words, and a cure as far as one is known. No error and no note contains a credential or user
// data, also where AWS repeats what it was sent. What the credentials must be allowed to do is in IAM.md beside this file, and infrastructure/ makes it;
// [Provider.Permitted] asks beforehand.
package aws
