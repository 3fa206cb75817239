// Package rules is an example to copy: the scheduling rules of a platform team as unit tests. Its tests hold ten rules
// that people ask for most, rules as YAML, what a broken rule says, and a constraint of the team's own.
package rules
