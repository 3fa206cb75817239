package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/internal/podcheck"
	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
)

// Options say how manifests are read. nil and the zero value mean defaults.
type Options struct {
	// Stdin is the source of the argument "-"; without it "-" is an error.
	Stdin io.Reader
	// Files are in memory and are read in addition to the arguments.
	Files []File
	// Stored says that an API server has stored the objects. Then Read does not check the values in
	// single objects; the plan refuses pods that it cannot place.
	Stored bool
	// Classes has a decoder for each kind of node class, such as "EC2NodeClass". A kind that is
	// listed here is read. AWSNodeTemplate and EC2NodeClass are also read without a decoder, as raw
	// JSON.
	Classes map[string]ClassDecoder
	// Replace names files or directories whose objects replace those of the same kind, namespace
	// and name. An object that replaces none is added.
	Replace []string
	// MaxPods limits how many pods the input may ask for; 0 means [MaxPods].
	MaxPods int
	// Assume adds the usual storage classes with a default, and the priority and runtime classes
	// that pods name. Notes say what is assumed. Without it such pods are refused, as in a cluster.
	Assume bool
	// PodsOf says where objects of other kinds keep pod templates. A note counts all others.
	PodsOf []PodsOf
	// Spread is kube-scheduler's default spread; see [Snapshot.Defaults]. nil ignores Services.
	Spread []corev1.TopologySpreadConstraint
	// Buffers are CapacityBuffers in addition to those of the input.
	Buffers []buffer.Buffer
}

// MaxPods is the default of [Options.MaxPods]: several times the largest cluster.
const MaxPods = 1_000_000

// ClassDecoder reads a node class from JSON. Errors that implement [FieldProblem], alone or joined
// with errors.Join, are reported at their field.
type ClassDecoder func(raw json.RawMessage) (any, error)

// Read reads files, the *.yaml, *.yml and *.json files in and below directories, and "-", standard
// input. It skips files of a directory that hold no object. If the files of directories have an
// object several times, the last one counts, as in kubectl. Notes name the skipped files and these
// objects. Otherwise a second object of the same name is a mistake.
//
// Kustomizations and charts have to be rendered, so they are mistakes, too: files that kustomize
// reads, and directories with a Chart.yaml whose templates have placeholders.
//
// If there are mistakes, the snapshot is nil and the error joins a [*Problem] for each, at most a
// thousand. All template files of one directory, such as those of a Helm chart, count as one
// mistake. It is a mistake if the arguments hold no document, because an earlier step has probably
// failed. Time is linear in the input.
func Read(args []string, o *Options) (*Snapshot, error) {
	if o == nil {
		o = &Options{}
	}
	files, problems := load(args, o.Stdin)
	files = append(files, o.Files...)
	if len(problems) == 0 && len(files) > 0 && !slices.ContainsFunc(files, func(f File) bool { return len(split(f)) > 0 }) {
		problems = append(problems, &Problem{Position: Position{File: files[0].Name}, Detail: "the input contains no manifest"})
	}
	return read(files, problems, o)
}

// Parse is [Read] for files in memory.
func Parse(files []File, o *Options) (*Snapshot, error) { return read(files, nil, o) }

func read(files []File, problems []*Problem, o *Options) (*Snapshot, error) {
	if o == nil {
		o = &Options{}
	}
	order := map[string]int{}
	for i, f := range files {
		order[f.Name] = i
	}
	r := reader{kinds: kinds(o), stored: o.Stored, podsOf: o.PodsOf, decoder: &strictjson.Decoder{Live: true, Hints: hints()}}
	results := r.all(files)
	problems = append(problems, charts(files, results)...)
	passed := passOver(files, results)
	if len(o.Replace) > 0 {
		news, more := load(o.Replace, o.Stdin)
		results = r.replace(results, news)
		files, problems = slices.Concat(files, news), append(problems, more...)
	}
	several := supersede(files, results)
	b := builder{problems: problems, others: map[string]int{}, newer: map[string]int{}, makers: map[string][]string{}, templates: map[identity]*corev1.PodTemplate{}, scalers: map[identity]scaler{}, ceilings: map[identity]ceiling{}}
	b.snapshot = &Snapshot{positions: map[identity]Position{}, Defaults: defaultspread.Defaults{Constraints: o.Spread}}
	for i := range results {
		b.add(&results[i])
		results[i] = result{}
	}
	b.finish(o)
	if len(passed) > 0 {
		b.snapshot.note("skipped %s without a Kubernetes object: %s", plural(len(passed), "file", "files"), few(passed, ", "))
	}
	if len(several) > 0 {
		const most = 3
		more := ""
		if n := len(several) - most; n > 0 {
			several, more = several[:most], fmt.Sprintf(" and %d more", n)
		}
		b.snapshot.note("if a directory has an object several times, the last one counts: %s%s", strings.Join(several, ", "), more)
	}
	if err := join(b.problems, order); err != nil {
		return nil, err
	}
	return b.snapshot, nil
}

