// Package api is the way to AWS: clients of the services that the provider uses, with what all their calls have in common.
// A call waits until the account's own token buckets allow it ([Published]), is repeated for a second or two if AWS
// throttles it or does not answer, and fails with an outcome of package cloudprovider that names the cause and the cure and
// contains no credential and no user data ([Outcome]).
//
// All calls that are repeated are idempotent: they read, or they carry a client token, or doing them twice is doing them once.
package api
