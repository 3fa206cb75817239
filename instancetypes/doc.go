// Package instancetypes says what can be bought: instance types, their offerings with prices, and what a node of each
// type leaves for pods.
//
// It is the catalogue's vocabulary. Where the types come from is open: the embedded EC2 catalogue (ec2), a file in
// the shape of Karpenter's KWOK provider (kwok), or a provider of the caller's own. Prices are layered by package pricing.
//
// Values are plain structs that are read-only by convention: whoever holds one may share it between goroutines, nobody
// writes to it, and every function here returns new values.
package instancetypes
