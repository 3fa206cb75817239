// Package pricebench holds the workloads and the catalogue on which the price of plans is measured:
// usual, bimodal and all-distinct pods drawn from a seed, and the pods of a public trace, over the
// on-demand general-purpose types of one EC2 region. `make bench-price` writes the results to
// binpack/BENCHMARKS.md.
package pricebench
