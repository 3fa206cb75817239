package examples_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	"instancetypes/resources": {"requirements"},
	"instancetypes":           {"requirements", "instancetypes/resources"},
	"instancetypes/kwok":      {"requirements", "instancetypes/resources", "instancetypes"},
	"instancetypes/pricing":   {"requirements", "instancetypes/resources", "instancetypes"},
	"instancetypes/ec2":       {"requirements", "instancetypes/resources", "instancetypes", "instancetypes/pricing", "instancetypes/kwok"},
	"scheduling/nodepool":     {"requirements", "instancetypes/resources"},
	"scheduling":              {"requirements", "instancetypes", "instancetypes/resources", "scheduling/nodepool", "scheduling/admission"},
	"scheduling/admission":    {},
	"scheduling/podclass":     {"instancetypes/resources"},
	"scheduling/volume":       {"requirements", "instancetypes/resources"},
	"scheduling/topology":     {"requirements"},
	"binpack":                 {"requirements"},
	"deprovision":             {"requirements", "instancetypes", "instancetypes/resources", "scheduling/nodepool"},
	"cloudprovider":           {"requirements", "instancetypes", "instancetypes/resources", "scheduling/nodepool"},
	"cloudprovider/aws":       {"requirements", "instancetypes", "instancetypes/resources", "scheduling/nodepool", "instancetypes/ec2", "instancetypes/pricing", "cloudprovider"},
}

type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
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
	forbidden := []string{"os", "net", "net/http", "log", "log/slog", "math/rand", "os/exec", "syscall"}
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(pkg, "examples") || strings.HasPrefix(pkg, "cloudprovider") || strings.HasSuffix(pkg, "/generate") {
			continue
		}
		for _, dep := range p.Imports {
			assert.NotContains(t, forbidden, dep, "%s imports %s", pkg, dep)
		}
	}
}

// A reader of the algebra compiles the Kubernetes API types and nothing else.
func TestRequirementsAreLight(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "../requirements")
	out, err := cmd.Output()
	require.NoError(t, err)
	for _, heavy := range []string{"aws", "k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/apiserver"} {
		for line := range strings.Lines(string(out)) {
			assert.NotContains(t, line, heavy)
		}
	}
}

func TestSmallFiles(t *testing.T) {
	const most = 500
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(data), "\n"); n > most && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s has %d lines, at most %d are allowed", path, n, most)
		}
		return nil
	})
	require.NoError(t, err)
}
