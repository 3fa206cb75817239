// Package picture draws clusters: nodes with the pods on them and the room that is left, lines over time, and what a plan has to
// trade. A [Page] is one HTML file with inline SVG that needs no network and no script, in the colours of the reader's system; a [Node]
// is its own SVG, for pages that are alive.
//
// The same page has the same bytes each time.
package picture
