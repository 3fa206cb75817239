// Package idempotent is what providers of clouds without client tokens have in common: [Resolve] finds what a claim's candidates are
// in a catalogue, and a [Journal] makes Create safe to repeat, after a lost reply or a restart, where the cloud itself would launch a
// second machine.
package idempotent
