package history

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

// Writer writes a cluster over time as the audit log that its API server would have written, at
// level RequestResponse. It writes a line for each pod and node that comes, changes or goes.
// [ReadLogs] reads it.
type Writer struct {
	out   *json.Encoder
	pods  map[string]*corev1.Pod
	nodes map[string]*corev1.Node
	lines int
}

// NewWriter returns a writer that has observed nothing yet.
func NewWriter(w io.Writer) *Writer {
	return &Writer{out: json.NewEncoder(w), pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}}
}

// Observe writes what has changed since the last observation. The error is the writer's.
func (w *Writer) Observe(o Observation) error {
	pods, nodes := map[string]bool{}, map[string]bool{}
	for _, n := range o.Nodes {
		nodes[n.Name] = true
		before := w.nodes[n.Name]
		if before == n || before != nil && equality.Semantic.DeepEqual(before, n) {
			continue
		}
		if before != nil && !SameMachine(before, n) {
			before = nil
			if err := w.line(o.At, "delete", "nodes", "", n.Name, nil); err != nil {
				return err
			}
		}
		w.nodes[n.Name] = n
		if err := w.line(o.At, verb(before != nil), "nodes", "", n.Name, n); err != nil {
			return err
		}
	}
	for _, p := range o.Pods {
		key := eviction.Name(p)
		pods[key] = true
		before := w.pods[key]
		if before == p || before != nil && equality.Semantic.DeepEqual(before, p) {
			continue
		}
		w.pods[key] = p
		if err := w.line(o.At, verb(before != nil), "pods", p.Namespace, p.Name, p); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[key]; !pods[key] {
			delete(w.pods, key)
			if err := w.line(o.At, "delete", "pods", p.Namespace, p.Name, nil); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.nodes)) {
		if !nodes[key] {
			delete(w.nodes, key)
			if err := w.line(o.At, "delete", "nodes", "", key, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// End writes a line that extends the log to a moment, without a change.
func (w *Writer) End(at time.Time) error { return w.line(at, "list", "nodes", "", "", nil) }

func verb(known bool) string {
	if known {
		return "update"
	}
	return "create"
}

func (w *Writer) line(at time.Time, verb, resource, namespace, name string, object any) error {
	w.lines++
	e := auditEvent{
		Kind: "Event", APIVersion: "audit.k8s.io/v1", Level: "RequestResponse", AuditID: fmt.Sprintf("00000000-0000-0000-0000-%012d", w.lines),
		Stage: "ResponseComplete", Verb: verb, RequestURI: uri(resource, namespace, name), RequestReceivedTimestamp: at.UTC(), StageTimestamp: at.UTC(),
		ObjectRef: &objectRef{Resource: resource, Namespace: namespace, Name: name, APIVersion: "v1"}, ResponseStatus: &responseStatus{200},
	}
	if object != nil {
		data, err := json.Marshal(object)
		if err != nil {
			return err
		}
		e.ResponseObject = data
	}
	return w.out.Encode(e)
}

func uri(resource, namespace, name string) string {
	out := "/api/v1/"
	if namespace != "" {
		out += "namespaces/" + namespace + "/"
	}
	out += resource
	if name != "" {
		out += "/" + name
	}
	return out
}
