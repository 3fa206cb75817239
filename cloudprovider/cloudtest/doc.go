// Package cloudtest checks whether an implementation of cloudprovider.Provider keeps the
// obligations of that package.
//
// [Run] is for go test: it runs a subtest with a provider of its own for each case. [Harness.Check]
// is for everything else: it runs all cases on one provider, one after the other, and returns all
// violations. [Check] does so without a harness, and skips the cases that need one. All of them
// cite the broken obligation word for word, so that the implementer reads the rule and not a diff.
//
// A provider alone is enough for most cases. Other cases need the cloud to run out of something, to
// interrupt a machine, or to catch up. They need a function of the [Harness] and are skipped
// without it. Optional interfaces are found by type assertion.
//
// The kit buys real machines if the provider does: a few at a time, always of the cheapest
// offerings, and deletes them. Use a separate account, or at least a provider that lists only what
// it made itself. For a cloud with only a handful of machines, set [Harness.Many] to that number.
//
// If a function of the harness does not do what it says, such as an Exhaust that leaves machines
// over, a case fails as if the provider were at fault. So look there first if a text mentions a
// shortage or an interruption.
//
// A reported violation is real, but silence is not a proof. Races show only under the race
// detector. Faults of the cloud show only if the provider is tested against a cloud with faults.
// The kit does not wait for a day to test the life of a token. It cannot lose the provider's store,
// copy a machine with its tags, or see whether prices, images and user data are right. [Inject]
// puts faults between a caller and its provider: it is for tests of callers.
package cloudtest
