// Command overview writes a page of Markdown for each package that a program can import: its
// documentation, and what it exports with the first sentence of each.
//
//	overview ROOT OUT
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/joinery-sdk/joinery"

// aside are folders that are no part of the three released modules, and folders of programs that
// only the repository runs.
var aside = []string{"examples/judges", "examples/operator", "examples/karpenter"}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: overview ROOT OUT")
	}
	root, out := os.Args[1], os.Args[2]
	var packages []*doc.Package
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(root, dir)
		name := d.Name()
		if dir != root && strings.HasPrefix(name, ".") || name == "internal" || name == "testdata" || name == "generate" || slices.Contains(aside, rel) {
			return filepath.SkipDir
		}
		p, err := read(dir, path.Join(module, filepath.ToSlash(rel)))
		if p != nil && p.Name != "main" {
			packages = append(packages, p)
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range packages {
		known[p.ImportPath] = true
	}
	index := "# Packages\n\n| package | what it is |\n| --- | --- |\n"
	for _, p := range packages {
		at := within(p.ImportPath)
		index += fmt.Sprintf("| [`%s`](%s.md) | %s |\n", at, at, strings.ReplaceAll(p.Synopsis(p.Doc), "|", `\|`))
		if err := write(filepath.Join(out, at+".md"), page(p, known)); err != nil {
			log.Fatal(err)
		}
	}
	if err := write(filepath.Join(out, "README.md"), index); err != nil {
		log.Fatal(err)
	}
}

// read reads the package of a folder; nil if it has none.
func read(dir, importPath string) (*doc.Package, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			f, err := parser.ParseFile(set, filepath.Join(dir, e.Name()), nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil, nil
	}
	return doc.NewFromFiles(set, files, importPath)
}

// within is the path of a package in the repository.
func within(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

func page(p *doc.Package, known map[string]bool) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n```go\nimport %q\n```\n\n", within(p.ImportPath), p.ImportPath)
	printer := p.Printer()
	printer.HeadingLevel = 2
	printer.HeadingID = func(*comment.Heading) string { return "" }
	printer.DocLinkURL = func(l *comment.DocLink) string {
		symbol := l.Name
		if l.Recv != "" {
			symbol = l.Recv // methods stand at their type
		}
		to := cmp.Or(l.ImportPath, p.ImportPath)
		switch {
		case known[to]:
			url := strings.Repeat("../", strings.Count(within(p.ImportPath), "/")) + within(to) + ".md"
			if symbol != "" {
				url += "#" + strings.ToLower(symbol)
			}
			return url
		case l.Name == "":
			return "https://pkg.go.dev/" + to
		default:
			return l.DefaultURL("https://pkg.go.dev")
		}
	}
	b.Write(printer.Markdown(p.Parser().Parse(p.Doc)))
	type entry struct{ name, text string }
	var entries []entry
	add := func(name, text string) { entries = append(entries, entry{name, text}) }
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, name := range v.Names {
				if ast.IsExported(name) {
					add(name, v.Doc)
				}
			}
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs := func(list []*doc.Func) {
		for _, f := range list {
			add(f.Name, f.Doc)
		}
	}
	funcs(p.Funcs)
	for _, t := range p.Types {
		add(t.Name, t.Doc)
		funcs(t.Funcs)
		values(t.Consts)
		values(t.Vars)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	if len(entries) > 0 {
		fmt.Fprintf(&b, "\n## What it exports\n\n[All of it, with fields and methods](https://pkg.go.dev/%s)\n\n| name | what it is |\n| --- | --- |\n", p.ImportPath)
		for _, e := range entries {
			fmt.Fprintf(&b, "| [`%s`](https://pkg.go.dev/%s#%s){#%s} | %s |\n", e.name, p.ImportPath, e.name, strings.ToLower(e.name), strings.ReplaceAll(p.Synopsis(e.text), "|", `\|`))
		}
	}
	return b.String()
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}
