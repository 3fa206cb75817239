// Package bound has the law of what a plan claims: no plan of the same pods is cheaper than the price below which nobody can place them.
// Other plans are made with zones, pools, weights or preferences taken away, or with workloads tied to zones.
package bound
