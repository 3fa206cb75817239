package examples_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whoever looks a type up finds a program that runs with it: an Example with output that bears the type's name, or that
// names the type, one of its constants, or a function of the package that makes it.
func TestEveryTypeIsInAnExample(t *testing.T) {
	packages := 0
	for _, dir := range libraryFolders(t) {
		p := parseFolder(t, dir)
		if p.name == "" || p.name == "main" {
			continue
		}
		packages++
		assert.Empty(t, p.unshown(), "types of %s that no Example shows", dir)
	}
	assert.Greater(t, packages, 30, "the packages were found")
}

// libraryFolders are the folders of the module whose packages others import.
func libraryFolders(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == ".." {
			return err
		}
		_, noModule := os.Stat(filepath.Join(path, "go.mod"))
		if name := d.Name(); noModule == nil || strings.HasPrefix(name, ".") || name == "testdata" || name == "internal" {
			return filepath.SkipDir
		}
		dirs = append(dirs, path)
		return nil
	})
	require.NoError(t, err)
	return dirs
}

// folder is what a package exports and what its Examples name.
type folder struct {
	name string
	// types are the exported types; leads are functions and constants by the types that they give.
	types, shown map[string]bool
	leads        map[string][]string
}

func parseFolder(t *testing.T, dir string) folder {
	t.Helper()
	p := folder{types: map[string]bool{}, shown: map[string]bool{}, leads: map[string][]string{}}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	var tests []*ast.File
	for _, path := range paths {
		test := strings.HasSuffix(path, "_test.go")
		mode := parser.SkipObjectResolution
		if test {
			mode |= parser.ParseComments // outputs are comments
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, mode)
		require.NoError(t, err)
		if test {
			tests = append(tests, file)
			continue
		}
		p.name = file.Name.Name
		for _, d := range file.Decls {
			p.export(d)
		}
	}
	for _, file := range tests {
		self := p.qualifier(file, module+filepath.ToSlash(strings.TrimPrefix(dir, ".."+string(filepath.Separator))))
		for _, e := range doc.Examples(file) {
			if e.Output != "" || e.EmptyOutput {
				p.show(e, self)
			}
		}
	}
	return p
}

// export notes the types that a declaration exports, and what leads to them.
func (p *folder) export(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Type.Results != nil {
			for _, r := range d.Type.Results.List {
				p.lead(d.Name.Name, r.Type)
			}
		}
	case *ast.GenDecl:
		var last ast.Expr // constants without a type have that of the one before
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					p.types[s.Name.Name] = true
				}
			case *ast.ValueSpec:
				if s.Type != nil || len(s.Values) > 0 {
					last = s.Type
				}
				for _, name := range s.Names {
					p.lead(name.Name, last)
				}
			}
		}
	}
}

// lead notes that a name gives a type, or pointers to it, or many of it.
func (p *folder) lead(name string, typ ast.Expr) {
	switch typ := typ.(type) {
	case *ast.Ident:
		p.leads[name] = append(p.leads[name], typ.Name)
	case *ast.StarExpr:
		p.lead(name, typ.X)
	case *ast.ArrayType:
		p.lead(name, typ.Elt)
	case *ast.IndexExpr:
		p.lead(name, typ.X)
	}
}

// qualifier is what the file writes before the dot of the package's names; empty for tests inside the package.
func (p *folder) qualifier(file *ast.File, path string) string {
	for _, i := range file.Imports {
		if strings.Trim(i.Path.Value, `"`) == path {
			if i.Name != nil {
				return i.Name.Name
			}
			return p.name
		}
	}
	return ""
}

// show notes what an Example is named after and what it mentions.
func (p *folder) show(e *doc.Example, qualifier string) {
	mention := func(name string) {
		p.shown[name] = true
		for _, typ := range p.leads[name] {
			p.shown[typ] = true
		}
	}
	subject, _, _ := strings.Cut(e.Name, "_")
	mention(subject)
	ast.Inspect(e.Code, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && qualifier != "" && x.Name == qualifier {
				mention(n.Sel.Name)
			}
		case *ast.Ident:
			if qualifier == "" {
				mention(n.Name)
			}
		}
		return true
	})
}

func (p *folder) unshown() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(p.types)) {
		if !p.shown[name] {
			names = append(names, name)
		}
	}
	return names
}
