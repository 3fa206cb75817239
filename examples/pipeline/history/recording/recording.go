// Package recording reads recordings of kwokctl as logs for package history. It is a package of its
// own because it applies strategic merge patches, and the code for these takes long to compile.
// Only programs that read recordings import it.
package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// Open opens files for [history.ReadLogs], which may be compressed with gzip. [Split] splits each
// recording of kwokctl; its objects are for [manifests.Parse]. The files stay open until closed is
// called. closed is never nil.
func Open(names []string, began time.Time) (logs []history.Log, objects []manifests.File, closed func(), err error) {
	var open []*os.File
	closed = func() {
		for _, f := range open {
			_ = f.Close() // it was only read
		}
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, closed, err
		}
		open = append(open, f)
		log, first, err := Split(history.Log{Name: name, Data: f}, began)
		if err != nil {
			return nil, nil, closed, err
		}
		logs = append(logs, log)
		if first != nil {
			objects = append(objects, *first)
		}
	}
	return logs, objects, closed, nil
}

// looksAhead is how much of a file is examined to find out what it is. The apiVersion is near the
// top of the first document of a recording.
const looksAhead = 64 << 10

var ofRecording = regexp.MustCompile(`(?m)^apiVersion: `)

// Split reads the output of "kwokctl snapshot export --record": YAML with the objects at the start,
// and then a ResourcePatch of action.kwok.x-k8s.io/v1alpha1 for each change. It returns the changes
// as an audit log and the objects, if there are any, as manifests.
//
// A recording does not say when it began, and all its times are relative to that moment. The zero
// time means the beginning of 1970. Any other file is returned unchanged and without manifests, but
// decompressed if it was compressed with gzip. The error names the line that does not belong to a
// recording.
func Split(l history.Log, began time.Time) (history.Log, *manifests.File, error) {
	data := bufio.NewReaderSize(l.Data, looksAhead)
	if magic, _ := data.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		plain, err := gzip.NewReader(data)
		if err != nil {
			return history.Log{}, nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		data = bufio.NewReaderSize(plain, looksAhead)
	}
	top, _ := data.Peek(looksAhead) // an error shows again when the file is read
	if first := bytes.TrimLeft(top, " \t\r\n"); len(first) == 0 || first[0] == '{' || !ofRecording.Match(top) {
		return history.Log{Name: l.Name, Data: data}, nil, nil
	}
	if began.IsZero() {
		began = time.Unix(0, 0)
	}
	r := recording{name: l.Name, began: began.UTC(), objects: map[string]json.RawMessage{}, unknown: map[string]int{}}
	if err := r.read(data); err != nil {
		return history.Log{}, nil, err
	}
	if len(r.patches) == 0 {
		return history.Log{}, nil, fmt.Errorf("%s: YAML without a ResourcePatch is not a recording of kwokctl: want a log, or one of its recordings", l.Name)
	}
	if err := r.replay(); err != nil {
		return history.Log{}, nil, err
	}
	log := history.Log{Name: l.Name, Data: &r.log}
	for _, resource := range slices.Sorted(maps.Keys(r.unknown)) {
		log.Notes = append(log.Notes, fmt.Sprintf("patches of %s that the recording does not have: %d", resource, r.unknown[resource]))
	}
	if r.first.Len() == 0 {
		return log, nil, nil
	}
	return log, &manifests.File{Name: l.Name, Data: r.first.Bytes()}, nil
}

