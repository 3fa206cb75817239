package history_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
)

func machine(uid string, created int, typ string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: types.UID(uid), Labels: map[string]string{}}}
	if created > 0 {
		n.CreationTimestamp = metav1.NewTime(start().Add(time.Duration(created) * time.Minute))
	}
	if typ != "" {
		n.Labels[corev1.LabelInstanceTypeStable] = typ
	}
	return n
}

// One name, two machines: what tells them apart, and what does not.
func TestSameMachine(t *testing.T) {
	for name, c := range map[string]struct {
		a, b *corev1.Node
		same bool
	}{
		"of one UID":                       {machine("1", 1, ""), machine("1", 0, "large"), true},
		"of two UIDs":                      {machine("1", 1, "large"), machine("2", 1, "large"), false},
		"created at two times":             {machine("", 1, "large"), machine("", 2, "large"), false},
		"created at one time":              {machine("", 1, ""), machine("", 1, "large"), true},
		"created at one time, other types": {machine("", 1, "small"), machine("", 1, "large"), false},
		"of two types":                     {machine("", 0, "small"), machine("", 0, "large"), false},
		"of one type":                      {machine("", 0, "large"), machine("", 0, "large"), true},
		"of two sources":                   {machine("", 1, "large"), machine("1", 2, "large"), true},
		"of two sources, other types":      {machine("", 1, "large"), machine("1", 1, "small"), false},
	} {
		assert.Equal(t, c.same, history.SameMachine(c.a, c.b), name)
		assert.Equal(t, c.same, history.SameMachine(c.b, c.a), name)
	}
}

// A machine that replaces another one of its name is written as a deletion and a creation.
func TestAReplacedMachineIsWritten(t *testing.T) {
	var out bytes.Buffer
	w := history.NewWriter(&out)
	for i, n := range []*corev1.Node{machine("", 1, "small"), machine("", 1, "small"), machine("", 2, "small")} {
		require.NoError(t, w.Observe(history.Observation{At: start().Add(time.Duration(i) * time.Minute), Nodes: []*corev1.Node{n}}))
	}
	var verbs []string
	for line := range strings.Lines(out.String()) {
		_, rest, _ := strings.Cut(line, `"verb":"`)
		verb, _, _ := strings.Cut(rest, `"`)
		verbs = append(verbs, verb)
	}
	assert.Equal(t, []string{"create", "delete", "create"}, verbs)
}

// The last event of a pod on a node is not that of an earlier machine of the name.
func TestLastPodEventIsOfTheMachine(t *testing.T) {
	const node = `,"responseObject":{"kind":"Node","metadata":{"name":"n","creationTimestamp":%q}}`
	at := func(second int) string {
		return strings.Replace(node, "%q", `"`+start().Add(time.Duration(second)*time.Second).Format(time.RFC3339)+`"`, 1)
	}
	h, err := history.ReadLogs(nil, logs(
		event(1, "create", "nodes", "n", at(1)),
		event(30, "create", "pods", "web", `,"responseObject":{"kind":"Pod","spec":{"nodeName":"n"}}`),
		event(61, "delete", "pods", "web", ""),
		event(62, "delete", "nodes", "n", ""),
		event(130, "create", "nodes", "n", at(130)),
		event(200, "get", "nodes", "n", ""),
	), nil)
	require.NoError(t, err)
	assert.Equal(t, "08:01:00-08:02:00 [n] web@n\n08:02:00-08:03:00\n08:03:00-08:04:00 [n]\n", told(h))
	assert.Contains(t, h.Observations[0].LastPodEvent, "n")
	assert.NotContains(t, h.Observations[2].LastPodEvent, "n")
}

// The pool that sells a machine is its own, also if a machine of another pool had its name before.
func TestPoolsOfMachinesOfOneName(t *testing.T) {
	var list []history.Observation
	for i, group := range []string{"web", "db"} {
		n := machine("", i+1, "m5.large")
		n.Labels[corev1.LabelTopologyZone], n.Labels["eks.amazonaws.com/nodegroup"] = "us-east-1a", group
		list = append(list, history.Observation{At: start().Add(time.Duration(i) * time.Hour), Nodes: []*corev1.Node{n}})
	}
	h, err := history.New(nil, list, start().Add(2*time.Hour))
	require.NoError(t, err)
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	sale, err := h.Sale(market)
	require.NoError(t, err)
	for i, group := range []string{"web", "db"} {
		nodes, _, _ := sale.Nodes(h.Observations[i].Nodes)
		assert.Equal(t, group, nodes[0].Labels["karpenter.sh/nodepool"])
	}
	assert.Len(t, sale.Snapshot.Pools, 2)
}
