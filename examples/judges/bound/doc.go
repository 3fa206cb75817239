// Package bound tests the lower bound of a plan: no other plan of the same pods may cost less than
// it. The other plans are made without some zones, pools, weights or preferences, or with workloads
// tied to zones.
package bound
