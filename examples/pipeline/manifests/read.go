package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests/internal/podcheck"
	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
)

// Options change how manifests are read. nil, and the zero value, are the defaults.
type Options struct {
	// Stdin is what the argument "-" reads; without it "-" is an error.
	Stdin io.Reader
	// Classes are decoders of node classes by kind, such as "EC2NodeClass". AWSNodeTemplate and EC2NodeClass are also read
	// without one, as raw JSON; other kinds become known by being listed here.
	Classes map[string]ClassDecoder
	// Replace names files or directories whose objects take the place of those of the same kind, namespace and name, or
	// are added where there are none.
	Replace []string
	// MaxPods is how many pods the input may ask for; 0 means [MaxPods].
	MaxPods int
	// Assume adds classes that clusters have and manifests rarely contain: the usual storage classes, a default one, and classes of priority and of
	// runtimes that pods name. Notes say what is assumed. Without it such pods are refused, as by a cluster without these classes.
	Assume bool
	// PodsOf says where objects of other kinds keep the templates of their pods. Without it a note counts such objects.
	PodsOf []PodsOf
	// Spread are kube-scheduler's default topology spread constraints. With any, Services are read, too; see [Snapshot.Defaults].
	Spread []corev1.TopologySpreadConstraint
	// Buffers are CapacityBuffers beside those of the input.
	Buffers []buffer.Buffer
}

// MaxPods is how many pods manifests may ask for unless [Options] say otherwise: several times the largest cluster.
const MaxPods = 1_000_000

// ClassDecoder reads a node class from JSON. Errors that implement [FieldProblem], alone or joined with errors.Join, are
// reported at their field.
type ClassDecoder func(raw json.RawMessage) (any, error)

// Read reads files, the *.yaml, *.yml and *.json files of directories and of those below, and "-", standard input. Of files of directories those
// without an object are passed over, and of an object that several have the last counts, as where kubectl applies a directory; notes say so. The
// error joins one [*Problem] for each mistake, at most a thousand; the snapshot is nil then. Arguments that hold no document at all are one: a
// step before has probably failed. Time is linear in the size of the input, on as many cores as Go may use, whose number changes nothing.
func Read(args []string, o *Options) (*Snapshot, error) {
	var stdin io.Reader
	if o != nil {
		stdin = o.Stdin
	}
	files, problems := load(args, stdin)
	if len(problems) == 0 && len(files) > 0 && !slices.ContainsFunc(files, func(f File) bool { return len(split(f)) > 0 }) {
		problems = append(problems, &Problem{Position: Position{File: files[0].Name}, Detail: "the input holds no manifest"})
	}
	return read(files, problems, o)
}

// Parse is [Read] for files that are in memory already.
func Parse(files []File, o *Options) (*Snapshot, error) { return read(files, nil, o) }

func read(files []File, problems []*Problem, o *Options) (*Snapshot, error) {
	if o == nil {
		o = &Options{}
	}
	order := map[string]int{}
	for i, f := range files {
		order[f.Name] = i
	}
	r := reader{kinds: kinds(o), podsOf: o.PodsOf, decoder: &strictjson.Decoder{Live: true, Hints: hints()}}
	results := r.all(files)
	passed := passOver(files, results)
	if len(o.Replace) > 0 {
		news, more := load(o.Replace, o.Stdin)
		results = r.replace(results, news)
		files, problems = slices.Concat(files, news), append(problems, more...)
	}
	several := supersede(files, results)
	b := builder{problems: problems, others: map[string]int{}, makers: map[string]bool{}, templates: map[identity]*corev1.PodTemplate{}}
	b.snapshot = &Snapshot{positions: map[identity]Position{}, Defaults: defaultspread.Defaults{Constraints: o.Spread}}
	for i := range results {
		b.add(&results[i])
		results[i] = result{}
	}
	b.finish(o)
	if passed > 0 {
		b.snapshot.note("passed over %s that hold no object of Kubernetes", plural(passed, "file", "files"))
	}
	if len(several) > 0 {
		const most = 3
		more := ""
		if n := len(several) - most; n > 0 {
			several, more = several[:most], fmt.Sprintf(" and %d more", n)
		}
		b.snapshot.note("of objects that several files of a directory have, the last counts: %s%s", strings.Join(several, ", "), more)
	}
	if err := join(b.problems, order); err != nil {
		return nil, err
	}
	return b.snapshot, nil
}

