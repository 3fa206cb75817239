// Package deploy is how the operator gets into a cluster: its rights, and a Deployment to start from (operator.yaml).
package deploy

import _ "embed" // the file

// RBAC are the rights of the operator, as YAML of several documents. The tests run it with exactly these.
//
//go:embed rbac.yaml
var RBAC string
