// Program api compares the exported API of every package with the committed baseline, or writes the
// baseline. It is run at the root of the repository. An incompatible change is an error unless the
// section "Unreleased" of CHANGELOG.md names the package under "Breaking".
//
// All packages are loaded at once: apidiff's own command loads one at a time, with everything that it
// imports, which takes minutes.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

const (
	module    = "github.com/joinery-sdk/joinery/"
	baselines = ".ci/api"
)

func main() {
	write := flag.Bool("write", false, "write the baselines of the packages anew instead of comparing with them")
	flag.Parse()
	run := compare
	if *write {
		run = record
	}
	err := errors.New("usage: api [-write] PACKAGE...")
	if flag.NArg() > 0 {
		var list []*packages.Package
		if list, err = load(flag.Args()); err == nil {
			err = run(list)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// load returns the packages that others may import.
func load(patterns []string) ([]*packages.Package, error) {
	all, err := packages.Load(&packages.Config{Mode: packages.LoadTypes, Fset: token.NewFileSet()}, patterns...)
	if err != nil {
		return nil, err
	}
	var out []*packages.Package
	for _, p := range all {
		for _, e := range p.Errors {
			return nil, fmt.Errorf("%s: %w", p.PkgPath, e)
		}
		if p.Name != "main" && !strings.Contains(p.PkgPath+"/", "/internal/") {
			out = append(out, p)
		}
	}
	return out, nil
}

func nameOf(p *packages.Package) string { return strings.TrimPrefix(p.PkgPath, module) }

func fileOf(p *packages.Package) string {
	return filepath.Join(baselines, strings.ReplaceAll(nameOf(p), "/", "_")+".api")
}

func compare(list []*packages.Package) error {
	breaking, err := breaking()
	if err != nil {
		return err
	}
	var undeclared []string
	for _, p := range list {
		old, err := read(fileOf(p))
		if errors.Is(err, os.ErrNotExist) {
			fmt.Printf("%s: new package, no baseline yet\n", nameOf(p))
			continue
		}
		if err != nil {
			return err
		}
		var changes bytes.Buffer
		if err := apidiff.Changes(old, p.Types).TextIncompatible(&changes, false); err != nil {
			return err
		}
		if changes.Len() == 0 {
			continue
		}
		fmt.Printf("%s:\n%s", nameOf(p), &changes)
		if !strings.Contains(breaking, nameOf(p)) {
			undeclared = append(undeclared, nameOf(p))
		}
	}
	if undeclared != nil {
		return fmt.Errorf("incompatible changes that are not declared under \"Breaking\" in CHANGELOG.md: %s", strings.Join(undeclared, ", "))
	}
	return nil
}

// breaking returns the section "Breaking" of the section "Unreleased" of CHANGELOG.md.
func breaking() (string, error) {
	text, err := os.ReadFile("CHANGELOG.md")
	_, unreleased, _ := strings.Cut(string(text), "\n## Unreleased")
	unreleased, _, _ = strings.Cut(unreleased, "\n## ")
	_, section, _ := strings.Cut(unreleased, "\n### Breaking")
	section, _, _ = strings.Cut(section, "\n### ")
	return section, err
}

// read reads a baseline: the path of the package on a line, then its export data.
func read(file string) (*types.Package, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	path, data, _ := bytes.Cut(data, []byte("\n"))
	p, err := gcexportdata.Read(bytes.NewReader(data), token.NewFileSet(), map[string]*types.Package{}, string(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

func record(list []*packages.Package) error {
	blank, err := blanker()
	if err != nil {
		return err
	}
	for _, p := range list {
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		fmt.Fprintln(w, p.PkgPath)
		if err := errors.Join(gcexportdata.Write(w, p.Fset, p.Types), w.Flush()); err != nil {
			return fmt.Errorf("%s: %w", p.PkgPath, err)
		}
		if err := os.WriteFile(fileOf(p), []byte(blank(out.String())), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("wrote %d baselines\n", len(list))
	return nil
}

// blanker returns a function that blanks the folders of this machine out of a baseline. Lengths stay
// the same, because positions in export data count bytes.
func blanker() (func(string) string, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	env, err := exec.Command("go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	var pairs []string
	for _, dir := range append([]string{root}, strings.Fields(string(env))...) {
		hidden := strings.Map(func(r rune) rune {
			if r == '/' {
				return r
			}
			return '-'
		}, dir)
		pairs = append(pairs, dir, hidden)
	}
	return strings.NewReplacer(pairs...).Replace, nil
}
