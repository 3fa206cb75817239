// Package catalogue is the EC2 catalogue that needs no network: every instance type, what it is,
// which zones of which regions offer it, and its on-demand price there.
//
// The data is embedded text (data/sources.txt says where each number comes from). It is read again
// at each call: the package has no state, and a caller that asks twice pays twice. One region costs
// a few milliseconds.
package catalogue
