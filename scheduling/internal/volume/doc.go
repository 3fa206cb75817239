// Package volume says which nodes pods with persistent volumes can use, what they attach, or why no node suits them.
//
// [Index.Assign] gives the [Need] of each pending pod: a bound claim restricts it to the reach of its volume, an unbound one to the reach of
// a free volume or to where its storage class makes one, and a claim that no pod can use is a refusal. [Shared] lists unbound claims of
// several pods, which must be in one zone. [Binder] counts free volumes while pods are bound. [Index.AttachRoom] is how many volumes a
// node can still attach.
//
// Label keys of [Need] are those of the objects. Arguments are not modified.
package volume
