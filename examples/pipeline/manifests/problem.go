package manifests

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Position is a place in the input. The zero value is unknown.
type Position struct {
	// File is the name given, or found in a directory; "-" is standard input.
	File string
	// Document is the number of the document in the file, from 1.
	Document int
	// Line is counted from 1; 0 where it is not known.
	Line int
}

// String writes "pods.yaml:12", or "pods.yaml: document 3" where there is no line.
func (p Position) String() string {
	switch {
	case p.Line > 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	case p.Document > 0:
		return fmt.Sprintf("%s: document %d", p.File, p.Document)
	default:
		return p.File
	}
}

// Problem is one mistake in the input.
type Problem struct {
	// Position is that of the field where it is known, or else of the object.
	Position Position
	// Object is kind and name ("Pod shop/web-0", "NodePool default"); empty if no object could be made out.
	Object string
	// Path is the field; empty for the object as a whole.
	Path string
	// Detail is what is wrong and, where it is known, the fix.
	Detail string

	noObject bool // what is there has no kind or no apiVersion, and may be no manifest at all
}

// Error is the line that a person reads: "pods.yaml:12: Provisioner default: spec.weight: 101: want 1 to 100".
func (p *Problem) Error() string {
	parts := []string{}
	for _, part := range []string{p.Position.String(), p.Object, p.Path, p.Detail} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// filled is where a template fills a value in: of Helm and Jinja, of a shell, Flux or Terraform, and by hand.
var filled = regexp.MustCompile(`\{\{[^\n]*?\}\}|\{\{[^\n]*|\$\{[^}\n]*\}?|%\{[^}\n]*\}?|<<[A-Za-z_][\w -]*>>|<[A-Z][A-Z0-9_-]+>`)

// hint says of problems on lines with something to fill in what that is, and of patches that they are some.
func hint(c chunk, problems []*Problem) {
	if len(problems) == 0 {
		return
	}
	lines := bytes.Split(c.data, []byte("\n"))
	for _, p := range problems {
		at := p.Position.Line - c.position.Line
		if at >= 0 && at < len(lines) && !strings.Contains(p.Detail, render) {
			if text := filled.Find(lines[at]); text != nil {
				const most = 40
				p.Detail += fmt.Sprintf("; %s is for a template to fill in: %s, and fill others in by what they are written for", text[:min(len(text), most)], render)
				continue
			}
		}
		if strings.Contains(p.Path, "template.") && strings.HasPrefix(p.Detail, "a pod needs at least one container") || strings.HasPrefix(p.Detail, `unknown field "$patch"`) {
			p.Detail += "; a patch is no manifest: " + render
		}
	}
}

// maxProblems is how many problems are listed; a thousand lines tell as much as a million.
const maxProblems = 1000

// join makes one error of the problems, those of a file in the order of its lines.
func join(problems []*Problem, order map[string]int) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortFunc(problems, func(a, b *Problem) int { return compareProblems(a, b, order) })
	problems = slices.CompactFunc(problems, func(a, b *Problem) bool { return *a == *b })
	errs := make([]error, 0, min(len(problems), maxProblems)+1)
	for i, p := range problems {
		if i == maxProblems {
			errs = append(errs, fmt.Errorf("and %d more problems", len(problems)-maxProblems))
			break
		}
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

func compareProblems(a, b *Problem, order map[string]int) int {
	return cmp.Or(
		cmp.Compare(order[a.Position.File], order[b.Position.File]),
		cmp.Compare(a.Position.File, b.Position.File),
		cmp.Compare(a.Position.Document, b.Position.Document),
		cmp.Compare(a.Position.Line, b.Position.Line),
		cmp.Compare(a.Object, b.Object),
		cmp.Compare(a.Path, b.Path),
		cmp.Compare(a.Detail, b.Detail))
}

// FieldProblem is an error that knows the field it is about.
type FieldProblem interface {
	error
	// Field returns the path of the field, such as "spec.amiFamily", and what is wrong there.
	Field() (path, detail string)
}
