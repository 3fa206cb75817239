// Package cloudtest checks whether an implementation of cloudprovider.Provider keeps the obligations of that package.
//
// [Run] is for go test: a subtest with a provider of its own for each case. [Check] is for everything else: it runs all
// cases on one provider, one after the other, and returns all violations. Both cite the obligation that is broken, word
// for word, so that the implementer reads the rule and not a diff.
//
// A provider alone lets most cases run. Those that need the cloud to be short of something, to interrupt a machine, or to
// catch up, need a function of the [Harness] and are skipped without it. Optional interfaces are found by type assertion.
//
// The kit buys real machines if the provider does: a few at a time, always of the cheapest offerings, and deletes them. Use
// an account of its own, or at least a provider that only lists what it made itself. A cloud that has only a
// handful of machines sets [Harness.Many] to what it has.
//
// A function of the harness that does not do what it says, such as an Exhaust that leaves machines over, makes a case fail
// as if the provider were at fault; look there first if a text speaks of a shortage or an interruption.
//
// What the kit says is broken is broken. What it does not see it does not prove: races show under the race detector only,
// faults of the cloud only where the provider is tested against a cloud with faults, and a token's life of a day is not
// waited for. [Inject] puts faults between a caller and its provider: it is for those who test callers.
package cloudtest
