package picture

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var source string

// Style is the style sheet that pages and the drawings on them share; their classes are those of
// this package.
//
//go:embed style.css
var Style template.CSS

// Page is an HTML page. The zero value is an empty page.
type Page struct {
	Title, Subtitle string
	// Figures are at the top, in this order.
	Figures  []Figure
	Sections []Section
}

// Figure is a number and its label.
type Figure struct{ Value, Label string }

// Section is a part of a page. Empty parts are left out.
type Section struct {
	Title, Note string
	Charts      []Chart
	Notices     []Notice
	Nodes       []Node
}

// Notice is a remark about a subject: why a pod has no place, and what would help.
type Notice struct{ Subject, Text, Hint string }

// Legend returns the apps of the section with the number of their pods.
func (s Section) Legend() []Entry { return Legend(s.Nodes) }

// Write writes the file. The error is the writer's.
func (p *Page) Write(w io.Writer) error {
	t, err := template.New("page").Parse(source)
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	return t.Execute(w, struct {
		*Page
		Style template.CSS
	}{p, Style})
}
