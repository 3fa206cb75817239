// Package blueprints has sets of node pools that a platform team can start from: manifests to copy,
// and rules that a plan with them must keep. Its test plans each set and checks its rules.
package blueprints
