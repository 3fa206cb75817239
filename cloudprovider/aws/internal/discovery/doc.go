// Package discovery finds what node classes select: subnets, security groups, images, capacity
// reservations and placement groups. It also finds what a node must know about its cluster. Answers
// are remembered for a while, and simultaneous requests for the same thing share one call.
//
// All answers are in a fixed order and belong to the caller.
package discovery
