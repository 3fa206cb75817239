package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// wheel is a package downloaded by pip.
type wheel struct {
	name, version, hash string
	files               *zip.ReadCloser
	made                time.Time // of the newest file read so far
}

// fetchWheel downloads a wheel with the ordinary client, by name and version only.
func fetchWheel(ctx context.Context, dir, name, version string) (*wheel, error) {
	dest := filepath.Join(dir, name+"-"+version)
	cmd := exec.CommandContext(ctx, "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", dest, name+"=="+version)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pip download %s==%s: %w\n%s", name, version, err, out)
	}
	found, err := filepath.Glob(filepath.Join(dest, "*.whl"))
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("pip download %s==%s: got %d wheels, want 1", name, version, len(found))
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	files, err := zip.OpenReader(found[0])
	if err != nil {
		return nil, err
	}
	return &wheel{name: name, version: version, hash: "sha256:" + hex.EncodeToString(sum[:]), files: files}, nil
}

// read returns a file of the wheel, unpacked if only its .gz is there.
func (w *wheel) read(path string) ([]byte, error) {
	for _, f := range w.files.File {
		if f.Name != path && f.Name != path+".gz" {
			continue
		}
		if f.Modified.After(w.made) {
			w.made = f.Modified
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err != nil || f.Name == path {
			return data, err
		}
		unzip, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(unzip)
	}
	return nil, fmt.Errorf("%s %s has no file %s", w.name, w.version, path)
}

// list returns the names of the files in a folder of the wheel, without folder and endings.
func (w *wheel) list(folder string) []string {
	var out []string
	for _, f := range w.files.File {
		if rest, ok := strings.CutPrefix(f.Name, folder+"/"); ok && rest != "" {
			out = append(out, strings.TrimSuffix(strings.TrimSuffix(rest, ".gz"), ".json"))
		}
	}
	return out
}

// module is a Go module in the module cache.
type module struct {
	Path, Version, Dir, Sum string
}

// fetchModule downloads a module with the ordinary client. It is never imported: the files are read
// as data.
func fetchModule(ctx context.Context, path, version string) (module, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path+"@"+version)
	cmd.Dir = os.TempDir() // outside of any module, so that no go.mod is touched
	out, err := cmd.Output()
	if err != nil {
		return module{}, fmt.Errorf("go mod download %s@%s: %w", path, version, err)
	}
	var m module
	if err := json.Unmarshal(out, &m); err != nil {
		return module{}, err
	}
	return m, nil
}

func (m module) file(parts ...string) string {
	return filepath.Join(append([]string{m.Dir}, parts...)...)
}
