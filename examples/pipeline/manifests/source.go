package manifests

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxBytes limits the input; a cluster of 100,000 pods exports to some hundred megabytes.
const maxBytes = 1 << 30

// File is one file of the input.
type File struct {
	// Name is the name in messages.
	Name string
	// Data is its content, YAML or JSON.
	Data []byte
	// Found says that the file was found below a directory and not named. It is skipped if nothing
	// in it is an object.
	Found bool
}

// load reads what the arguments name: files, the manifests of a directory and those below it, as
// charts are rendered, or standard input for "-". The results are in the order of the arguments;
// those of a directory are sorted.
func load(args []string, stdin io.Reader) ([]File, []*Problem) {
	var sources []File
	var problems []*Problem
	left := int64(maxBytes)
	fail := func(name string, format string, args ...any) {
		problems = append(problems, &Problem{Position: Position{File: name}, Detail: fmt.Sprintf(format, args...)})
	}
	add := func(name string, found bool, r io.Reader) {
		data, err := io.ReadAll(io.LimitReader(r, left+1))
		switch {
		case err != nil:
			fail(name, "%s", reason(name, err))
		case int64(len(data)) > left:
			left = 0
			fail(name, "the input is larger than %d MiB", maxBytes>>20)
		default:
			left -= int64(len(data))
			sources = append(sources, File{name, data, found})
		}
	}
	open := func(name string, found bool) {
		f, err := os.Open(name)
		if err != nil {
			fail(name, "%s", reason(name, err))
			return
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() && info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) == 0 {
			fail(name, "neither a file nor a directory")
			return
		}
		add(name, found, f)
	}
	seen := map[string]bool{}
	for _, arg := range args {
		if seen[arg] {
			fail(arg, "the argument is given twice")
			continue
		}
		seen[arg] = true
		info, err := os.Stat(arg)
		switch {
		case arg == "":
			fail("input", "the name of a file or a directory is empty")
		case strings.Contains(arg, "://"):
			fail(arg, "addresses are not read: fetch it first, and pipe it to -")
		case arg == "-" && stdin == nil:
			fail(arg, "there is no standard input")
		case arg == "-":
			add(arg, false, stdin)
		case err != nil:
			fail(arg, "%s", reason(arg, err))
		case !info.IsDir():
			open(arg, false)
		default:
			names, err := directory(arg)
			if err != nil {
				fail(arg, "%s", reason(arg, err))
			} else if len(names) == 0 {
				fail(arg, "the directory holds no *.yaml, *.yml or *.json file")
			}
			for _, name := range names {
				open(name, true)
			}
		}
	}
	return sources, problems
}

// directory lists the manifests of a directory and of those below. The name itself may be a link.
func directory(name string) ([]string, error) {
	names, err := Below(os.DirFS(name), ".")
	for i := range names {
		names[i] = filepath.Join(name, filepath.FromSlash(names[i]))
	}
	return names, err
}

// Below lists the manifests in and below a directory of a file system, sorted: the files that end
// in .yaml, .yml or .json, and files named Kustomization, so that readers refuse them. Directories whose names begin with a dot, such as .git, are left out.
// Links are not followed, as in kubectl.
func Below(fsys fs.FS, root string) ([]string, error) {
	var names []string
	err := fs.WalkDir(fsys, root, func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && at == root:
			return errors.New(reason(at, err))
		case err != nil:
			return fmt.Errorf("%s: %s", at, reason(at, err))
		case e.IsDir() && at != root && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case !e.IsDir() && (slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(at))) || kustomization(at)):
			names = append(names, at)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// reason returns the error without the operation and the name that package os adds. Standard input
