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
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/joinery-sdk/joinery/"

// imports is the table of ARCHITECTURE.md: which packages of ours a package may import, its tests included. Sub-packages
// of a stage may import what the stage may, and the stage itself; examples may import everything.
var imports = map[string][]string{
	"requirements":                    {},
	"requirements/kube":               {"requirements"},
	"instancetypes/resources":         {"requirements"},
	"instancetypes":                   {"requirements", "instancetypes/resources"},
	"instancetypes/kwok":              {"requirements", "requirements/kube", "instancetypes/resources", "instancetypes"},
	"instancetypes/pricing":           {"requirements", "instancetypes/resources", "instancetypes"},
	"instancetypes/ec2":               {"requirements", "instancetypes/resources", "instancetypes", "instancetypes/pricing", "instancetypes/kwok"},
	"scheduling/nodepool":             {"requirements", "instancetypes/resources", "internal/strictjson"},
	"scheduling":                      {"requirements", "requirements/kube", "instancetypes", "instancetypes/resources", "scheduling/nodepool", "scheduling/internal/admission", "internal/toleration", "internal/selector", "internal/podcheck"},
	"scheduling/buffer":               {"internal/strictjson", "instancetypes/resources"},
	"scheduling/capacityquota":        {"requirements", "requirements/kube", "internal/strictjson", "instancetypes/resources"},
	"scheduling/defaultspread":        {"internal/strictjson"},
	"scheduling/internal/admission":   {"instancetypes/resources"},
	"scheduling/internal/bind":        {"requirements", "scheduling/internal/hostport", "scheduling/internal/interpod", "scheduling/internal/taints"}, // and nothing of planning
	"scheduling/internal/hostport":    {},
	"scheduling/internal/interpod":    {"requirements", "scheduling/internal/podclass", "scheduling/internal/quota", "internal/selector"},
	"scheduling/internal/nodefeature": {},
	"scheduling/internal/podclass":    {"instancetypes/resources", "scheduling/internal/nodefeature"},
	"scheduling/internal/volume":      {"requirements", "requirements/kube", "instancetypes/resources", "scheduling/internal/podclass"},
	"binpack":                         {"requirements"},
	"deprovision":                     {"requirements", "instancetypes", "instancetypes/resources", "scheduling/nodepool", "internal/toleration"},
	"cloudprovider":                   {"requirements", "instancetypes", "instancetypes/resources", "scheduling/nodepool"},
	"cloudprovider/aws":               {"requirements", "instancetypes", "instancetypes/resources", "scheduling/nodepool", "instancetypes/ec2", "instancetypes/pricing", "cloudprovider"},
	"internal/strictjson":             {"requirements"},
	"internal/podcheck":               {"requirements", "requirements/kube", "instancetypes/resources", "internal/strictjson"},
	"internal/toleration":             {},
	"internal/selector":               {},
}

type goPackage struct {
	ImportPath, Name                   string
	Imports, TestImports, XTestImports []string
}

// packages are those of the modules that go.work joins.
func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Imports,TestImports,XTestImports", "./...", "./cloudprovider/aws/...", "./examples/...")
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
		if strings.HasPrefix(path, "examples/") || strings.HasPrefix(path, "cloudprovider/") || strings.HasPrefix(path, ".") || strings.Contains(path, "/generate/") {
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

// Whoever imports the library gets the Kubernetes API's types with it and no cloud, no programs and no client, not even as modules
// that nothing is compiled of.
func TestWhoeverImportsTheLibraryGetsLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module of its own")
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"go.sum": string(sums),
		"go.mod": "module example.com/importer\n\ngo 1.26.0\n\nrequire github.com/joinery-sdk/joinery v0.0.0-00010101000000-000000000000\n\n" +
			"replace github.com/joinery-sdk/joinery => " + strconv.Quote(root) + "\n",
		"importer.go": "package importer\n\nimport (\n\t_ \"" + module + "binpack\"\n\t_ \"" + module + "requirements\"\n\t_ \"" + module + "scheduling\"\n)\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	run("build", "./...") // completes go.mod
	graph := run("mod", "graph")
	require.Contains(t, graph, "k8s.io/api@")
	for _, heavy := range []string{"/aws", "cobra", "go-pretty", "gonum", "k8s.io/client-go", "k8s.io/component-helpers", "controller-runtime", "karpenter", module} {
		assert.NotContains(t, graph, heavy)
	}
	direct := regexp.MustCompile(`(?m)^github\.com/joinery-sdk/joinery@\S+ (\S+)@`).FindAllStringSubmatch(graph, -1)
	assert.Less(t, len(direct), 25, "modules in go.mod")
}

// The fields that scheduling/FIELDS.md lists are those of the minor that is tested with.
func TestFieldsAreOfTheMinorThatIsTested(t *testing.T) {
	version, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/api").Output()
	require.NoError(t, err)
	fields, err := os.ReadFile("../scheduling/FIELDS.md")
	require.NoError(t, err)
	assert.Contains(t, string(fields), "k8s.io/api "+regexp.MustCompile(`^v\d+\.\d+`).FindString(string(version))+";")
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

// Whoever imports the plan gets no cloud, no catalogue and no programs with it. Programs that read no recordings do not compile
// what merges them, which would take an eighth of the time of README's first command.
func TestWhatIsImportedIsLight(t *testing.T) {
	merging := []string{"strategicpatch", "google.golang.org/protobuf", "gnostic", "easyjson"}
	for pkg, heavies := range map[string][]string{
		"./plan":        {module + "instancetypes/ec2", module + "cloudprovider", module + "examples/pipeline", "aws", "cobra", "gonum", "k8s.io/client-go"},
		"./provision":   append(merging, "k8s.io/client-go", "aws-sdk-go"),
		"./consolidate": merging,
		"./replay":      merging,
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", pkg).Output()
		require.NoError(t, err)
		for dep := range strings.Lines(string(out)) {
			for _, heavy := range heavies {
				assert.NotContains(t, dep, heavy, pkg)
			}
		}
	}
}