// replace appends the objects of the replacing files and removes the objects that they replace.
func (r *reader) replace(results []result, files []File) []result {
	news := r.all(files)
	replaced := map[identity]bool{}
	for _, n := range news {
		for _, obj := range n.objects {
			replaced[obj.id] = true
		}
	}
	for i := range results {
		results[i].objects = slices.DeleteFunc(results[i].objects, func(obj object) bool { return replaced[obj.id] })
	}
	return append(results, news...)
}

// object is one object that was read.
type object struct {
	id       identity
	position Position
	value    any
}

// result is the result of one chunk.
type result struct {
	objects  []object
	problems []*Problem
	others   []string // kinds that planning ignores
	newer    []string // fields that only a newer version knows, by kind and path
	makers   []maker  // those of them whose objects create pods
	looked   []look
	scalers  []scaler
	ceilings []ceiling
	broken   bool // the text could not be parsed
	file     string
}

// reader is what all chunks are read with. The workers share it and do not change it.
type reader struct {
	stored  bool
	kinds   map[string]kind
	podsOf  []PodsOf
	decoder *strictjson.Decoder
}

// job is one chunk to read. part says that it is an item of a list of kind list, found at whole.
type job struct {
	chunk
	part  bool
	list  listKind
	whole int
}

// listKind is the type of the items of a list that do not name their own.
type listKind struct{ apiVersion, kind string }

// all reads the files chunk by chunk, in parallel. The results are in the order of the input.
func (r *reader) all(files []File) []result {
	var jobs []job
	var wholes []chunk
	for _, f := range files {
		for _, c := range split(f) {
			wholes = append(wholes, c)
			jobs = append(jobs, r.jobs(c, len(wholes)-1)...)
		}
	}
	results := make([]result, len(jobs))
	r.each(jobs, results)
	// A large list was cut into its items by lines. If an item does not parse, the cut may have
	// been wrong, so the list is read again as a whole.
	broken := map[int]bool{}
	for i, j := range jobs {
		if j.part && results[i].broken {
			broken[j.whole] = true
		}
	}
	if len(broken) == 0 {
		return results
	}
	var out []result
	done := map[int]bool{}
	w := r.worker()
	for i, j := range jobs {
		switch {
		case !j.part || !broken[j.whole]:
			out = append(out, results[i])
		case !done[j.whole]:
			done[j.whole] = true
			out = append(out, w.read(job{chunk: wholes[j.whole]}))
		}
	}
	return out
}

func (r *reader) jobs(c chunk, whole int) []job {
	head, list := items(c)
	if len(list) > 0 {
		n, err := parseYAML(chunk{c.position, head})
		if kind, ok := listOf(&n); err == nil && ok {
			jobs := make([]job, len(list))
			for i := range list {
				jobs[i] = job{list[i], true, kind, whole}
			}
			return jobs
		}
	}
	return []job{{chunk: c, whole: whole}}
}

// each reads every job once, in runs of neighbours.
func (r *reader) each(jobs []job, results []result) {
	const stretch = 64
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(jobs)/stretch+1) {
		group.Go(func() {
			w := r.worker()
			for {
				start := int(next.Add(stretch)) - stretch
				if start >= len(jobs) {
					return
				}
				for i := start; i < min(start+stretch, len(jobs)); i++ {
					results[i] = w.read(jobs[i])
				}
			}
		})
	}
	group.Wait()
}

type worker struct {
	*reader
	checker *podcheck.Checker
}

func (r *reader) worker() *worker { return &worker{reader: r, checker: &podcheck.Checker{}} }

