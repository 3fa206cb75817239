package scheduling_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
)

// section is one part of FIELDS.md.
type section struct {
	fields []string // of the table and of the list of those that do not bear
	tests  []string // package and test
}

var quoted = regexp.MustCompile("`([^`]+)`")

func readFields(t *testing.T) map[string]*section {
	t.Helper()
	data, err := os.ReadFile("FIELDS.md")
	require.NoError(t, err)
	version, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/api").Output()
	require.NoError(t, err)
	if !strings.Contains(string(data), "k8s.io/api "+regexp.MustCompile(`^v\d+\.\d+`).FindString(string(version))+";") {
		t.Skipf("FIELDS.md is about another minor than %s", version)
	}
	out := map[string]*section{}
	var at *section
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "## "):
			at = &section{}
			out[strings.TrimPrefix(line, "## ")] = at
		case strings.HasPrefix(line, "| `"):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			require.Len(t, cells, 3, line)
			at.fields = append(at.fields, strings.Trim(strings.TrimSpace(cells[0]), "`"))
			at.tests = append(at.tests, strings.TrimSpace(cells[2]))
		case strings.HasPrefix(line, "Do not bear: "):
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				at.fields = append(at.fields, m[1])
			}
		}
	}
	return out
}

// FIELDS.md lists every field of the API once, and nothing else.
func TestFieldsOfPodsAreListed(t *testing.T) {
	sections := readFields(t)
	for _, v := range []any{
		corev1.PodSpec{},
		corev1.Affinity{},
		corev1.NodeAffinity{},
		corev1.NodeSelector{},
		corev1.NodeSelectorTerm{},
		corev1.NodeSelectorRequirement{},
		corev1.PreferredSchedulingTerm{},
		corev1.PodAffinity{},
		corev1.PodAntiAffinity{},
		corev1.PodAffinityTerm{},
		corev1.WeightedPodAffinityTerm{},
		corev1.TopologySpreadConstraint{},
		corev1.Toleration{},
	} {
		typ := reflect.TypeOf(v)
		var want []string
		for field := range typ.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			want = append(want, name)
		}
		if at := sections[typ.Name()]; assert.NotNil(t, at, typ.Name()) {
			assert.ElementsMatch(t, want, at.fields, typ.Name())
		}
	}
}

// The same holds for claims, which are our own type.
func TestFieldsOfClaimsAreListed(t *testing.T) {
	var want []string
	for field := range reflect.TypeFor[scheduling.NodeClaim]().Fields() {
		want = append(want, field.Name)
	}
	at := readFields(t)["NodeClaim"]
	require.NotNil(t, at)
	assert.ElementsMatch(t, want, at.fields)
}

// The same holds for quotas.
func TestFieldsOfQuotasAreListed(t *testing.T) {
	var want []string
	for field := range reflect.TypeFor[capacityquota.Quota]().Fields() {
		want = append(want, field.Name)
	}
	at := readFields(t)["CapacityQuota"]
	require.NotNil(t, at)
	assert.ElementsMatch(t, want, at.fields)
}

// The same holds for pools. Their fields are those of the structs that manifests are decoded into.
func TestFieldsOfPoolsAreListed(t *testing.T) {
	sections := readFields(t)
	types := map[string]*ast.StructType{}
	for _, dir := range []string{"nodepool", "nodepool/internal/nodespec"} {
		for _, f := range parsed(t, dir, false) {
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.TypeSpec); ok {
					if body, ok := s.Type.(*ast.StructType); ok {
						types[s.Name.Name] = body
					}
				}
				return true
			})
		}
	}
	for title, name := range map[string]string{"NodePool v1": "wireV1", "NodePool v1beta1": "wireV1Beta1", "Provisioner v1alpha5": "wireProvisioner"} {
		require.Contains(t, types, name)
		var want []string
		for _, path := range paths(types, types[name], "") {
			// Structs that only contain other fields are not listed.
			if rest, ok := strings.CutPrefix(path, "spec."); ok && !slices.Contains([]string{"template", "template.metadata", "template.spec", "disruption"}, rest) {
				want = append(want, rest)
			}
		}
		require.NotEmpty(t, want)
		if at := sections[title]; assert.NotNil(t, at, title) {
			assert.ElementsMatch(t, want, at.fields, title)
		}
	}
}

// paths returns the JSON paths of a struct. Kubernetes' own types are not followed.
func paths(types map[string]*ast.StructType, s *ast.StructType, parent string) []string {
	var out []string
	for _, f := range s.Fields.List {
		if name, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 && types[name.Name] != nil { // embedded
			out = append(out, paths(types, types[name.Name], parent)...)
		}
		if f.Tag == nil {
			continue
		}
		tag, _ := strconv.Unquote(f.Tag.Value)
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name == "" {
			continue
		}
		out = append(out, parent+name)
		typ := f.Type
		for {
			switch inner := typ.(type) {
			case *ast.StarExpr:
				typ = inner.X
				continue
			case *ast.ArrayType:
				typ = inner.Elt
				continue
			}
			break
		}
		switch inner := typ.(type) {
		case *ast.StructType:
			out = append(out, paths(types, inner, parent+name+".")...)
		case *ast.Ident:
			if body := types[inner.Name]; body != nil {
				out = append(out, paths(types, body, parent+name+".")...)
			}
		case *ast.SelectorExpr:
			if x, ok := inner.X.(*ast.Ident); ok && x.Name == "nodespec" && types[inner.Sel.Name] != nil {
				out = append(out, paths(types, types[inner.Sel.Name], parent+name+".")...)
			}
		}
	}
	return out
}

// Every test that FIELDS.md names exists: the function, and the name of the subtest in its body.
func TestTestsOfFieldsExist(t *testing.T) {
	literals := map[string]map[string]bool{} // by "package Test": the texts in its body
	named := 0
	for title, at := range readFields(t) {
		for _, ref := range at.tests {
			named++
			dir, test, ok := strings.Cut(ref, " ")
			require.True(t, ok, "%s: %q: want package and test", title, ref)
			test, part, _ := strings.Cut(test, "/")
			if literals[dir+" "+test] == nil {
				for _, f := range parsed(t, filepath.Join("..", dir), true) {
					collect(literals, dir, f)
				}
			}
			found := literals[dir+" "+test]
			if assert.NotNil(t, found, "%s: there is no test %s", title, ref) {
				assert.True(t, part == "" || found[part], "%s: %s %s has no part %q", title, dir, test, part)
			}
		}
	}
	assert.Greater(t, named, 80)
}

func collect(literals map[string]map[string]bool, dir string, f *ast.File) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(fn.Name.Name, "Test") {
			continue
		}
		texts := map[string]bool{}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					texts[text] = true
				}
			}
			return true
		})
		literals[dir+" "+fn.Name.Name] = texts
	}
}

// parsed returns the Go files of a folder, tests or others.
func parsed(t *testing.T, dir string, tests bool) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") != tests {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		out = append(out, f)
	}
	return out
}
