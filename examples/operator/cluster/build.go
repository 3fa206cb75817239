package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// kubernetesVersion is what the programs say they are: the version of k8s.io/kubernetes in
// kubernetes/go.mod, which only a release build knows by itself.
const kubernetesVersion = "v1.36.3"

// linkerFlags make builds small and the same everywhere.
const linkerFlags = "-s -w -X k8s.io/component-base/version.gitVersion=" + kubernetesVersion +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36" +
	" -X k8s.io/component-base/version.gitTreeState=clean"

// program is a binary, the package that it is built from, and the folder of the module that pins
// its version.
type program struct{ name, pkg, module string }

func programs() []program {
	return []program{
		{"etcd", "go.etcd.io/etcd/server/v3", "kubernetes"},
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "kubernetes"},
		{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "kubernetes"},
		{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", "kubernetes"},
		{"kubectl", "k8s.io/kubernetes/cmd/kubectl", "kubernetes"},
		{"kwok", "sigs.k8s.io/kwok/cmd/kwok", "kwok"},
	}
}

// stages are the files of kwok's module that say how its nodes and pods live.
func stages() []string {
	return []string{
		"node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
		"pod/fast/pod-ready.yaml", "pod/fast/pod-complete.yaml", "pod/fast/pod-delete.yaml",
	}
}

// Build returns the folder with the programs and kwok's stages. Missing programs are built first,
// which takes about five minutes on two cores. Lines about this are written to progress. The folder
// is named by a hash of everything that its content depends on, so another version never runs an
// old binary. Build works anywhere below the module examples/operator, with the go command.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	source, err := goCommand(ctx, ".", "list", "-f", "{{.Dir}}", "github.com/joinery-sdk/joinery/examples/operator/cluster")
	if err != nil {
		return "", fmt.Errorf("cluster: run this below examples/operator: %w", err)
	}
	key, err := buildKey(ctx, source)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(source, "..", "..", "..", ".cache", "cluster", key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	if err := writeStages(ctx, source, dir); err != nil {
		return "", err
	}
	all := programs()
	for i, p := range all {
		path := filepath.Join(dir, p.name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		start := time.Now()
		_, _ = fmt.Fprintf(progress, "building %s (%d of %d) from %s ...", p.name, i+1, len(all), p.pkg)
		if err := BuildProgram(ctx, filepath.Join(source, p.module), p.pkg, path); err != nil {
			_, _ = fmt.Fprintln(progress)
			return "", err
		}
		_, _ = fmt.Fprintf(progress, " %.0f s\n", time.Since(start).Seconds())
	}
	return dir, nil
}

// BuildProgram builds a main package as the module in a folder pins it. The file appears only once
// it is whole.
func BuildProgram(ctx context.Context, module, pkg, path string) error {
	partial := fmt.Sprintf("%s.%d", path, os.Getpid())
	if _, err := goCommand(ctx, module, "build", "-buildvcs=false", "-trimpath", "-ldflags", linkerFlags, "-o", partial, pkg); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

// buildKey is a hash of what the binaries are made from.
func buildKey(ctx context.Context, source string) (string, error) {
	version, err := goCommand(ctx, source, "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, _ = fmt.Fprintln(h, version, runtime.GOOS, runtime.GOARCH, linkerFlags, programs(), stages())
	for _, name := range []string{"kubernetes/go.mod", "kubernetes/go.sum", "kwok/go.mod", "kwok/go.sum"} {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("cluster: %w", err)
		}
		_, _ = h.Write(data)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

func writeStages(ctx context.Context, source, dir string) error {
	path := filepath.Join(dir, "stages.yaml")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	module, err := goCommand(ctx, filepath.Join(source, "kwok"), "mod", "download", "-json", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(module, `"Dir": "`)
	folder, _, ok := strings.Cut(rest, `"`)
	if !ok {
		return fmt.Errorf("cluster: go mod download does not say where sigs.k8s.io/kwok is")
	}
	var all [][]byte
	for _, s := range stages() {
		data, err := os.ReadFile(filepath.Join(folder, "kustomize", "stage", filepath.FromSlash(s)))
		if err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
		all = append(all, data)
	}
	return os.WriteFile(path, bytes.Join(all, []byte("\n---\n")), 0o644)
}

// OfflineError says that modules are missing and could not be downloaded.
type OfflineError struct{ Err error }

// Error returns what the go command said.
func (e *OfflineError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the go command.
func (e *OfflineError) Unwrap() error { return e.Err }

// unreachable looks for how the go command says that there is no network, or that it must not use
// it.
func unreachable(problems string) bool {
	return slices.ContainsFunc([]string{"dial tcp", "no such host", "connection refused", "i/o timeout", "module lookup disabled by GOPROXY=off"}, func(s string) bool {
		return strings.Contains(problems, s)
	})
}

// goCommand runs the go command in a folder, with cgo off so that binaries need nothing, and
// returns what it prints.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = dir
	// What the caller builds with (a vendor folder, another mode of modules) is not what these
	// modules are built with.
	c.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GOFLAGS=") }), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	var out, problems bytes.Buffer
	c.Stdout, c.Stderr = &out, &problems
	if err := c.Run(); err != nil {
		said := problems.String() + out.String() // with -json errors are on stdout
		err = fmt.Errorf("cluster: go %s: %w\n%s", strings.Join(args, " "), err, said)
		if unreachable(said) {
			return "", &OfflineError{err}
		}
		return "", err
	}
	return strings.TrimSpace(out.String()), nil
}
