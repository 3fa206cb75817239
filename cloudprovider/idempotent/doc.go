// Package idempotent is what providers of clouds without client tokens have in common: [Resolve] finds what a claim's candidates are
// in a catalogue, and a [Journal] makes Create safe to repeat, after a lost reply or a restart, where the cloud itself would launch a
// second machine.
//
// Package examples/newprovider is a provider that is made of both. What each method owes to the journal:
//
//   - Create calls [Journal.Create], which tests the context, the claim and the token. Its launch begins with Resolve, tries one
//     choice after the other, and returns at once where an answer was lost. The call that makes a machine labels it with the token.
//   - Get and List return the machines whose token is an entry of the [Store]. An entry without an Instance is of a machine whose reply was
//     lost: they work it out, by [Choice.Instance] of the choice that the machine is, and write it into the entry by Store.Update. Its id is
//     known to callers from here on, and Delete must find the token by it.
//   - Delete calls [Journal.Delete] before it asks the cloud to delete, and does not look the machine up first: the token has to end even if
//     the cloud has taken the machine already. Where the journal says that it is not ours, Get may learn that it is (see above), and the
//     journal is asked once more; otherwise it is ErrNotFound.
package idempotent
