// Package admission holds what an API server says of manifests against what package manifests says of them: whoever comes from a
// cluster brings files that a server took, and they must be read here too.
package admission
