// Package volume says where pods with persistent volumes can go, what they attach to their node, or why they can go
// nowhere.
//
// [NewIndex] takes the objects once. [Index.Assign] then goes through the pending pods and answers with a [Need] for
// each: a bound claim is where its volume is; an unbound one gets a volume that nobody has, or lets one be made wherever
// its storage class allows; and a claim that no pod can use is a refusal, in words. [Shared] finds the claims whose
// volume is yet to be made and that more than one pod waits for, because those pods must agree on a zone, and
// [Index.AttachRoom] counts how many volumes a node can still take.
//
// Label keys come out as the objects spell them; renaming deprecated ones is up to the caller. Nothing that is handed in
// is modified, and the same arguments give the same result.
package volume
