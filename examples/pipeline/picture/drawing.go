package picture

import (
	"fmt"
	"html"
	"iter"
	"strings"
)

// drawing is an SVG being written.
type drawing struct{ strings.Builder }

func (d *drawing) f(format string, args ...any) { fmt.Fprintf(&d.Builder, format, args...) }

func (d *drawing) text(x, y int, class, s string) {
	d.f(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, escape(s))
}

func escape(s string) string { return html.EscapeString(s) }

// cut returns the text, shortened to the available space.
func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// pairs yields the elements of the list in pairs, in order.
func pairs(list ...string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := 0; i+1 < len(list); i += 2 {
			if !yield(list[i], list[i+1]) {
				return
			}
		}
	}
}
