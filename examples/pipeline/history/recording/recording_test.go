package recording_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/history/recording"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

func start() time.Time { return time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC) }

// told is a history in words: for each change the time, the nodes, and the pods with their nodes.
func told(h *history.History) string {
	var out strings.Builder
	last := ""
	for _, o := range h.Observations {
		var state strings.Builder
		for _, n := range o.Nodes {
			fmt.Fprintf(&state, " [%s]", n.Name)
		}
		for _, p := range o.Pods {
			fmt.Fprintf(&state, " %s@%s", p.Name, p.Spec.NodeName)
		}
		if now := state.String(); now != last {
			fmt.Fprintf(&out, "%s%s\n", o.At.Format("15:04:05"), now)
			last = now
		}
	}
	return out.String()
}

// recorder writes a history as kwokctl does: objects, then patches, each with a strategic merge of what changed, and times as offsets.
type recorder struct {
	t     *testing.T
	began time.Time
	docs  []string
	known map[string][]byte
}

func (r *recorder) doc(o any) {
	text, err := yaml.Marshal(o)
	require.NoError(r.t, err)
	absolute := regexp.MustCompile(`"?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"?`)
	r.docs = append(r.docs, absolute.ReplaceAllStringFunc(string(text), func(s string) string {
		at, err := time.Parse(time.RFC3339Nano, strings.Trim(s, `"`))
		require.NoError(r.t, err)
		return fmt.Sprintf("$(time-offset-nanosecond %d)", at.Sub(r.began))
	}))
}

func (r *recorder) patch(at time.Time, method, resource, namespace, name string, template []byte) {
	p := map[string]any{
		"apiVersion": "action.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePatch", "durationNanosecond": at.Sub(r.began), "method": method,
		"resource": map[string]any{"version": "v1", "resource": resource}, "target": map[string]any{"name": name, "namespace": namespace},
	}
	if template != nil {
		p["template"] = json.RawMessage(template)
	}
	r.doc(p)
}

func (r *recorder) is(at time.Time, resource, namespace, name string, object, kind any) {
	data, err := json.Marshal(object)
	require.NoError(r.t, err)
	key := resource + namespace + "/" + name
	if before := r.known[key]; before == nil {
		r.patch(at, "create", resource, namespace, name, data)
	} else if !bytes.Equal(before, data) {
		change, err := strategicpatch.CreateTwoWayMergePatch(before, data, kind)
		require.NoError(r.t, err)
		r.patch(at, "patch", resource, namespace, name, change)
	}
	r.known[key] = data
}

// Random histories of pods that come, are bound, change and go, in two phases or at once, and of nodes read from a recording as from an audit log.
func TestRecordingsTellWhatAuditLogsTell(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		began := start().Add(time.Duration(r.IntN(100)) * time.Second)
		rec := &recorder{t: t, began: began, known: map[string][]byte{}}
		pods, nodes := map[string]*corev1.Pod{}, map[string]*corev1.Node{}
		pod := func(name string) *corev1.Pod {
			p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID(fmt.Sprint(r.Uint32())), CreationTimestamp: metav1.NewTime(began.Add(-time.Hour))}}
			for i := range 1 + r.IntN(2) {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Image: "a"})
			}
			return p
		}
		node := func(name string) *corev1.Node {
			return &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint(r.Uint32()))}}
		}
		for i := range r.IntN(4) {
			p, n := pod(fmt.Sprint("p", i)), node(fmt.Sprint("n", i))
			p.Spec.NodeName = n.Name
			pods[p.Name], nodes[n.Name] = p, n
			for key, o := range map[string]any{"podsshop/" + p.Name: p, "nodes/" + n.Name: n} {
				data, err := json.Marshal(o)
				require.NoError(t, err)
				rec.known[key] = data
				rec.doc(o)
			}
		}
		rec.doc(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		want := []history.Observation{}
		observe := func(at time.Time) {
			o := history.Observation{At: at}
			for _, p := range pods {
				if p.DeletionTimestamp == nil {
					o.Pods = append(o.Pods, p.DeepCopy())
				}
			}
			for _, n := range nodes {
				o.Nodes = append(o.Nodes, n)
			}
			want = append(want, o)
		}
		if len(pods)+len(nodes) > 0 {
			observe(began.Truncate(time.Minute))
		}
		at := began
		for range 1 + r.IntN(40) {
			at = at.Add(time.Duration(1+r.IntN(90)) * time.Second)
			name := fmt.Sprint("p", r.IntN(5))
			switch p := pods[name]; {
			case r.IntN(4) == 0:
				name = fmt.Sprint("n", r.IntN(4))
				if nodes[name] == nil {
					nodes[name] = node(name)
					rec.is(at, "nodes", "", name, nodes[name], corev1.Node{})
				} else {
					delete(nodes, name)
					delete(rec.known, "nodes/"+name)
					rec.patch(at, "delete", "nodes", "", name, nil)
				}
			case p == nil:
				pods[name] = pod(name)
				rec.is(at, "pods", "shop", name, pods[name], corev1.Pod{})
			case p.DeletionTimestamp == nil && r.IntN(2) == 0:
				p.Spec.Containers[r.IntN(len(p.Spec.Containers))].Image = fmt.Sprint(r.IntN(3))
				if p.Spec.NodeName == "" {
					p.Spec.NodeName = fmt.Sprint("n", r.IntN(4))
				}
				rec.is(at, "pods", "shop", name, p, corev1.Pod{})
			case p.DeletionTimestamp == nil && r.IntN(2) == 0:
				p.DeletionTimestamp = &metav1.Time{Time: at}
				rec.is(at, "pods", "shop", name, p, corev1.Pod{})
			default:
				delete(pods, name)
				delete(rec.known, "podsshop/"+name)
				rec.patch(at, "delete", "pods", "shop", name, nil)
			}
			end := at.Truncate(time.Minute)
			if !end.Equal(at) {
				end = end.Add(time.Minute)
			}
			observe(end)
		}
		until := want[len(want)-1].At.Add(time.Minute)
		expected, err := history.New(nil, want, until)
		require.NoError(t, err)

		log, first, err := recording.Split(history.Log{Name: "rec", Data: strings.NewReader(strings.Join(rec.docs, "---\n"))}, began)
		require.NoError(t, err)
		require.NotNil(t, first)
		cluster, err := manifests.Parse([]manifests.File{*first}, nil)
		require.NoError(t, err)
		got, err := history.ReadLogs(cluster, []history.Log{log}, &history.Options{Until: until})
		require.NoError(t, err)
		require.Equal(t, told(expected), told(got), "seed %d", seed)
		last := got.Observations[len(got.Observations)-1]
		for i, p := range expected.Observations[len(expected.Observations)-1].Pods {
			require.Equal(t, p.Spec, last.Pods[i].Spec, "seed %d: patches are merged as strategic merges", seed)
		}
		require.Empty(t, got.Notes)
	}
}