// replace appends what the replacing files hold, and takes out the objects whose place it takes.
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

// result is what came of one chunk.
type result struct {
	objects  []object
	problems []*Problem
	others   []string // kinds that planning does not look at
	makers   []string // those of them whose objects make pods
	broken   bool     // the text could not be parsed
	file     string
}

// reader is what all chunks are read with; it is shared by the workers and not changed by them.
type reader struct {
	kinds   map[string]kind
	podsOf  []PodsOf
	decoder *strictjson.Decoder
}

// job is one chunk to read; part says that it is an item of a list whose kind is list, and whole is where that stood.
type job struct {
	chunk
	part  bool
	list  listKind
	whole int
}

// listKind is what the items of a list are where they do not say so themselves.
type listKind struct{ apiVersion, kind string }

// all reads the files, chunk by chunk on several cores, and returns the results in the order of the input.
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
	// A large list was cut into its items by the look of its lines. Where an item does not parse, the cut may have been
	// wrong, so the list is read again as a whole.
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

// each reads every job once, a stretch of neighbours at a time.
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
		p := &Problem{Position: j.position, Detail: err.Error(), noObject: !bytes.Contains(j.data, []byte("apiVersion"))}
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

// item reads an item of a list, which may be a list itself. What a list of a kind says for all of its items is written
// into those that do not say it themselves.
func (w *worker) item(res *result, at Position, n *strictjson.Node, list listKind) {
	if n.Kind == strictjson.Object && list.kind != "" && n.Get("kind") == nil && n.Get("apiVersion") == nil {
		n.Members = append(n.Members,
			strictjson.Member{Key: "apiVersion", Line: n.Line, Value: strictjson.Node{Kind: strictjson.String, Line: n.Line, Text: list.apiVersion}},
			strictjson.Member{Key: "kind", Line: n.Line, Value: strictjson.Node{Kind: strictjson.String, Line: n.Line, Text: list.kind}})
	}
	w.document(res, at, n)
}

// listOf reports whether the value is a list of objects, and what its items are: a PodList holds Pods of its own version.
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
	case known && w.has(group(version)): // a group that exists, and has no such kind
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

// other reads an object of a kind that planning does not look at: its pods, if the options say where they are.
func (w *worker) other(res *result, at Position, n *strictjson.Node, id identity, version string) {
	for _, p := range w.podsOf {
		if p.Kind == id.kind && p.Group == group(version) {
			w.custom(res, at, n, id, version, p.Path)
			return
		}
	}
	name := qualified(id.kind, version)
	res.others = append(res.others, name)
	if slices.Contains(podMakers(), name) || id.kind != "PodTemplate" && makesPods(n) {
		res.makers = append(res.makers, name)
	}
}

func group(version string) string {
	g, _, _ := strings.Cut(version, "/")
	if !strings.Contains(version, "/") {
		return ""
	}
	return g
}

// has reports whether some known kind is of the group.
func (w *worker) has(name string) bool {
	for _, k := range w.kinds {
		if slices.ContainsFunc(k.versions, func(version string) bool { return group(version) == name }) {
			return true
		}
	}
	return false
}

// near finds the kind of the same version that a name nobody knows was probably meant to be.
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
		id.namespace = metav1.NamespaceDefault
		if v := n.Get("metadata").Get("namespace"); v != nil && v.Text != "" {
			id.namespace = v.Text
		}
	}
	v := visit{node: n, decoder: w.decoder, checker: w.checker}
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
	case len(id.name) > validation.DNS1123SubdomainMaxLength: // the check of the form would look at every byte
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
	if m, ok := value.(metav1.Object); ok {
		m.SetNamespace(id.namespace)
	}
	if len(v.problems) == 0 || id.name != "" {
		res.objects = append(res.objects, object{id, at, value})
	}
}

// generated is the beginning of the name that an API server makes for an object; empty for none.
func generated(value any) string {
	if m, ok := value.(metav1.Object); ok {
		return m.GetGenerateName()
	}
	return ""
}