func (w *worker) read(j job) result {
	res := result{file: j.position.File}
	values, err := parse(j.chunk)
	if err != nil {
		res.broken = true
		p := &Problem{Position: j.position, Detail: err.Error(), noObject: !bytes.Contains(j.data, []byte("apiVersion")) && !kustomization(j.position.File)}
		p.Position.Line = 0
		if bad, ok := errors.AsType[*syntaxError](err); ok {
			p.Position.Line = bad.line
		}
		res.problems = append(res.problems, p)
	}
	for i := range values {
		n := &values[i]
		if j.part {
			if n.Kind != strictjson.Array || len(n.Items) != 1 {
				res.broken = true
				return res
			}
			w.item(&res, j.position, &n.Items[0], j.list)
			continue
		}
		w.document(&res, j.position, n)
	}
	hint(j.chunk, res.problems)
	return res
}

// document reads an object, or the items of a list.
func (w *worker) document(res *result, at Position, n *strictjson.Node) {
	kind, isList := listOf(n)
	if !isList {
		w.object(res, at, n)
		return
	}
	list := n.Get("items")
	if list.Kind == strictjson.Null {
		return
	}
	if list.Kind != strictjson.Array {
		at.Line = int(list.Line)
		res.problems = append(res.problems, &Problem{Position: at, Object: n.Get("kind").Text, Path: "items", Detail: fmt.Sprintf("want a list, got %s", list.Kind)})
		return
	}
	for i := range list.Items {
		w.item(res, at, &list.Items[i], kind)
	}
}

// item reads an item of a list, which may be a list itself. Values that a typed list gives for all
// of its items are added to items that lack them.
func (w *worker) item(res *result, at Position, n *strictjson.Node, list listKind) {
	if n.Kind == strictjson.Object && list.kind != "" && n.Get("kind") == nil && n.Get("apiVersion") == nil {
		n.Members = append(n.Members,
			strictjson.Member{Key: "apiVersion", Line: n.Line, Value: strictjson.Node{Kind: strictjson.String, Line: n.Line, Text: list.apiVersion}},
			strictjson.Member{Key: "kind", Line: n.Line, Value: strictjson.Node{Kind: strictjson.String, Line: n.Line, Text: list.kind}})
	}
	w.document(res, at, n)
}

// listOf reports whether the value is a list of objects, and their type: a PodList has Pods.
func listOf(n *strictjson.Node) (listKind, bool) {
	name := n.Get("kind")
	if n.Kind != strictjson.Object || name == nil || name.Kind != strictjson.String {
		return listKind{}, false
	}
	kind, ok := strings.CutSuffix(name.Text, "List")
	if !ok || n.Get("items") == nil {
		return listKind{}, false
	}
	of := listKind{kind: kind}
	if v := n.Get("apiVersion"); v != nil && kind != "" {
		of.apiVersion = v.Text
	}
	return of, true
}

// object reads one object.
func (w *worker) object(res *result, at Position, n *strictjson.Node) {
	if n.Kind == strictjson.Null {
		return
	}
	at.Line = int(n.Line)
	noObject := true
	fail := func(id identity, path, format string, args ...any) {
		p := &Problem{Position: at, Path: path, Detail: fmt.Sprintf(format, args...), noObject: noObject}
		if id.kind != "" {
			p.Object = id.String()
		}
		if path != "" {
			p.Position.Line = n.At(path)
		}
		res.problems = append(res.problems, p)
	}
	if n.Kind != strictjson.Object {
		fail(identity{}, "", "want an object with apiVersion and kind, got %s", n.Kind)
		return
	}
	text := func(key string) string {
		if v := n.Get(key); v != nil && v.Kind == strictjson.String {
			return v.Text
		}
		return ""
	}
	kindName, version := text("kind"), text("apiVersion")
	id := identity{kind: kindName}
	metadata := n.Get("metadata")
	if v := metadata.Get("name"); v != nil && v.Kind == strictjson.String {
		id.name = v.Text
	}
	if group(version) == "kustomize.config.k8s.io" || (kindName == "" || version == "") && kustomization(at.File) {
		noObject = false
		fail(id, "", "a kustomization is not a manifest: pipe the output of kubectl kustomize %s to -f -", filepath.Dir(at.File))
		return
	}
	if kindName == "" {
		fail(id, "kind", "the object has no kind; is this a manifest? (%s)", render)
		return
	}
	if line := n.Again("apiVersion", "kind"); line > 0 {
		noObject = false
		fail(id, "", "a second object begins on line %d: is --- missing before it?", line)
		return
	}
	k, known := w.kinds[kindName]
	noObject = version == "" && (!known || metadata == nil)
	switch {
	case known && slices.Contains(k.versions, version) || known && k.versions == nil:
	case version == "" && known:
		fail(id, "apiVersion", "the object has none (did you mean %q?)", k.versions[0])
		return
	case version == "":
		fail(id, "apiVersion", "the object has none")
		return
	case known && (slices.Contains(k.old, version) || group(version) == group(k.versions[0])):
		fail(id, "apiVersion", "%s has no %s of this version (did you mean %q?)", strictjson.Quote(version), kindName, k.versions[0])
		return
	case known && w.has(group(version)): // an existing group without this kind
		fail(id, "apiVersion", "%s has no %s (did you mean %q?)", strictjson.Quote(version), kindName, k.versions[0])
		return
	default:
		if near := w.near(kindName, version); near != "" {
			fail(id, "kind", "%s: %s has no such kind (did you mean %q?)", strictjson.Quote(kindName), version, near)
			return
		}
		w.other(res, at, n, id, version)
		return
	}
	w.known(res, at, n, k, id)
}

