// Package api has the clients of the AWS services that the provider uses, with what all their calls
// have in common. A call waits until the account's own token buckets allow it ([Published]). If AWS
// throttles it or does not answer, it is repeated for a second or two. If it fails, its error is an
// outcome of package cloudprovider that names the cause and the cure and contains no credential and
// no user data ([Outcome]).
//
// All calls that are repeated are idempotent: they read, they have a client token, or repeating
// them has no further effect.
package api
