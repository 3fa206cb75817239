// Release builds the kubectl plugin for all platforms and writes the manifest with which krew
// installs it:
//
//	go run ./examples/kubectl-joinery/release --version v0.1.0 --out dist
//
// Upload the archives to the release of that version. Send the manifest, joinery.yaml, to an index
// of krew, or pass it to kubectl krew install --manifest. The same source, version of Go and
// platform give the same bytes.
package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

func main() { os.Exit(inputs.End(os.Stderr, command().Execute())) }

func command() *cobra.Command {
	var version, out, url string
	var platforms []string
	cmd := inputs.Command(&cobra.Command{
		Use:   "release --version VERSION",
		Short: "build the kubectl plugin for all platforms, with its manifest for krew",
	}, func(cmd *cobra.Command, _ io.Writer) error {
		if !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(version) {
			return inputs.Bad(fmt.Errorf("--version %q: want a version such as v0.1.0", version))
		}
		if err := os.MkdirAll(out, 0o755); err != nil {
			return err
		}
		manifest := plugin(version)
		for _, name := range platforms {
			p, err := build(cmd, name, out)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			p.URI = url + "/" + version + "/" + p.archive
			manifest.Spec.Platforms = append(manifest.Spec.Platforms, p)
		}
		text, err := yaml.Marshal(manifest)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(out, "joinery.yaml"), text, 0o644) //nolint:gosec // it is published
	})
	cmd.Version = "" // --version is that of the release
	f := cmd.Flags()
	f.StringVar(&version, "version", "", "the version, such as v0.1.0, which is also the tag of the release")
	f.StringVar(&out, "out", "dist", "the `DIR` to write to")
	f.StringVar(&url, "url", "https://github.com/joinery-sdk/joinery/releases/download", "address of the releases; the version and the name of the archive are appended")
	f.StringSliceVar(&platforms, "platform", []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64"}, "the platforms, as OS/ARCH")
	return cmd
}

// manifest is a Plugin of krew.googlecontainertools.github.com/v1alpha2.
type manifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       spec              `json:"spec"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`

	archive string
}

func plugin(version string) manifest {
	return manifest{"krew.googlecontainertools.github.com/v1alpha2", "Plugin", map[string]string{"name": "joinery"}, spec{
		Version: version, Homepage: "https://github.com/joinery-sdk/joinery",
		ShortDescription: "Explain pending pods and plan nodes",
		Description: "Reads the cluster and says why pods are pending, which nodes they need and at\nwhat price, and which nodes could be given back. Every fix that it offers was\n" +
			"tried, and every plan has a lower bound. It never writes to the cluster.\n",
	}}
}

// build compiles the plugin for a platform, and packs it with the licence.
func build(cmd *cobra.Command, name, dir string) (p platform, err error) {
	system, arch, ok := strings.Cut(name, "/")
	if !ok {
		return p, inputs.Bad(errors.New("want OS/ARCH"))
	}
	p.Selector.MatchLabels = map[string]string{"os": system, "arch": arch}
	p.Bin, p.archive = "kubectl-joinery", fmt.Sprintf("kubectl-joinery_%s_%s.tar.gz", system, arch)
	if system == "windows" {
		p.Bin += ".exe"
	}
	work, err := os.MkdirTemp("", "kubectl-joinery-")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(work)
	binary := filepath.Join(work, p.Bin)
	compile := exec.CommandContext(cmd.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "github.com/joinery-sdk/joinery/examples/kubectl-joinery") //nolint:gosec // the developer's own command
	compile.Env, compile.Stderr = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"), cmd.ErrOrStderr()
	if err := compile.Run(); err != nil {
		return p, err
	}
	root, err := exec.CommandContext(cmd.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/joinery-sdk/joinery").Output()
	if err != nil {
		return p, err
	}
	p.SHA256, err = pack(filepath.Join(dir, p.archive), binary, filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	return p, err
}

// pack writes an archive of files without times and owners, so that the same files give the same
// bytes, and returns its sum.
func pack(name string, files ...string) (sum string, err error) {
	out, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	sha := sha256.New()
	zip := gzip.NewWriter(io.MultiWriter(out, sha))
	archive := tar.NewWriter(zip)
	for i, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		header := &tar.Header{Name: filepath.Base(path), Size: int64(len(data)), Mode: 0o644}
		if i == 0 {
			header.Mode = 0o755
		}
		if err := archive.WriteHeader(header); err != nil {
			return "", err
		}
		if _, err := archive.Write(data); err != nil {
			return "", err
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha.Sum(nil)), nil
}
