package manifests

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Position is a place in the input. The zero value is an unknown place.
type Position struct {
	// File is the given name, or the one found in a directory; "-" is standard input.
	File string
	// Document is the number of the document in the file, from 1.
	Document int
	// Line counts from 1; 0 means unknown.
	Line int
}

// String returns "pods.yaml:12", or "pods.yaml: document 3" if the line is unknown.
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
	// Position is that of the field if it is known, otherwise that of the object.
	Position Position
	// Object is kind and name ("Pod shop/web-0", "NodePool default"). It is empty if no object
	// could be identified.
	Object string
	// Path is the field. It is empty for the object as a whole.
	Path string
	// Detail says what is wrong and, if known, how to fix it.
	Detail string

	noObject bool // the value has no kind or no apiVersion, and may not be a manifest at all
	template bool // a template, which is no YAML
}

// Error returns the line for people: "pods.yaml:12: Provisioner default: spec.weight: 101: want 1
// to 100".
func (p *Problem) Error() string {
	parts := []string{}
	for _, part := range []string{p.Position.String(), p.Object, p.Path, p.Detail} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// filled matches where a template is filled in: by Helm, Jinja, a shell, Flux or Terraform, or by
// hand.
var filled = regexp.MustCompile(`\{\{[^\n]*?\}\}|\{\{[^\n]*|\$\{[^}\n]*\}?|%\{[^}\n]*\}?|<<[A-Za-z_][\w -]*>>|<[A-Z][A-Z0-9_-]+>`)

// hint explains problems on lines with a value to fill in, and problems that show that the file is
// a patch.
func hint(c chunk, problems []*Problem) {
	if len(problems) == 0 {
		return
	}
	lines := bytes.Split(c.data, []byte("\n"))
	for _, p := range problems {
		at := p.Position.Line - c.position.Line
		p.template = strings.Contains(p.Detail, "is a placeholder")
		if at >= 0 && at < len(lines) && !strings.Contains(p.Detail, render) {
			if text := filled.Find(lines[at]); text != nil {
				const most = 40
				p.Detail += fmt.Sprintf("; %s is a placeholder of a template: %s, or fill it in with its own tool", text[:min(len(text), most)], render)
				continue
			}
		}
		if strings.Contains(p.Path, "template.") && strings.HasPrefix(p.Detail, "a pod needs at least one container") || strings.HasPrefix(p.Detail, `unknown field "$patch"`) {
			p.Detail += patch
		}
	}
}

// maxProblems limits how many problems are listed: a thousand lines say as much as a million.
const maxProblems = 1000

// join makes one error of the problems, ordered by file and line.
func join(problems []*Problem, order map[string]int) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortFunc(problems, func(a, b *Problem) int { return compareProblems(a, b, order) })
	problems = slices.CompactFunc(problems, func(a, b *Problem) bool { return *a == *b })
	problems = oneOfTemplates(problems)
	errs := make([]error, 0, min(len(problems), maxProblems)+1)
	for i, p := range problems {
		if i == maxProblems {
			errs = append(errs, errors.New("and "+plural(len(problems)-maxProblems, "more problem", "more problems")))
			break
		}
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// oneOfTemplates keeps one problem of the templates of a directory, such as those of a chart, and
// counts the others: to render it is the answer to all of them.
func oneOfTemplates(problems []*Problem) []*Problem {
	kept := make([]*Problem, 0, len(problems))
	at := map[string]int{} // of the kept problem, by directory
	places, files := map[string]int{}, map[string]int{}
	seen := map[string]bool{}
	for _, p := range problems {
		dir := filepath.Dir(p.Position.File)
		i, known := at[dir]
		switch {
		case p.template && known && kept[i].Position.File == p.Position.File:
			places[dir]++
		case p.template && known && !seen[p.Position.File]:
			files[dir]++
		case !p.template || !known:
			if p.template {
				at[dir] = len(kept)
			}
			kept = append(kept, p)
		}
		seen[p.Position.File] = seen[p.Position.File] || p.template
	}
	for dir, i := range at {
		var more []string
		if n := places[dir]; n > 0 {
			more = append(more, plural(n, "more place of this file", "more places of this file"))
		}
		if n := files[dir]; n > 0 {
			more = append(more, plural(n, "more file of this directory", "more files of this directory"))
		}
		if len(more) > 0 {
			p := *kept[i]
			p.Detail += "; likewise " + strings.Join(more, " and ")
			kept[i] = &p
		}
	}
	return kept
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

// FieldProblem is an error that knows its field.
type FieldProblem interface {
	error
	// Field returns the path of the field, such as "spec.amiFamily", and what is wrong there.
	Field() (path, detail string)
}
