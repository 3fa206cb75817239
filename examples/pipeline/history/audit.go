package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// Log is a file with one JSON object on each line: the audit log of an API server (audit.k8s.io/v1)
// or the log of Karpenter. Each line shows which of the two it belongs to, so one file may have
// both. Name is for messages. Notes are for a log that was made from another file: they say what is
// missing in Data. Package recording makes a Log of a recording of kwokctl.
type Log struct {
	Name  string
	Data  io.Reader
	Notes []string
}

func logNames(logs []Log) []string {
	out := make([]string, len(logs))
	for i, l := range logs {
		out[i] = l.Name
	}
	return out
}

// auditEvent is the part of an audit.k8s.io/v1 Event that is read.
type auditEvent struct {
	Kind                     string          `json:"kind"`
	APIVersion               string          `json:"apiVersion"`
	Level                    string          `json:"level,omitempty"`
	AuditID                  string          `json:"auditID,omitempty"`
	Stage                    string          `json:"stage"`
	RequestURI               string          `json:"requestURI,omitempty"`
	Verb                     string          `json:"verb"`
	ObjectRef                *objectRef      `json:"objectRef,omitempty"`
	ResponseStatus           *responseStatus `json:"responseStatus,omitempty"`
	RequestObject            json.RawMessage `json:"requestObject,omitempty"`
	ResponseObject           json.RawMessage `json:"responseObject,omitempty"`
	RequestReceivedTimestamp time.Time       `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time       `json:"stageTimestamp"`
}

type objectRef struct {
	Resource    string `json:"resource"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	APIGroup    string `json:"apiGroup,omitempty"`
	APIVersion  string `json:"apiVersion,omitempty"`
	Subresource string `json:"subresource,omitempty"`
}

type responseStatus struct {
	Code int `json:"code"`
}

// Options say how logs become observations. nil and the zero value mean defaults.
type Options struct {
	// Step is the minimum time between observations; 0 means a minute.
	Step time.Duration
	// Until is the end of the history; the zero time means one step after the last line.
	Until time.Time
}

// ReadLogs returns the history of the logs. cluster is what existed at first.
//
// From an audit log it reads pods and nodes at the levels Request and RequestResponse; bindings
// need only Request. A pod counts as gone when its deletion or eviction is requested, and a node
// when it has no finalizer left. From Karpenter's log it reads nodes, from launch to deletion; that
// log has no pods.
//
// The error joins all lines that are not JSON. The notes count everything else that was left out,
// including changes of objects that are taken from cluster.
func ReadLogs(cluster *manifests.Snapshot, logs []Log, o *Options) (*History, error) {
	step, until := time.Minute, time.Time{}
	if o != nil {
		if o.Step > 0 {
			step = o.Step
		}
		until = o.Until
	}
	r := logReader{unread: map[string]int{}}
	for _, l := range logs {
		r.read(l)
	}
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	if r.first.IsZero() {
		return nil, fmt.Errorf("%s: no event of an audit log or of Karpenter's log", cmp.Or(strings.Join(logNames(logs), ", "), "history"))
	}
	var first Observation
	if cluster != nil {
		first = Observation{At: r.first.Truncate(step), Nodes: launched(cluster), LastPodEvent: lastPodEvents(cluster.NodeClaims)}
		for _, p := range cluster.Pods {
			if !eviction.Ended(p) {
				first.Pods = append(first.Pods, p)
			}
		}
	}
	if until.IsZero() {
		until = ceil(r.last, step)
		if n := len(r.changes); n > 0 && !ceil(slices.MaxFunc(r.changes, func(a, b change) int { return a.at.Compare(b.at) }).at, step).Before(until) {
			until = until.Add(step)
		}
	}
	list := slices.DeleteFunc(observations(first, r.changes, step), func(x Observation) bool { return !x.At.Before(until) })
	var notes []string
	for _, what := range slices.Sorted(maps.Keys(r.unread)) {
		notes = append(notes, fmt.Sprintf("%s: %d", what, r.unread[what]))
	}
	for _, l := range logs {
		notes = append(notes, l.Notes...)
	}
	return New(cluster, list, until, notes...)
}

type logReader struct {
	changes     []change
	unread      map[string]int
	poolOf      map[string]string // by name of the claim
	errs        []error
	first, last time.Time
}

// maxLine limits a line: an API server accepts objects of 1.5 MiB, and an event has two.
const maxLine = 16 << 20

func (r *logReader) read(l Log) {
	s := bufio.NewScanner(l.Data)
	s.Buffer(make([]byte, 64<<10), maxLine)
	for line := 1; s.Scan(); line++ {
		text := bytes.TrimSpace(s.Bytes())
		if len(text) == 0 || text[0] != '{' {
			if len(text) > 0 {
				r.unread["lines that are not JSON objects"]++
			}
			continue
		}
		if err := r.line(text); err != nil {
			const most = 20
			if len(r.errs) < most {
				r.errs = append(r.errs, fmt.Errorf("%s:%d: %w", l.Name, line, err))
			}
		}
	}
	if err := s.Err(); err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", l.Name, err))
	}
}

