// Package catalogue is the EC2 catalogue that needs no network: every current instance type, what it is, which zones
// of which regions offer it, and what it costs there on demand.
//
// The data is embedded text (see data/sources.txt for where each figure comes from), read anew at each call: the
// package has no state, and a caller that asks twice pays twice. One region costs a few milliseconds.
package catalogue