// has reports whether a known kind belongs to the group.
func (w *worker) has(name string) bool {
	for _, k := range w.kinds {
		if slices.ContainsFunc(k.versions, func(version string) bool { return group(version) == name }) {
			return true
		}
	}
	return false
}

// near returns the kind of the same version that an unknown name was probably meant to be.
func (w *worker) near(name, version string) string {
	var candidates []string
	for _, other := range slices.Sorted(maps.Keys(w.kinds)) {
		if slices.Contains(w.kinds[other].versions, version) {
			candidates = append(candidates, other)
		}
	}
	if hint := meant(name, candidates); hint != "" {
		return strings.TrimSuffix(strings.TrimPrefix(hint, ` (did you mean "`), `"?)`)
	}
	return ""
}

func (w *worker) known(res *result, at Position, n *strictjson.Node, k kind, id identity) {
	if k.namespaced {
		id.namespace = namespaceOf(n)
	}
	v := visit{node: n, decoder: w.decoder, checker: w.checker, stored: w.stored}
	value := k.read(&v)
	if value == nil {
		res.others = append(res.others, id.kind)
		return
	}
	switch {
	case id.name == "" && generated(value) != "":
		for _, msg := range validation.IsDNS1123Subdomain(generated(value) + "0") {
			v.add("metadata.generateName", "%s: %s", strictjson.Quote(generated(value)), msg)
		}
	case id.name == "":
		v.add("metadata.name", "the object needs a name")
	case len(id.name) > validation.DNS1123SubdomainMaxLength: // the check of the format would look at every byte
		v.add("metadata.name", "%s: %s", strictjson.Quote(id.name), validation.MaxLenError(validation.DNS1123SubdomainMaxLength))
	default:
		for _, msg := range validation.IsDNS1123Subdomain(id.name) {
			v.add("metadata.name", "%s: %s", strictjson.Quote(id.name), msg)
		}
	}
	if id.namespace != "" && id.namespace != metav1.NamespaceDefault {
		for _, msg := range validation.IsDNS1123Label(id.namespace) {
			v.add("metadata.namespace", "%s: %s", strictjson.Quote(id.namespace), msg)
		}
	}
	for _, p := range v.problems {
		at := at
		if at.Line = p.Line; p.Line == 0 {
			at.Line = n.At(p.Path)
		}
		res.problems = append(res.problems, &Problem{Position: at, Object: id.String(), Path: p.Path, Detail: p.Detail})
	}
	for _, path := range v.newer {
		res.newer = append(res.newer, id.kind+" "+path)
	}
	if m, ok := value.(metav1.Object); ok {
		m.SetNamespace(id.namespace)
	}
	if len(v.problems) == 0 || id.name != "" {
		res.objects = append(res.objects, object{id, at, value})
	}
}

// generated returns the prefix from which an API server generates a name, or an empty string.
func generated(value any) string {
	if m, ok := value.(metav1.Object); ok {
		return m.GetGenerateName()
	}
	return ""
}
