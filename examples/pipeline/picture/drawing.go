package picture

import (
	"fmt"
	"html"
	"iter"
	"strings"
)

// drawing is SVG that is being written.
type drawing struct{ strings.Builder }

func (d *drawing) f(format string, args ...any) { fmt.Fprintf(&d.Builder, format, args...) }

func (d *drawing) text(x, y int, class, s string) {
	d.f(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, escape(s))
}

func escape(s string) string { return html.EscapeString(s) }

// cut is the text, as far as there is room for it.
func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// pairs are each first and second of the list, in order.
func pairs(list ...string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := 0; i+1 < len(list); i += 2 {
			if !yield(list[i], list[i+1]) {
				return
			}
		}
	}
}