func (r *logReader) line(text []byte) error {
	var e auditEvent
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	switch {
	case e.Kind == "Event" && e.APIVersion == "audit.k8s.io/v1":
		return r.audited(&e)
	case e.Kind == "":
		return r.karpenter(text)
	}
	r.unread[fmt.Sprintf("objects of kind %s, which are not audit events", e.Kind)]++
	return nil
}

func (r *logReader) seen(at time.Time) {
	if r.first.IsZero() || at.Before(r.first) {
		r.first = at
	}
	if at.After(r.last) {
		r.last = at
	}
}

// audited reads one event of an API server. Only a successful answer counts as something that has
// happened.
func (r *logReader) audited(e *auditEvent) error {
	at := e.StageTimestamp
	if at.IsZero() {
		at = e.RequestReceivedTimestamp
	}
	if at.IsZero() {
		return errors.New("an audit event without stageTimestamp")
	}
	r.seen(at)
	ref := e.ObjectRef
	if e.Stage != "ResponseComplete" || ref == nil {
		return nil
	}
	if s := e.ResponseStatus; s != nil && s.Code >= 300 {
		return nil
	}
	if ref.APIGroup != "" || ref.Resource != "pods" && ref.Resource != "nodes" {
		if ref.Subresource == "" && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) {
			r.aside(ref.Resource)
		}
		return nil
	}
	name := ref.Name
	if ref.Namespace != "" {
		name = ref.Namespace + "/" + ref.Name
	}
	switch e.Verb {
	case "create", "update", "patch":
	case "delete":
		kind := "Node"
		if ref.Resource == "pods" {
			kind = "Pod"
		}
		going := endingOf(e.ResponseObject)
		if kind == "Node" && going.held {
			return nil // it exists and is paid for until its finalizers are gone
		}
		r.changes = append(r.changes, change{at: at, gone: &removal{kind, name, going.uid}})
		return nil
	case "deletecollection":
		r.unread["audit events that delete collections, which do not name what they delete"]++
		return nil
	default:
		return nil
	}
	if ref.Resource == "pods" && ref.Subresource == "binding" {
		var b corev1.Binding
		if err := json.Unmarshal(e.RequestObject, &b); err != nil || b.Target.Name == "" {
			r.unread["bindings without their request (log pods/binding at level Request)"]++
			return nil
		}
		r.changes = append(r.changes, change{at: at, bind: &binding{name, b.Target.Name}})
		return nil
	}
	if ref.Resource == "pods" && ref.Subresource == "eviction" { // as with a deletion, the pod counts as gone when this is requested
		r.changes = append(r.changes, change{at: at, gone: &removal{kind: "Pod", name: name}})
		return nil
	}
	if ref.Subresource != "" && ref.Subresource != "status" && ref.Subresource != "resize" {
		return nil
	}
	object := e.ResponseObject
	if len(object) == 0 && e.Verb == "create" {
		object = e.RequestObject
	}
	if len(object) == 0 {
		r.unread[fmt.Sprintf("audit events of %s without the object (log them at level RequestResponse)", ref.Resource)]++
		return nil
	}
	return r.object(at, ref.Resource, ref.Namespace, ref.Name, object)
}

// aside counts a change of an object that matters to plans and is taken from the manifests.
func (r *logReader) aside(resource string) {
	switch resource {
	case "nodepools", "ec2nodeclasses", "nodeoverlays", "daemonsets", "poddisruptionbudgets", "persistentvolumes", "persistentvolumeclaims", "storageclasses", "priorityclasses":
		r.unread[fmt.Sprintf("changes of %s, ignored because the manifests decide", resource)]++
	}
}

// object records the new state of a pod or a node. The given name is used if the object has none.
func (r *logReader) object(at time.Time, resource, namespace, name string, data json.RawMessage) error {
	if resource == "nodes" {
		var n corev1.Node
		if err := json.Unmarshal(data, &n); err != nil {
			return fmt.Errorf("the object: %w", err)
		}
		n.Name = cmp.Or(n.Name, name)
		if n.DeletionTimestamp != nil && len(n.Finalizers) == 0 { // the last finalizer was removed, and with it the node
			r.changes = append(r.changes, change{at: at, gone: &removal{"Node", n.Name, string(n.UID)}})
			return nil
		}
		r.changes = append(r.changes, change{at: at, node: &n})
		return nil
	}
	var p corev1.Pod
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("the object: %w", err)
	}
	p.Name, p.Namespace = cmp.Or(p.Name, name), cmp.Or(p.Namespace, namespace)
	if p.Name == "" {
		r.unread["pods that were created with generateName and logged without the response"]++
		return nil
	}
	if p.DeletionTimestamp != nil {
		return nil // the deletion of the pod is already recorded
	}
	p.ManagedFields = nil
	r.changes = append(r.changes, change{at: at, pod: &p})
	return nil
}

// ending is the answer to a deletion. The UID may be empty. held means that finalizers keep the
// object.
type ending struct {
	uid  string
	held bool
}

// endingOf reads the object in the answer, or the Status of its deletion.
func endingOf(object json.RawMessage) ending {
	var o struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Details  struct {
			UID types.UID `json:"uid"`
		} `json:"details"`
	}
	if json.Unmarshal(object, &o) != nil {
		return ending{}
	}
	return ending{string(cmp.Or(o.Metadata.UID, o.Details.UID)), o.Metadata.DeletionTimestamp != nil && len(o.Metadata.Finalizers) > 0}
}
