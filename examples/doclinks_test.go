package examples_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// link is a reference to a declaration in a doc comment, such as [Name], [Type.Method], [pkg.Name] and [pkg.Type.Method].
var link = regexp.MustCompile(`\[\*?((?:[a-z]\w*\.)?[A-Z]\w*(?:\.[A-Z]\w*)?)\]`)

// A doc comment that refers to a declaration refers to one that is there.
func TestDocLinksLeadSomewhere(t *testing.T) {
	names := map[string]map[string]bool{} // by folder from the root: what it declares, methods and fields as Type.Name
	declared := func(dir string) map[string]bool {
		if names[dir] == nil {
			names[dir] = declarations(t, dir)
		}
		return names[dir]
	}
	checked := 0
	for path, source := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments)
		require.NoError(t, err)
		own := filepath.ToSlash(filepath.Dir(path))
		imported := map[string]string{} // folder by name, of packages of ours; other packages are not looked at
		for _, i := range file.Imports {
			at, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			dir, ours := strings.CutPrefix(at, module)
			name := filepath.Base(at)
			if i.Name != nil {
				name = i.Name.Name
			}
			if ours {
				imported[name] = dir
			}
		}
		for _, text := range docs(file) {
			for _, m := range link.FindAllStringSubmatch(text, -1) {
				pkg, name, qualified := strings.Cut(m[1], ".")
				dir := own
				switch {
				case !qualified || pkg[0] <= 'Z':
					name = m[1]
				case imported[pkg] == "":
					continue
				default:
					dir = imported[pkg]
				}
				checked++
				assert.True(t, declared(dir)[name], "%s: [%s] is nothing of %s", path, m[1], dir)
			}
		}
	}
	assert.Greater(t, checked, 500)
}

// docs are the doc comments of a file without their indented blocks.
func docs(file *ast.File) []string {
	var out []string
	add := func(groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if g != nil {
				lines := slices.DeleteFunc(strings.Split(g.Text(), "\n"), func(l string) bool { return strings.HasPrefix(l, "\t") })
				out = append(out, strings.Join(lines, "\n"))
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.File:
			add(n.Doc)
		case *ast.GenDecl:
			add(n.Doc)
		case *ast.FuncDecl:
			add(n.Doc)
		case *ast.TypeSpec:
			add(n.Doc)
		case *ast.ValueSpec:
			add(n.Doc)
		case *ast.Field:
			add(n.Doc)
		}
		return true
	})
	return out
}

// declarations are the names of a package, with those of methods and fields as Type.Name. What a struct embeds has names of its own.
func declarations(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	entries, err := os.ReadDir(filepath.Join("..", dir))
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", dir, e.Name()), nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d.Recv.List[0].Type) + "." + name
				}
				out[name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						for _, n := range s.Names {
							out[n.Name] = true
						}
					case *ast.TypeSpec:
						out[s.Name.Name] = true
						for _, member := range members(s.Type) {
							out[s.Name.Name+"."+member] = true
						}
					}
				}
			}
		}
	}
	return out
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// members are the fields of a struct and the methods of an interface.
func members(e ast.Expr) []string {
	var list *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		list = e.Fields
	case *ast.InterfaceType:
		list = e.Methods
	default:
		return nil
	}
	var out []string
	for _, f := range list.List {
		for _, n := range f.Names {
			out = append(out, n.Name)
		}
	}
	return out
}
