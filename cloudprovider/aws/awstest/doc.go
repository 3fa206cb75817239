// Package awstest is a small AWS on loopback, for tests of what calls AWS: it speaks the protocols of EC2, SSM, SQS, IAM, EKS and
// the price list over HTTP, so that the real SDK talks to it, and has what matters when machines are bought and what
// emulators lack: capacity and quotas that run out in the middle of a fleet, allocation by price and by capacity, idempotency by
// client tokens, paging, readers that lag behind, throttling by token buckets of AWS's published sizes, spot prices, and faults
// on demand: replies that get lost, errors of any code, machines that die at once.
//
// It checks what it is asked and refuses what EC2 refuses, but it is no complete EC2: actions and parameters that the provider does not
// use are answered with an error. Time is an argument ([Config.Clock]).
package awstest
