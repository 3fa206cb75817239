// Package newprovider is the smallest provider that keeps all obligations. Its cloud has no client
// tokens, and its list lags behind. Package sky is that cloud; it stands for the client of yours.
// Copy this package to write your own provider.
//
// # Guide
//
//  1. Read the documentation of package cloudprovider. It lists all obligations.
//  2. Copy newprovider_test.go first. Run it against your empty provider and let it tell you what
//     to do next: each failure cites the obligation that is broken.
//  3. InstanceTypes: turn your cloud's price list into instancetypes.InstanceType. A type that is
//     sold out stays in the list, with offerings that are not available. Clouds without zones have
//     one, under any name. Clouds without spot machines sell everything "on-demand". Return fresh
//     values, because callers may change them.
//  4. Create: validate the claim, then look for its token, then try the candidates. Send the token
//     along, if your cloud's API takes one. If it does not, write it into the machine's name or
//     tags in the very call that makes the machine, and let idempotent.Journal do the rest: it
//     writes ahead, locks, looks for machines with that tag, and waits for as long as the cloud's
//     search lags. A tag that is added by a second call is too late: a crash between the two leaves
//     a machine that nobody owns and a second one that is made by the retry. idempotent.Resolve
//     looks candidates up.
//  5. Errors: map what your cloud answers to the closed list, by its codes and not by its texts,
//     and keep the cloud's error in Error.Err. "None left" names the candidates, "not allowed more"
//     names the quota and what it blocks. ErrNotFound says that the machine is gone and its token
//     dead, so a 404 of an image, of a type or of a list is another error. Do not map time-outs and
//     lost connections: they mean that the outcome is unknown, and the caller will ask again.
//  6. List: read every page or fail. If pages have numbers, read from the last to the first: a
//     machine that ends meanwhile moves others to an earlier page, so reading forwards would leave
//     one out. Filter by your tag, so that the machines of others are never listed, and so never
//     deleted.
//  7. Delete: return nil as soon as the cloud has accepted the request, and ErrNotFound once the
//     machine is gone. The journal first writes that the token has ended, and then asks the cloud.
//     A machine that the journal does not know may still be ours: the reply to its launch was lost,
//     and the caller has its id from List. That is why the journal needs Get.
//  8. If your cloud can do more, implement cloudprovider.BatchCreator, RepairAdviser, Rebooter,
//     RegistrationHook or interruption.Source.
//  9. Run the test under the race detector. Then run it against the real cloud. Set Harness.Reopen
//     and Harness.Foreign, and Harness.Settle to wait for as long as the cloud's readers lag. Set
//     Harness.LoseReply and LoseRead with a cloudtest.LosingTransport, once with its method Lose
//     and once with Fail. Set Harness.Many to more than a page of the cloud's lists has.
//
// If the journal is lost, List is empty although machines run, and used tokens are new again. Keep
// it where the claims are, never on a pod's own disk. If your cloud has unique names, name a
// machine after a hash of cluster and token, so that it cannot be made twice.
//
// This provider is for one process at a time, because idempotent.File is. For several processes use
// another store: a ConfigMap that is updated by its resource version, or a row of a database.
package newprovider
