// Package deploy is how the operator gets into a cluster: its rights, and a Deployment to start
// from (operator.yaml).
package deploy

import _ "embed" // the file

// RBAC is the rights of the operator, as YAML of several documents. The tests run the operator with
// exactly these rights.
//
//go:embed rbac.yaml
var RBAC string