// patch is the part of a ResourcePatch that is read.
type patch struct {
	Resource struct {
		Group    string `json:"group"`
		Resource string `json:"resource"`
	} `json:"resource"`
	Target struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"target"`
	After    time.Duration   `json:"durationNanosecond"`
	Method   string          `json:"method"`
	Template json.RawMessage `json:"template"`
	line     int
}

// key identifies the object in [recording.objects].
func (p *patch) key() string {
	return p.Resource.Resource + " " + p.Target.Namespace + "/" + p.Target.Name
}

type recording struct {
	name    string
	began   time.Time
	first   bytes.Buffer // objects
	objects map[string]json.RawMessage
	patches []patch
	log     bytes.Buffer   // the patches as audit events
	unknown map[string]int // patches of objects that are not known, by resource
}

// offset matches the form in which kwokctl writes each time of an object.
var offset = regexp.MustCompile(`\$\(time-offset-nanosecond (-?\d+)\)`)

// read splits the documents and makes all times absolute.
func (r *recording) read(data io.Reader) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(data))
	for line := 1; ; {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", r.name, line, err)
		}
		text = offset.ReplaceAllFunc(text, func(s []byte) []byte {
			n, err := strconv.ParseInt(string(offset.FindSubmatch(s)[1]), 10, 64)
			if err != nil {
				return s // the object's decoder reports that it is not a time
			}
			return []byte(r.began.Add(time.Duration(n)).Format(metav1.RFC3339Micro))
		})
		if err := r.document(text, line); err != nil {
			return fmt.Errorf("%s:%d: %w", r.name, line, err)
		}
		line += bytes.Count(text, []byte("\n")) + 1 // plus the separator
	}
	slices.SortStableFunc(r.patches, func(a, b patch) int { return cmp.Compare(a.After, b.After) })
	return nil
}

func (r *recording) document(text []byte, line int) error {
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	var o struct {
		Kind     string            `json:"kind"`
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	switch o.Kind {
	case "ResourcePatch":
		p := patch{line: line}
		if err := json.Unmarshal(data, &p); err != nil {
			return err
		}
		r.patches = append(r.patches, p)
		return nil
	case "Pod":
		r.objects["pods "+o.Metadata.Namespace+"/"+o.Metadata.Name] = data
	case "Node":
		r.objects["nodes /"+o.Metadata.Name] = data
	}
	if r.first.Len() > 0 {
		r.first.WriteString("---\n")
	}
	r.first.Write(text)
	return nil
}

// replay writes the patches as audit events in the order of time.
func (r *recording) replay() error {
	if err := r.event(r.began, &patch{}, "get", nil); err != nil { // the log begins when the recording began
		return err
	}
	for i := range r.patches {
		p := &r.patches[i]
		verb, object := p.Method, json.RawMessage(nil)
		var err error
		if p.Resource.Group == "" && (p.Resource.Resource == "pods" || p.Resource.Resource == "nodes") {
			verb, object, err = r.apply(p)
		}
		if err == nil {
			err = r.event(r.began.Add(p.After), p, verb, object)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %s of %s: %w", r.name, p.line, p.Method, p.key(), err)
		}
	}
	return nil
}

// event writes an event. One that changes nothing still says that the log reaches to its moment.
func (r *recording) event(at time.Time, p *patch, verb string, object json.RawMessage) error {
	return json.NewEncoder(&r.log).Encode(map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete", "stageTimestamp": at, "verb": verb, "responseObject": object,
		"objectRef": map[string]string{"apiGroup": p.Resource.Group, "resource": p.Resource.Resource, "namespace": p.Target.Namespace, "name": p.Target.Name},
	})
}

// apply returns the change of a pod or a node as a verb and the object after it. The verb is "get"
// if it is not known what the object was before.
func (r *recording) apply(p *patch) (verb string, object json.RawMessage, err error) {
	var kind any = &corev1.Pod{}
	if p.Resource.Resource == "nodes" {
		kind = &corev1.Node{}
	}
	switch before := r.objects[p.key()]; {
	case p.Method == "delete":
		delete(r.objects, p.key())
		return "delete", nil, nil
	case p.Method == "create":
		object = p.Template
	case p.Method != "patch":
		return "", nil, errors.New("unknown method: want create, patch or delete")
	case before == nil:
		r.unknown[p.Resource.Resource]++
		return "get", nil, nil
	default:
		if object, err = strategicpatch.StrategicMergePatch(before, p.Template, kind); err != nil {
			return "", nil, err
		}
	}
	if err := json.Unmarshal(object, kind); err != nil {
		return "", nil, fmt.Errorf("the object: %w", err)
	}
	r.objects[p.key()] = object
	if pod, is := kind.(*corev1.Pod); is && pod.DeletionTimestamp != nil {
		return "delete", nil, nil // as in an audit log, it counts as gone when its deletion is requested
	}
	return p.Method, object, nil
}
