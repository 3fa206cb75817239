// Package idempotent is what providers of clouds without client tokens have in common: [Resolve] finds what a claim's candidates are
// in a catalogue, and a [Journal] makes Create safe to repeat, after a lost reply or a restart, where the cloud itself would launch a
// second machine. Its entries are in a [Store]: a [File] for a provider on one machine, a [ConfigMap] for one in a cluster.
//
// Package examples/newprovider is a provider that is made of these. What each method owes to the journal:
//
//   - Create calls [Journal.Create] with two functions. The one that finds is a List that looks for a token. The one that makes begins with Resolve, tries
//     one choice after the other, and returns at once where an answer was lost; the call that makes a machine labels it with the token.
//   - Get and List call [Journal.Instances] with the machines that the cloud shows. Where the reply to a launch was lost, [Describe] works out
//     what the machine is.
//   - Delete calls [Journal.Delete] before it asks the cloud to delete, and does not look the machine up first: the token has to end even if
//     the cloud has taken the machine already. Where the journal says that it is not ours, Get may find out that it is (see above), and the
//     journal is asked once more; otherwise it is ErrNotFound.
package idempotent
