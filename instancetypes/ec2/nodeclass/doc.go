// Package nodeclass reads what a cluster's owner says about EC2 machines into one [NodeClass]. It
// reads AWSNodeTemplate v1alpha1, EC2NodeClass v1beta1 and v1, and the inline provider of a
// Provisioner v1alpha5, each with all of its fields.
//
// Decoding is strict. A field that the kind does not have, a value of the wrong type and a violated
// rule of the kind are faults with a path, all reported at once. Objects exported from a cluster,
// with status and managed fields, can be read unchanged.
package nodeclass
