// Package admission compares package manifests with an API server, on the same files. Files
// exported from a cluster were accepted by its API server, so package manifests must accept them
// too. It also compares package scheduling with the server, on the same pods.
package admission
