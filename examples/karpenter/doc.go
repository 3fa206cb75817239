// Package karpenter lets Karpenter's own controllers buy nodes from any provider of this library.
// If you have written a cloudprovider.Provider and it passes the kit (package cloudtest), Karpenter
// can use it.
//
// [AsKarpenter] makes the interface sigs.k8s.io/karpenter/pkg/cloudprovider.CloudProvider of
// v1.15.0 from a provider. Tests in e2e run Karpenter with it on a cluster, and show what a main
// function needs.
//
// # How one becomes the other
//
// A claim's UID is the token. So if the answer to a launch was lost, the launch is asked for again
// and leads to the same machine. Karpenter's claims have requirements and no candidates. The
// candidates are computed from the catalogue when a claim is first asked for, cheapest first, and
// kept until the answer is known. After a restart, they may come out differently. The provider then
// says that the token belongs to another claim, and AsKarpenter looks up the machine of the token
// in the provider's List.
//
// What the cloud refused is remembered in an availability.Ledger, and GetInstanceTypes shows the
// catalogue without it, so Karpenter plans around it. If some types have a label, each type and
// offering without it gets the requirement DoesNotExist for that label.
//
// The capacity of a type for the volumes of a CSI driver (attachable-volumes-csi-...) is its limit
// of volumes. A full reservation is shown as an offering that is available and has a capacity of 0.
// So Karpenter waits for it or does without, and keeps its nodes.
//
// Repair policies lead to the same repairs. Karpenter has no pattern for "any other reason", only
// one fallback policy, which replaces the node. AsKarpenter uses it for one condition that has both
// policies with a reason and one without. It fails if there are two such conditions, if that policy
// reboots, or if another condition has only policies with a reason.
//
// Errors of Create:
//
//	ErrInsufficientCapacity, ErrQuota   InsufficientCapacityError: Karpenter deletes the claim and plans anew, without what was refused
//	ErrNotFound                         the same: the token's machine was deleted, so another claim is needed
//	ErrInvalidSpec, ErrUnauthorized,
//	ErrUnsupported                      CreateError with the code as its reason; Karpenter asks again and gives up after five minutes
//	ErrNotReady, ErrThrottled           CreateError with the reason; asked again with the same token
//	any other                           as it is; asked again with the same token, for there may be a machine
//
// NodeClassNotReadyError makes Karpenter delete the claim. So it is returned only if nothing can
// have been launched: before the provider is asked, if the class does not exist or says that it is
// not ready. Get, Delete and IsDrifted return NodeClaimNotFoundError for ErrNotFound, and every
// error wraps the provider's own.
//
// Package upkeep does the rest of what Karpenter's core leaves to providers.
package karpenter
