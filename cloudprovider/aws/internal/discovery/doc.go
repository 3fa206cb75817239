// Package discovery finds what node classes select: subnets, security groups, images, capacity reservations and placement groups,
// and what a node must know of its cluster. Answers are remembered for a while, and callers that ask for the same thing at the
// same time share one call.
//
// All answers are in a fixed order and belong to the caller.
package discovery