// A recording may be compressed, and its file is opened beside an audit log. What it does not have and what does not count is said.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	rec := &recorder{t: t, began: start(), known: map[string][]byte{}}
	n := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(start().Add(-time.Hour))}}
	rec.doc(n)
	rec.patch(start().Add(time.Minute), "patch", "pods", "shop", "unknown", []byte(`{"spec":{"nodeName":"a"}}`))
	rec.patch(start().Add(2*time.Minute), "patch", "daemonsets", "shop", "agent", []byte(`{}`))
	rec.patch(start().Add(3*time.Minute), "patch", "nodes", "", "a", []byte(`{"spec":{"unschedulable":true}}`))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(strings.Join(rec.docs, "---\n")))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	files := []string{filepath.Join(dir, "rec.yaml.gz"), filepath.Join(dir, "audit.log")}
	require.NoError(t, os.WriteFile(files[0], packed.Bytes(), 0o600))
	require.NoError(t, os.WriteFile(files[1], []byte(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"create","objectRef":{"resource":"nodes","name":"b"},"stageTimestamp":"2026-01-15T08:00:01Z","responseObject":{"kind":"Node","metadata":{"name":"b"}}}`), 0o600))

	logs, objects, closed, err := recording.Open(files, start())
	defer closed()
	require.NoError(t, err)
	require.Len(t, objects, 1)
	cluster, err := manifests.Parse(objects, nil)
	require.NoError(t, err)
	assert.Equal(t, start().Add(-time.Hour), cluster.Nodes[0].CreationTimestamp.UTC())
	h, err := history.ReadLogs(cluster, logs, nil)
	require.NoError(t, err)
	assert.Equal(t, "08:00:00 [a]\n08:01:00 [a] [b]\n", told(h))
	assert.Equal(t, start().Add(4*time.Minute), h.Until)
	assert.Equal(t, start().Add(3*time.Minute), h.Observations[2].At)
	assert.True(t, h.Observations[2].Nodes[0].Spec.Unschedulable)
	assert.Equal(t, []string{
		"changes of daemonsets, ignored because the manifests decide: 1",
		"patches of pods that the recording does not have: 1",
	}, h.Notes)
	_, _, closed, err = recording.Open([]string{filepath.Join(dir, "nothing")}, start())
	closed()
	assert.ErrorContains(t, err, "nothing")
}

// What is wrong with a recording is said with its line.
func TestBadRecordings(t *testing.T) {
	const node = "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n"
	change := func(method, template string) string {
		return node + "---\napiVersion: action.kwok.x-k8s.io/v1alpha1\ndurationNanosecond: 1\nkind: ResourcePatch\nmethod: " + method + "\nresource: {resource: nodes, version: v1}\ntarget: {name: a}\ntemplate: " + template + "\n"
	}
	for text, want := range map[string]string{
		node + "---\nkind: [\n":                       "rec:6: ",
		node + "---\nkind: {a: 1}\n":                  "rec:6: ",
		change("replace", "{}"):                       "rec:6: replace of nodes /a: unknown method: want create, patch or delete",
		change("patch", "{spec: {taints: wrong}}"):    "rec:6: patch of nodes /a: ",
		change("patch", "wrong"):                      "rec:6: patch of nodes /a: ",
		change("patch", "{spec: {unschedulable: 1}}"): "rec:6: patch of nodes /a: the object: ",
	} {
		_, _, err := recording.Split(history.Log{Name: "rec", Data: strings.NewReader(text)}, start())
		assert.ErrorContains(t, err, want, text)
	}
	_, _, err := recording.Split(history.Log{Name: "rec", Data: strings.NewReader("\x1f\x8bwrong")}, start())
	assert.ErrorContains(t, err, "rec: unexpected EOF")
	log, objects, err := recording.Split(history.Log{Name: "log", Data: strings.NewReader("")}, start())
	require.NoError(t, err)
	assert.Nil(t, objects)
	_, err = history.ReadLogs(nil, []history.Log{log}, nil)
	assert.ErrorContains(t, err, "no event")
}
