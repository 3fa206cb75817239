package examples_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/joinery-sdk/joinery/"

// imports is the table of ARCHITECTURE.md: which packages of ours a package may import, its tests included. Sub-packages
// of a stage may import what the stage may, and the stage itself; examples may import everything.
var imports = map[string][]string{
	"requirements":            {},
	"requirements/kube":       {"requirements"},
	"instancetypes/resources": {"requirements"},
	"instancetypes":           {"requirements", "instancetypes/resources"},
	"instancetypes/kwok":      {"requirements", "requirements/kube", "instancetypes/resources", "instancetypes"},
	"instancetypes/pricing":   {"requirements", "instancetypes/resources", "instancetypes"},
	"instancetypes/ec2":       {"requirements", "instancetypes/resources", "instancetypes", "instancetypes/pricing", "instancetypes/kwok"},
	"scheduling/nodepool":     {"requirements", "instancetypes/resources"},
	"scheduling":              {"requirements", "requirements/kube", "instancetypes", "instancetypes/resources", "scheduling/nodepool", "scheduling/admission", "internal/toleration"},
	"scheduling/admission":    {},
	"scheduling/podclass":     {"instancetypes/resources"},
	"scheduling/volume":       {"requirements", "requirements/kube", "instancetypes/resources"},
	"binpack":                 {"requirements"},
	"deprovision":             {"requirements", "instancetypes", "instancetypes/resources", "scheduling/nodepool", "internal/toleration"},
	"cloudprovider":           {"requirements", "instancetypes", "instancetypes/resources", "scheduling/nodepool"},
	"cloudprovider/aws":       {"requirements", "instancetypes", "instancetypes/resources", "scheduling/nodepool", "instancetypes/ec2", "instancetypes/pricing", "cloudprovider", "internal/awstest"},
	"internal/toleration":     {},
	"internal/awstest":        {"instancetypes/ec2", "cloudprovider"},
}

type goPackage struct {
	ImportPath, Name                   string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	dec := json.NewDecoder(strings.NewReader(string(out)))
	var list []goPackage
	for {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		list = append(list, p)
	}
}

// stage is the longest entry of the table that the package lies in.
func stage(pkg string) string {
	best := ""
	for s := range imports {
		if (pkg == s || strings.HasPrefix(pkg, s+"/")) && len(s) > len(best) {
			best = s
		}
	}
	return best
}

func TestImportTable(t *testing.T) {
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, module)
		if pkg == "examples" || strings.HasPrefix(pkg, "examples/") {
			continue
		}
		own := stage(pkg)
		if !assert.NotEmpty(t, own, "%s is not in the import table", pkg) {
			continue
		}
		for _, dep := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			dep, ours := strings.CutPrefix(dep, module)
			if !ours || dep == pkg || strings.HasPrefix(dep, own+"/") || dep == own {
				continue
			}
			allowed := slices.ContainsFunc(imports[own], func(a string) bool {
				return dep == a || strings.HasPrefix(dep, a+"/") && (a == "instancetypes/ec2" || a == "cloudprovider")
			})
			assert.True(t, allowed, "%s imports %s", pkg, dep)
		}
	}
}

// The core reads no clock, starts nothing and talks to nobody.
func TestCoreIsPure(t *testing.T) {
	forbidden := []string{"os", "net", "net/http", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "os/exec", "syscall"}
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(pkg, "examples") || strings.HasPrefix(pkg, "cloudprovider") || strings.HasPrefix(pkg, "internal") || strings.HasSuffix(pkg, "/generate") || pkg == "binpack/internal/brute" { // an oracle, which only tests import
			continue
		}
		for _, dep := range p.Imports {
			assert.NotContains(t, forbidden, dep, "%s imports %s", pkg, dep)
		}
	}
}

// Time is an argument: the core may know what a duration is, but never asks for the time or waits.
func TestCoreReadsNoClock(t *testing.T) {
	clock := regexp.MustCompile(`\btime\.(Now|Since|Until|Sleep|After|AfterFunc|Tick|NewTimer|NewTicker)\b`)
	for path, data := range sources(t) {
		if strings.HasPrefix(path, "examples/") || strings.HasPrefix(path, "cloudprovider/") || strings.HasPrefix(path, "internal/awstest/") || strings.HasPrefix(path, ".") || strings.Contains(path, "/generate/") {
			continue
		}
		assert.NotRegexp(t, clock, data, path)
	}
}

// A package that outgrows 12 files or 30 exports splits by idea. The algebra has a constructor for each operator.
func TestSmallPackages(t *testing.T) {
	const mostFiles, mostExports = 12, 30
	exported := regexp.MustCompile(`(?m)^(func|type|var|const) [A-Z]`)
	files, exports := map[string]int{}, map[string]int{}
	for path, data := range sources(t) {
		dir := filepath.Dir(path)
		files[dir]++
		exports[dir] += len(exported.FindAllString(data, -1))
	}
	for dir, n := range files {
		assert.LessOrEqual(t, n, mostFiles, "files of %s", dir)
		if !slices.Contains([]string{"requirements"}, dir) {
			assert.LessOrEqual(t, exports[dir], mostExports, "exports of %s", dir)
		}
	}
}

// sources are the files that are not tests, by path from the root.
func sources(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel("..", path)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	require.NoError(t, err)
	return out
}

// Whoever imports the algebra or the packer compiles the standard library and us, nothing else.
func TestAlgebraAndPackerAreLight(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "../requirements", "../binpack")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), module+"binpack\n")
	for pkg := range strings.Lines(string(out)) {
		assert.True(t, strings.HasPrefix(pkg, module), "not of the standard library: %s", pkg)
	}
}

func TestSmallFiles(t *testing.T) {
	const most = 500
	for path, data := range sources(t) {
		assert.LessOrEqual(t, strings.Count(data, "\n"), most, "lines of %s", path)
	}
}

// What others import is compared with a baseline; a package without one would change unseen.
func TestEveryPackageHasABaseline(t *testing.T) {
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, module)
		if p.Name == "main" || strings.Contains("/"+pkg+"/", "/internal/") {
			continue
		}
		assert.FileExists(t, filepath.Join("..", ".ci", "api", strings.ReplaceAll(pkg, "/", "_")+".api"), "make api-baseline")
	}
}

// Whoever imports the plan gets no cloud, no catalogue and no programs with it.
func TestPlanIsLight(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./plan")
	out, err := cmd.Output()
	require.NoError(t, err)
	for pkg := range strings.Lines(string(out)) {
		for _, heavy := range []string{module + "instancetypes/ec2", module + "cloudprovider", module + "examples/pipeline", "aws", "cobra", "gonum", "k8s.io/client-go"} {
			assert.NotContains(t, pkg, heavy)
		}
	}
}
