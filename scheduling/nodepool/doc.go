// Package nodepool reads the objects that say which nodes may be bought: the Provisioner of karpenter.sh/v1alpha5 and
// the NodePool of karpenter.sh/v1beta1 and v1, all as one [NodePool].
//
// [Decode] is strict: a field that the API version does not have, a value of the wrong type and everything that
// Karpenter's webhook or its CRD rules would refuse are errors, each with the path of the field and, where it is known,
// the fix; all of them are reported at once. Requirements that contradict each other, which Karpenter accepts and then
// never satisfies, are errors too. What a live cluster adds (status, managed fields, every field of metadata) passes.
//
// Older spellings are mapped here, at the edge, and nowhere else. What a cluster fills in on its own is filled in here
// too, as far as it is the same on every cloud: the budget of 10%, the expiry after 720h. What depends on the cloud is
// a [Default] that the caller names; see [Apply].
//
// The companions of a pool are in sub-packages: nodeclaim (NodeClaim and Machine), overlay (NodeOverlay).
package nodepool
