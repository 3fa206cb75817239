// Package nodepool reads the Provisioner of karpenter.sh/v1alpha5 and the NodePool of
// karpenter.sh/v1beta1 and v1 as one [NodePool].
//
// [Decode] is strict. Unknown fields, values of a wrong type, and everything that Karpenter's
// webhook or CRDs refuse are errors. Each names the path of the field and, where it is known, the
// fix. All are reported at once. Contradictory requirements, which Karpenter accepts and never
// satisfies, are errors too. Status and metadata of a live cluster are accepted.
//
// Older spellings are mapped only here. Defaults that are the same on all clouds are set here: the
// budget of 10% and the expiry after 720h. Other defaults are a [Default] of the caller; see
// [Apply].
//
// The companions of a pool are in sub-packages: nodeclaim (NodeClaim and Machine) and overlay
// (NodeOverlay).
package nodepool
