// Package volume says which nodes pods with persistent volumes can use and what the pods attach, or
// why no node suits them.
//
// [Index.Assign] returns the [Need] of each pending pod. A bound claim restricts the pod to the
// reach of its volume. An unbound claim restricts it to the reach of a free volume, or to where its
// storage class makes one. A claim that no pod can use is a refusal. [Shared] lists unbound claims
// of several pods, which must be in one zone. [Binder] counts free volumes while pods are bound.
// [Index.AttachRoom] returns how many volumes a node can still attach.
//
// Label keys of [Need] are those of the objects. Arguments are not modified.
package volume
