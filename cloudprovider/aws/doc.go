// Package aws buys nodes from EC2. It implements the interfaces of package cloudprovider with the
// AWS SDK for Go v2. It passes the conformance kit of package cloudtest against two clouds that are
// not AWS: one of its own, and moto, which others wrote. FEATURES.md beside this file lists what it
// can do, and which test shows it.
//
// Not all of it was seen on AWS. Each error code that the provider acts on is in the answer book,
// answers.yaml of package api, with the page or issue that it comes from. Codes marked "unverified
// on AWS" have neither. "go test -run 'TestOnAWS$'" runs the kit in a sandbox account, provokes
// errors, and records the answers of AWS in the answer book. That suite itself was tried only on
// the other two clouds.
//
// # Asking twice is safe
//
// One token leads to one machine at a time, whatever gets lost in between. Call Create with the
// same claim until the answer is a launch or an error of the closed list. The tags of a fleet's
// machines record what the fleet was asked for and under which tokens. Before any caller gets an
// answer, these tags also record which machine belongs to which token (the seal of a batch). So:
//
//   - If an answer was lost, the same request is sent again within [Options].Lag, with the same
//     client token, and EC2 answers as before. Later the tags are read instead, because EC2 forgets
//     client tokens and would launch again.
//   - If the caller was restarted, a new provider reads the machines of the cluster once and
//     answers at once for the tokens that it finds. Any other token may have led to a machine that
//     does not show yet. For such a token, Create fails with ErrNotReady until the lag has passed
//     since the start, and says for how long. [Options].Undecided says for which tokens that is so.
//   - If the machine is gone, Create fails with ErrNotFound and says why it ended, for a day after
//     the end. A provider that was restarted since then knows this for less time: as long as EC2
//     shows ended machines, about an hour. After that the token counts as new. This is the
//     exception that package cloudprovider allows. So callers must not use a token again once they
//     have heard that its machine is gone.
//   - If EC2 launched more than was asked for, machines without an owner are ended, if necessary by
//     [Provider.Maintain].
//
// Delete can be repeated until it fails with ErrNotFound. Reading changes nothing in AWS. Call
// [Provider.Maintain] every few minutes.
//
// # Upgrades and neighbours
//
// Machines keep the records and hashes of the version that launched them, and every later version
// reads them. A new field of a node class changes no hash as long as it is not set, and hashes of
// unknown versions are not compared.
//
// If the tags of a machine were damaged or removed, other machines of its fleet identify it. If
// these do not help, it is left alone and named in [Provider.Notes]. As long as the machine has the
// tag of the cluster, List adds it to the notes. If the machine has lost that tag too, only
// [Provider.Maintain] can find it, by its launch template or its instance profile, and adds it to
// the notes. Maintain cannot find a machine if two things come together: its launch template is
// deleted, and its node class names an instance profile that the provider did not make.
//
// Only one provider at a time may launch for a cluster, see [Options].Lease. A provider that has
// launched looks for launches of others. If it sees that another provider launches for the cluster,
// it launches nothing for the next ten minutes.
//
// # Retries and limits
//
// Package api holds calls back, so that EC2 need not throttle them. If a call is throttled, or its
// answer is lost, api repeats it for about two seconds. After that, Create fails: with
// ErrThrottled, or with an error outside the closed list if the outcome is unknown. In both cases
// call it again. A fleet for which EC2 had no capacity is not repeated. The refusals are in the
// error, and the caller plans around them (package availability, pipeline.Buyer in the examples).
//
// # Failures
//
// Errors name the call as an IAM action, EC2's code and words, and a cure if one is known. No error
// and no note contains a credential or user data, even if AWS repeats what it was sent. IAM.md
// lists the permissions that are needed, and infrastructure/ creates them.
package aws
