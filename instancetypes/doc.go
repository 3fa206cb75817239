// Package instancetypes describes what can be bought: instance types, their offerings with prices,
// and what a node of each type leaves for pods.
//
// Every catalogue consists of these Go types. A catalogue may be the embedded EC2 catalogue (ec2),
// a file in the format of Karpenter's KWOK provider (kwok), or a provider of the caller's own.
// Package pricing has the layers of prices.
//
// Values are plain structs that are read-only by convention. They may be shared between goroutines,
// because no code changes them: every function of this package returns new values.
package instancetypes
