// Package nodeclass reads what a cluster's owner says about EC2 machines: AWSNodeTemplate v1alpha1, EC2NodeClass v1beta1
// and v1, and the inline provider of a Provisioner v1alpha5, each with all of its fields, into one [NodeClass].
//
// Decoding is strict: a field that the kind does not have, a value of the wrong type and a rule of the kind that is
// broken are faults with a path, all of them at once. Objects exported from a cluster, with status and managed fields,
// are read as they are.
package nodeclass
