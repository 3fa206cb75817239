// Package deprovision has kube-scheduler judge what package deprovision plans: every command is
// carried out on a copy of the cluster, and every pod that moves must be accepted where it is
// placed.
package deprovision