// may stand for something else, whose error names another file: that name is kept.
func reason(name string, err error) string {
	pathErr := &fs.PathError{}
	if errors.As(err, &pathErr) && pathErr.Path == name {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// kustomization reports whether kustomize reads a file of this name, which then needs no kind.
func kustomization(name string) bool {
	return slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, filepath.Base(name))
}

// charts returns a problem for each Helm chart below a directory whose templates have placeholders,
// even if they are valid YAML. The problem replaces those of the templates, which placeholders may
// cause. Charts within a chart count as its own. A chart without placeholders is plain manifests.
func charts(files []File, results []result) []*Problem {
	below := func(root, name string) bool {
		rel, err := filepath.Rel(root, name)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	}
	var roots []string
	for _, f := range files {
		if f.Found && filepath.Base(f.Name) == "Chart.yaml" {
			roots = append(roots, filepath.Dir(f.Name))
		}
	}
	var out []*Problem
	for _, root := range roots {
		if slices.ContainsFunc(roots, func(other string) bool { return other != root && below(other, root) }) {
			continue
		}
		template := map[string]bool{}
		first := ""
		for _, f := range files {
			folders := strings.Split(filepath.ToSlash(filepath.Dir(f.Name)), "/")
			if f.Found && below(root, f.Name) && slices.Contains(folders, "templates") && bytes.Contains(f.Data, []byte("{{")) {
				template[f.Name] = true
				first = cmp.Or(first, f.Name)
			}
		}
		if first == "" {
			continue
		}
		for i := range results {
			if r := &results[i]; template[r.file] {
				r.problems = nil
			}
		}
		out = append(out, &Problem{Position: Position{File: filepath.Join(root, "Chart.yaml")}, Detail: fmt.Sprintf("a chart is not a manifest, and %s has placeholders: pipe the output of helm template %s to -f -", first, root)})
	}
	return out
}

// passOver removes the results for found files without any object, such as the values of a chart,
// and returns the names of the files, in the order of the input.
func passOver(files []File, results []result) []string {
	objects, strange := map[string]bool{}, map[string]bool{}
	each := func(do func(r *result)) {
		for i := range results {
			do(&results[i])
		}
	}
	each(func(r *result) {
		objects[r.file] = objects[r.file] || len(r.objects)+len(r.others) > 0 || slices.ContainsFunc(r.problems, func(p *Problem) bool { return !p.noObject })
		strange[r.file] = strange[r.file] || len(r.problems) > 0
	})
	passed := map[string]bool{}
	for _, f := range files {
		passed[f.Name] = f.Found && strange[f.Name] && !objects[f.Name]
	}
	each(func(r *result) {
		if passed[r.file] {
			r.problems = nil
		}
	})
	var names []string
	for _, f := range files {
		if passed[f.Name] {
			names = append(names, f.Name)
		}
	}
	return names
}

// supersede removes objects of found files that are repeated later, in the same file or another
// one, such as overlays of one base: the last one counts, as when kubectl applies a directory. It
// returns each such object with its places, in the order of the input.
func supersede(files []File, results []result) []string {
	found := map[string]bool{}
	for _, f := range files {
		found[f.Name] = f.Found
	}
	refusePatches(found, results)
	places := map[identity][]Position{}
	var several []identity
	for i := range results {
		for _, o := range results[i].objects {
			if o.id.name == "" || !found[o.position.File] {
				continue
			}
			if places[o.id] = append(places[o.id], o.position); len(places[o.id]) == 2 {
				several = append(several, o.id)
			}
		}
	}
	for i := range results {
		results[i].objects = slices.DeleteFunc(results[i].objects, func(o object) bool {
			at := places[o.id]
			return len(at) > 1 && found[o.position.File] && o.position != at[len(at)-1]
		})
	}
	var out []string
	for _, id := range several {
		at := places[id]
		last, before := at[len(at)-1], at[len(at)-2]
		if last.File == before.File {
			out = append(out, fmt.Sprintf("%s (%s, before on line %d)", id, last, before.Line))
			continue
		}
		out = append(out, fmt.Sprintf("%s (%s, before in %s)", id, last.File, before.File))
	}
	return out
}

// refusePatches makes a problem of each controller of a found file that has no selector although
// another one of its name has one. It is a patch, which a cluster refuses, and must not supersede
// the controller that it is for.
func refusePatches(found map[string]bool, results []result) {
	whole := map[identity]bool{}
	for i := range results {
		for _, o := range results[i].objects {
			if selector, _ := selectorOf(o.value); selector != nil {
				whole[o.id] = true
			}
		}
	}
	for i := range results {
		r := &results[i]
		r.objects = slices.DeleteFunc(r.objects, func(o object) bool {
			if selector, needs := selectorOf(o.value); !needs || selector != nil || !whole[o.id] || !found[o.position.File] {
				return false
			}
			name := o.id.String()
			if !slices.ContainsFunc(r.problems, func(p *Problem) bool { return p.Object == name && strings.HasSuffix(p.Detail, patch) }) {
				r.problems = append(r.problems, &Problem{Position: o.position, Object: name, Path: "spec.selector", Detail: "required" + patch})
			}
			return true
		})
	}
}

// selectorOf returns the selector of a controller. needs reports whether a cluster refuses the
// object without one.
func selectorOf(value any) (selector *metav1.LabelSelector, needs bool) {
	switch v := value.(type) {
	case *appsv1.Deployment:
		return v.Spec.Selector, true
	case *appsv1.ReplicaSet:
		return v.Spec.Selector, true
	case *appsv1.StatefulSet:
		return v.Spec.Selector, true
	case *appsv1.DaemonSet:
		return v.Spec.Selector, true
	}
	return nil, false
}

// chunk is the text of one document, or of one item of a list.
type chunk struct {
	position Position // Line is that of its first line
	data     []byte
}

// split cuts a file into documents. A line that starts with --- begins one, and a line that starts
// with ... ends one. In neither YAML nor JSON can such a line be part of a document. Lines of
// directives stay with the document that follows them.
func split(s File) []chunk {
	mark := []byte("\xef\xbb\xbf") // a byte order mark, which concatenated files have inside
	data := bytes.ReplaceAll(bytes.TrimPrefix(s.Data, mark), append([]byte{'\n'}, mark...), []byte{'\n'})
	var chunks []chunk
	start, startLine, line := 0, 1, 1
	content, directive := false, false // since start
	cut := func(end int) {
		if content {
			chunks = append(chunks, chunk{Position{s.Name, len(chunks) + 1, startLine}, data[start:end]})
		}
		content, directive = false, false
	}
	for at := 0; at < len(data); {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		text := data[at:end]
		switch {
		case marker(text, "---"):
			if !directive || content {
				cut(at)
				start, startLine = at, line
			}
			content = len(bytes.TrimSpace(uncomment(text[3:]))) > 0
		case marker(text, "..."):
			cut(at)
			start, startLine = end, line+1
		case text[0] == '%' && !content:
			if !directive {
				start, startLine = at, line
			}
			directive = true
		case len(bytes.TrimSpace(uncomment(text))) > 0:
			content = true
		}
		at = end
		line++
	}
	cut(len(data))
	return chunks
}

func marker(line []byte, mark string) bool {
	return bytes.HasPrefix(line, []byte(mark)) && (len(line) == 3 || bytes.IndexByte([]byte(" \t\r\n"), line[3]) >= 0)
}

// uncomment returns nothing for a comment line and the line itself otherwise.
func uncomment(line []byte) []byte {
	if t := bytes.TrimLeft(line, " \t"); len(t) > 0 && t[0] == '#' {
		return nil
	}
	return line
}

// items cuts a YAML document that is a list, as exports are, into its items, so that a large export
// is read in small pieces. It looks for "items:" and "- " at the start of lines. head is the rest
// of the document. This is a guess by lines, because a quoted text could continue at the start of a
// line. So the caller must read the whole document if a piece fails.
func items(c chunk) (head []byte, list []chunk) {
	const large = 1 << 18
	if len(c.data) < large {
		return nil, nil
	}
	line, inside := c.position.Line-1, false
	start := -1
	cut := func(end int) {
		if start >= 0 {
			list[len(list)-1].data = c.data[start:end]
			start = -1
		}
	}
	for at := 0; at < len(c.data); {
		end := len(c.data)
		if i := bytes.IndexByte(c.data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		text := c.data[at:end]
		line++
		switch {
		case bytes.HasPrefix(text, []byte("items:")) && len(bytes.TrimSpace(text)) == len("items:"):
			inside = true
			head = append(head, text...)
		case inside && bytes.HasPrefix(text, []byte("- ")):
			cut(at)
			start = at
			list = append(list, chunk{position: Position{c.position.File, c.position.Document, line}})
		case inside && (text[0] == ' ' || text[0] == '#' || len(bytes.TrimSpace(text)) == 0):
		default:
			cut(at)
			inside = false
			head = append(head, text...)
		}
		at = end
	}
	cut(len(c.data))
	return head, list
}
