// Package few packs few things, in ways that would take too long with many: it moves single things about ([Exchange],
// [Tighten]), and it looks through everything that is cheaper than a packing, set of bins by set of bins ([Search]) or by what
// is left after each bin ([Residual]). Where these come to an end, nothing cheaper is there; [Refuted] checks such a claim.
package few
