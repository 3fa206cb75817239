// Package karpenter lets Karpenter's own controllers buy nodes from any provider of this library: who has written a
// cloudprovider.Provider once, and run the kit over it, gets Karpenter with it.
//
// [AsKarpenter] is the interface sigs.k8s.io/karpenter/pkg/cloudprovider.CloudProvider of v1.15.0 over a provider. Tests in e2e run
// Karpenter with it on a cluster, and show what a main function needs.
//
// # How one becomes the other
//
// A claim's UID is the token, so a launch whose answer was lost is asked for again and leads to the same machine. Karpenter's claims
// have requirements and no candidates: those are worked out from the catalogue when a claim is first asked for, cheapest first, and
// kept until the answer is known. A process that was started anew may work out others; the provider then says that the token is of
// another claim, and the machine that the token has led to is found in its list.
//
// What the cloud refused is remembered in an availability.Ledger, and GetInstanceTypes shows the catalogue without it, so Karpenter
// plans around it. A label that neither a type nor its offering has is absent where other types have it.
//
// The capacity of a type for the volumes of a CSI driver (attachable-volumes-csi-...) is its limit of volumes. A reservation without
// room is an offering that is available and has a capacity of 0, so Karpenter waits for it or does without, and keeps its nodes.
//
// Repair policies lead to the same repairs. AsKarpenter fails where Karpenter's patterns cannot say what a provider's policies do: two
// conditions, or one that is to be rebooted, each with a policy for any other reason than those of its other policies.
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
// NodeClassNotReadyError deletes the claim, and is therefore returned only where nothing can have been launched: before the provider is
// asked, if the class does not exist or says that it is not ready. Get, Delete and IsDrifted return NodeClaimNotFoundError for
// ErrNotFound, and every error wraps the provider's own.
//
// Package upkeep does the rest of what Karpenter's core leaves to providers.
package karpenter
