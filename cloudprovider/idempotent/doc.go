// Package idempotent is shared code for providers of clouds without client tokens. [Resolve] looks
// up the candidates of a claim in a catalogue. A [Journal] makes it safe to repeat Create after a
// lost reply or a restart, when the cloud itself would launch a second machine. The journal keeps
// its entries in a [Store]: a [File] for a provider on one machine, a [ConfigMap] for a provider in
// a cluster.
//
// Package examples/newprovider is a provider built from these parts. Its methods use the journal as
// follows:
//
//   - Create calls [Journal.Create] with two functions, find and launch. Find lists machines and
//     looks for a token. Launch begins with Resolve, tries one choice after the other, and returns
//     at once if an answer was lost. The call that makes a machine labels it with the token.
//   - Get and List call [Journal.Instances] with the machines that the cloud shows. If the reply to
//     a launch was lost, [Describe] works out what the machine is.
//   - Delete calls [Journal.Delete] with two functions: the provider's Get, and one that asks the
//     cloud to delete.
//
// If machine names are unique in your cloud, name the machine after a hash of cluster and token.
// The cloud then refuses a second machine by itself. If the cloud reports a conflict of names,
// return that error unchanged, and not as an error of the closed list: the machine with that name
// may be the one of this token.
//
// If the store is lost, List is empty although machines run, and used tokens are new again. So keep
// it where the claims are kept, and never on a pod's own disk.
package idempotent
