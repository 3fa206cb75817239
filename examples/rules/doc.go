// Package rules is an example to copy: the scheduling rules of a platform team as unit tests. It has
// the ten rules that people ask for most, rules as YAML, the output of a broken rule, and a custom
// constraint.
package rules
