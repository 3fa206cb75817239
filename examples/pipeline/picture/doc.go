// Package picture draws clusters: nodes with their pods and free capacity, lines over time, and the
// trade-offs of a plan. A [Page] is one HTML file with inline SVG. It needs no network and no
// script, and follows the colour scheme of the reader's system. A [Node] is an SVG of its own, for
// pages that change.
//
// The same page always has the same bytes.
package picture
