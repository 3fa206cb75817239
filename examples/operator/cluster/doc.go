// Package cluster runs a Kubernetes on loopback: etcd, API server, controller-manager and scheduler
// as they are released, and kwok in place of kubelets. The programs are built from their modules
// (folders kubernetes and kwok), once for each set of versions; nothing is downloaded as a binary,
// and there are no containers.
//
// It is for trying and testing controllers: one member of etcd that never syncs to disk, one
// administrator's token, no network.
package cluster
