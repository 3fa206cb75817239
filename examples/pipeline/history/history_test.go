package history_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/plan"
)

func start() time.Time { return time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC) }

// told is a history in words: for each observation its time, nodes, and pods with their nodes.
func told(h *history.History) string {
	var out strings.Builder
	for i, o := range h.Observations {
		fmt.Fprintf(&out, "%s-%s", o.At.Format("15:04:05"), h.End(i).Format("15:04:05"))
		for _, n := range o.Nodes {
			fmt.Fprintf(&out, " [%s]", n.Name)
		}
		for _, p := range o.Pods {
			fmt.Fprintf(&out, " %s@%s", p.Name, p.Spec.NodeName)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func logs(text ...string) []history.Log {
	return []history.Log{{Name: "log", Data: strings.NewReader(strings.Join(text, "\n"))}}
}

func event(second int, verb, resource, name, rest string) string {
	namespace, sub := "", ""
	if resource, sub, _ = strings.Cut(resource, "/"); resource == "pods" {
		namespace = "shop"
	}
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":%q,"objectRef":{"resource":%q,"namespace":%q,"name":%q,"apiVersion":"v1","subresource":%q},"requestReceivedTimestamp":%q,"stageTimestamp":%q%s}`,
		verb, resource, namespace, name, sub, start().Add(time.Duration(second)*time.Second).Format(time.RFC3339Nano), start().Add(time.Duration(second)*time.Second).Format(time.RFC3339Nano), rest)
}

// What an API server logs of a pod: it is created, bound, its status is written, it is deleted, and its status is written once more.
func TestAuditLog(t *testing.T) {
	const pod = `,"responseStatus":{"code":201},"responseObject":{"kind":"Pod","metadata":{"name":"web-1","namespace":"shop","uid":"u1"%s},"spec":{"containers":[]%s},"status":{"phase":%q}}`
	h, err := history.ReadLogs(nil, logs(
		event(1, "create", "nodes", "node-a", `,"responseStatus":{"code":201},"responseObject":{"kind":"Node","metadata":{"name":"node-a"}}`),
		event(61, "create", "pods", "", fmt.Sprintf(pod, "", "", "Pending")),
		event(62, "create", "pods", "web-2", `,"responseStatus":{"code":403},"responseObject":{"kind":"Status"}`),
		event(119, "create", "pods/binding", "web-1", `,"responseStatus":{"code":201},"requestObject":{"kind":"Binding","target":{"kind":"Node","name":"node-a"}}`),
		event(130, "patch", "pods/status", "web-1", fmt.Sprintf(pod, "", "", "Running")),
		event(200, "create", "pods/eviction", "web-1", `,"responseStatus":{"code":201}`),
		event(201, "patch", "pods/status", "web-1", fmt.Sprintf(pod, `,"deletionTimestamp":"2026-01-15T08:03:51Z"`, `,"nodeName":"node-a"`, "Running")),
		event(241, "delete", "pods", "web-1", `,"responseStatus":{"code":200},"responseObject":{"kind":"Pod","metadata":{"name":"web-1","uid":"u1"}}`),
		event(242, "patch", "pods/status", "web-1", fmt.Sprintf(pod, "", "", "Succeeded")),
		event(243, "update", "pods", "web-3", ""),
		event(244, "deletecollection", "pods", "", ""),
		event(245, "create", "configmaps", "x", ""),
		event(360, "get", "nodes", "node-a", ""),
	), nil)
	require.NoError(t, err)
	assert.Equal(t, `08:01:00-08:02:00 [node-a]
08:02:00-08:03:00 [node-a] web-1@node-a
08:03:00-08:04:00 [node-a] web-1@node-a
08:04:00-08:05:00 [node-a]
08:05:00-08:06:00 [node-a]
`, told(h))
	assert.Equal(t, []string{
		"audit events of pods without the object (log them at level RequestResponse): 1",
		"audit events that delete collections, which do not name what they delete: 1",
	}, h.Notes)
	assert.Equal(t, start().Add(119*time.Second), h.Observations[1].LastPodEvent["node-a"])
}

// A node that finalizers hold is paid for until the last of them is taken off, and a status that is written afterwards does not bring it back. One
// of the same name that comes later is another.
func TestNodesThatFinalizersHold(t *testing.T) {
	node := func(uid, more string) string {
		return `,"responseStatus":{"code":200},"responseObject":{"kind":"Node","metadata":{"name":"a","uid":"` + uid + `"` + more + `}}`
	}
	const going, held = `,"deletionTimestamp":"2026-01-15T08:02:00Z"`, `,"finalizers":["karpenter.sh/termination"]`
	h, err := history.ReadLogs(nil, logs(
		event(60, "create", "nodes", "a", node("u1", held)),
		event(120, "delete", "nodes", "a", node("u1", going+held)),
		event(180, "patch", "nodes/status", "a", node("u1", going+held)),
		event(240, "patch", "nodes", "a", node("u1", going)),
		event(300, "patch", "nodes/status", "a", node("u1", going+held)),
		event(360, "create", "nodes", "a", node("u2", "")),
		event(420, "delete", "nodes", "a", `,"responseObject":{"kind":"Status","status":"Success","details":{"name":"a","kind":"nodes","uid":"u2"}}`),
		event(480, "list", "nodes", "", ""),
	), nil)
	require.NoError(t, err)
	assert.Equal(t, "08:01:00 [a]\n08:04:00 \n08:06:00 [a]\n08:07:00 ", merged(told(h)))
}

// A machine that was launched and has not joined is paid for already.
func TestClaimsWithoutNodes(t *testing.T) {
	const claim = `{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: %s, labels: {karpenter.sh/nodepool: default, node.kubernetes.io/instance-type: m5.large, topology.kubernetes.io/zone: us-east-1a, karpenter.sh/capacity-type: on-demand}},
    spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: []}, status: {providerID: %q, nodeName: %q, allocatable: {cpu: "1.9"}, capacity: {cpu: "2"}}}`
	h, err := history.ParseSnapshots([]manifests.File{{Name: "2026-01-15T08-00-00Z.yaml", Data: []byte("{apiVersion: v1, kind: List, items: [" + strings.Join([]string{
		fmt.Sprintf(claim, "starts", "aws:///us-east-1a/i-1", ""), fmt.Sprintf(claim, "joined", "aws:///us-east-1a/i-2", "node-2"), fmt.Sprintf(claim, "planned", "", ""),
		`{apiVersion: v1, kind: Node, metadata: {name: node-2}, spec: {providerID: "aws:///us-east-1a/i-2"}}`,
	}, ",") + "]}")}}, nil)
	require.NoError(t, err)
	assert.Equal(t, "08:00:00-09:00:00 [node-2] [starts]\n", told(h))
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	sale, err := h.Sale(market)
	require.NoError(t, err)
	_, prices, known := sale.Nodes(h.Observations[0].Nodes)
	assert.Equal(t, []bool{false, true}, known)
	assert.InDelta(t, 0.096, prices[1].Dollars(), 1e-9)
}

// Karpenter's log tells of machines from launch to deletion, and its claims are the nodes that the audit log names.
func TestKarpentersLog(t *testing.T) {
	const launch = `{"level":"INFO","time":"2026-01-15T08:00:%02d.123Z","logger":"controller","message":"launched nodeclaim","commit":"1","controller":"nodeclaim.lifecycle","NodeClaim":{"name":%q},"provider-id":"aws:///us-east-1a/i-1","instance-type":"m5.large","zone":"us-east-1a","capacity-type":"spot","allocatable":{"cpu":"1930m","memory":"6903Mi","pods":"29"}}`
	h, err := history.ReadLogs(nil, logs(
		`{"level":"INFO","time":"2026-01-15T08:00:00.100Z","message":"created nodeclaim","NodePool":{"name":"general"},"NodeClaim":{"name":"general-x1"},"requests":{"cpu":"1"},"instance-types":"m5.large"}`,
		fmt.Sprintf(launch, 2, "general-x1"),
		fmt.Sprintf(launch, 3, "general-x2"),
		event(40, "create", "nodes", "ip-10-0-0-1", `,"responseObject":{"kind":"Node","metadata":{"name":"ip-10-0-0-1","labels":{"a":"b"}}}`),
		`{"level":"INFO","time":"2026-01-15T08:01:10.000+0000","message":"registered nodeclaim","NodeClaim":{"name":"general-x1"},"Node":{"name":"ip-10-0-0-1"}}`,
		`{"level":"INFO","time":"2026-01-15T08:01:11.000Z","message":"registered nodeclaim","NodeClaim":{"name":"general-x2"},"Node":{"name":"ip-10-0-0-2"}}`,
		`{"level":"INFO","time":"2026-01-15T08:09:30.000Z","message":"disrupting node(s)","command":"Underutilized/1"}`,
		`{"level":"INFO","time":"2026-01-15T08:09:40.000Z","message":"initiating delete from interruption message","controller":"interruption","messageKind":"spot_interrupted","NodeClaim":{"name":"general-x1"},"action":"CordonAndDrain","Node":{"name":"ip-10-0-0-1"}}`,
		`{"level":"INFO","time":"2026-01-15T08:10:00.000Z","message":"deleted nodeclaim","NodeClaim":{"name":"general-x1"}}`,
		`{"level":"INFO","time":"2026-01-15T08:12:00.000Z","message":"another","x":1}`,
		"panic: not JSON", `{"some":"other"}`,
	), nil)
	require.NoError(t, err)
	assert.Equal(t, `08:01:00-08:02:00 [general-x1] [general-x2] [ip-10-0-0-1]
08:02:00-08:10:00 [ip-10-0-0-1] [ip-10-0-0-2]
08:10:00-08:12:00 [ip-10-0-0-2]
`, told(h))
	assert.Equal(t, []string{"ip-10-0-0-1"}, h.Observations[2].TakenBack)
	assert.Empty(t, h.Observations[1].TakenBack)
	n := h.Observations[2].Nodes[0]
	assert.Equal(t, "m5.large us-east-1a spot", n.Labels[corev1.LabelInstanceTypeStable]+" "+n.Labels[corev1.LabelTopologyZone]+" "+n.Labels["karpenter.sh/capacity-type"])
	assert.Equal(t, "general", h.Observations[0].Nodes[0].Labels["karpenter.sh/nodepool"])
	assert.Equal(t, []string{"lines that are neither audit events nor Karpenter's: 1", "lines that are not JSON objects: 1"}, h.Notes)
}

func TestBadLogs(t *testing.T) {
	for text, want := range map[string]string{
		"":         "log: no event of an audit log or of Karpenter's log",
		`{"kind":`: "log:1: unexpected end of JSON input",
		`{"time":"now","message":"launched nodeclaim"}`:                                              `log:1: time now: want ISO 8601`,
		`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"create"}`: "log:1: an audit event without stageTimestamp",
		event(1, "create", "pods", "a", `,"responseObject":{"spec":{"containers":"none"}}`):          "log:1: the object: ",
	} {
		_, err := history.ReadLogs(nil, logs(text), nil)
		assert.ErrorContains(t, err, want, text)
	}
	_, err := history.New(nil, nil, start())
	assert.EqualError(t, err, "history: nothing was observed")
	_, err = history.New(nil, []history.Observation{{At: start()}}, start())
	assert.ErrorContains(t, err, "which is not after the last observation")
}

func FuzzReadLogs(f *testing.F) {
	f.Add(event(1, "create", "nodes", "a", `,"responseObject":{"metadata":{"name":"a"}}`))
	f.Add(`{"time":"2026-01-15T08:10:00.000Z","message":"deleted nodeclaim"}`)
	f.Fuzz(func(t *testing.T, text string) {
		h, err := history.ReadLogs(nil, logs(text), nil)
		if err != nil {
			return
		}
		assert.NotEmpty(t, h.Observations)
	})
}

// What a writer writes of random observations is read as the same observations.
func TestWhatIsWrittenIsRead(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var list []history.Observation
		at := start()
		for range 10 {
			o := history.Observation{At: at}
			for n := range 4 {
				if r.IntN(2) == 0 {
					o.Nodes = append(o.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", n), Labels: map[string]string{"size": fmt.Sprint(r.IntN(2))}}})
				}
			}
			for p := range 6 {
				if r.IntN(2) == 0 {
					pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("p%d", p), UID: types.UID(fmt.Sprintf("%d-%d", p, len(list)))}}
					if r.IntN(3) > 0 {
						pod.Spec.NodeName = fmt.Sprintf("n%d", r.IntN(4))
					}
					o.Pods = append(o.Pods, pod)
				}
			}
			list = append(list, o)
			at = at.Add(time.Duration(1+r.IntN(9)) * time.Minute)
		}
		want, err := history.New(nil, list, at)
		require.NoError(t, err)
		var file bytes.Buffer
		w := history.NewWriter(&file)
		for _, o := range want.Observations {
			require.NoError(t, w.Observe(o))
		}
		require.NoError(t, w.End(at))
		got, err := history.ReadLogs(nil, []history.Log{{Name: "log", Data: &file}}, nil)
		require.NoError(t, err)
		require.Equal(t, merged(told(want)), merged(told(got)), "seed %d", seed)
	}
}

// merged leaves out the observations in which nothing happened, which a log does not tell.
func merged(text string) string {
	var out []string
	last := ""
	for line := range strings.Lines(text) {
		at, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		if state != last {
			out = append(out, strings.Split(at, "-")[0]+" "+state)
		}
		last = state
	}
	return strings.Join(out, "\n")
}

// A managed node group of cluster-autoscaler and a node of EKS Auto Mode have prices, from their labels, and policies can buy what was there.
func TestNodesThatNoPoolSells(t *testing.T) {
	snapshot := func(name, more string) manifests.File {
		return manifests.File{Name: name, Data: []byte(`{apiVersion: v1, kind: List, items: [
  {apiVersion: v1, kind: Node, metadata: {name: ng-1, labels: {node.kubernetes.io/instance-type: m5.large, topology.kubernetes.io/zone: us-east-1a, eks.amazonaws.com/nodegroup: web, eks.amazonaws.com/capacityType: SPOT, team: shop, kubernetes.io/arch: amd64, kubernetes.io/os: linux}}, spec: {taints: [{key: shop, effect: NoSchedule}]}, status: {allocatable: {cpu: 1930m, memory: 7200Mi, pods: "29"}, capacity: {cpu: "2", memory: 8Gi, pods: "29"}}},
  {apiVersion: v1, kind: Node, metadata: {name: auto-1, labels: {node.kubernetes.io/instance-type: c6a.large, topology.kubernetes.io/zone: us-east-1b, karpenter.sh/capacity-type: on-demand, karpenter.sh/nodepool: general-purpose, eks.amazonaws.com/compute-type: auto}}, status: {allocatable: {cpu: "1.9", memory: 3Gi, pods: "27"}}},
  {apiVersion: v1, kind: Node, metadata: {name: own, labels: {kubernetes.io/os: linux}}},
  {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}, spec: {nodeName: ng-1, containers: [{name: a, image: a}]}}` + more + `]}`)}
	}
	h, err := history.ParseSnapshots([]manifests.File{
		snapshot("cluster-2026-01-15T08-10-00Z.yaml", ""),
		snapshot("cluster-20260115-0800.json", `, {apiVersion: v1, kind: Pod, metadata: {name: b, namespace: shop}, spec: {containers: [{name: a, image: a}]}, status: {phase: Succeeded}}`),
	}, nil)
	require.NoError(t, err)
	assert.Equal(t, "08:00:00-08:10:00 [auto-1] [ng-1] [own] a@ng-1\n08:10:00-08:20:00 [auto-1] [ng-1] [own] a@ng-1\n", told(h))
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	sale, err := h.Sale(market)
	require.NoError(t, err)
	nodes, prices, known := sale.Nodes(h.Observations[0].Nodes)
	assert.Equal(t, []bool{true, true, false}, known)
	assert.InDelta(t, 0.0765, prices[0].Dollars(), 1e-9, "c6a.large on demand")
	assert.Less(t, prices[1].Dollars(), 0.096, "m5.large on the spot market")
	assert.Equal(t, "web", nodes[1].Labels["karpenter.sh/nodepool"])
	require.Len(t, sale.Snapshot.Pools, 2)
	web := sale.Snapshot.Pools[1]
	assert.Equal(t, "shop", web.Labels["team"])
	require.Len(t, web.Types, 1)
	require.Len(t, web.Types[0].Offerings, 1)
	memory := web.Types[0].Allocatable()[corev1.ResourceMemory]
	assert.GreaterOrEqual(t, memory.Value(), int64(7200<<20), "at least what the node had")
	assert.Len(t, web.Taints, 1)
	assert.Len(t, sale.Notes, 2)
}

// Nodes of a Karpenter pool that is gone have labels that Karpenter sets and no type has. What their pods select is for sale.
func TestNodesOfAPoolThatIsGone(t *testing.T) {
	h, err := history.ParseSnapshots([]manifests.File{{Name: "2026-01-15T08-00-00Z.yaml", Data: []byte(`{apiVersion: v1, kind: List, items: [
  {apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: other}, spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}}},
  {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {node.kubernetes.io/instance-type: c6a.large, topology.kubernetes.io/zone: us-east-1b, karpenter.sh/capacity-type: on-demand, karpenter.sh/nodepool: gone, karpenter.k8s.aws/ec2nodeclass: default, karpenter.k8s.aws/instance-of-tomorrow: "7"}}, status: {allocatable: {cpu: "1.9", memory: 3Gi, pods: "27"}}},
  {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}, spec: {nodeName: n1, nodeSelector: {karpenter.k8s.aws/ec2nodeclass: default}, containers: [{name: a, image: a, resources: {requests: {cpu: "1"}}}]}}]}`)}}, &manifests.Options{Classes: pipeline.NodeClassDecoders(), Assume: true})
	require.NoError(t, err)
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	sale, err := h.Sale(market)
	require.NoError(t, err)
	s := sale.Snapshot
	s.Pods = []*corev1.Pod{h.Observations[0].Pods[0].DeepCopy()}
	s.Pods[0].Spec.NodeName = ""
	p, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	require.Len(t, p.NewNodes(), 1)
	assert.Equal(t, "default", p.NewNodes()[0].Node().Labels["karpenter.k8s.aws/ec2nodeclass"])
}

// A snapshot shows by a taint which spot machine is about to be taken back, and later ones go on knowing it.
func TestTakenBackInSnapshots(t *testing.T) {
	h, err := history.ParseSnapshots([]manifests.File{
		{Name: "2026-01-15T08-00-00Z.yaml", Data: []byte("{apiVersion: v1, kind: Node, metadata: {name: a}}")},
		{Name: "2026-01-15T08-05-00Z.yaml", Data: []byte("{apiVersion: v1, kind: Node, metadata: {name: a}, spec: {taints: [{key: aws-node-termination-handler/spot-itn, effect: NoSchedule}]}}")},
		{Name: "2026-01-15T08-10-00Z.yaml", Data: []byte("{apiVersion: v1, kind: Node, metadata: {name: b}}")},
	}, nil)
	require.NoError(t, err)
	var back [][]string
	for _, o := range h.Observations {
		back = append(back, o.TakenBack)
	}
	assert.Equal(t, [][]string{nil, {"a"}, {"a"}}, back)
}

// A pool of EKS Auto Mode sells its nodes itself, and what it cannot say of prices is a note.
func TestAutoMode(t *testing.T) {
	h, err := history.ParseSnapshots([]manifests.File{{Name: "2026-01-15T08-00-00Z.yaml", Data: []byte(`{apiVersion: v1, kind: List, items: [
  {apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general-purpose}, spec: {template: {spec: {nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: default}, requirements: [
    {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, {key: eks.amazonaws.com/instance-category, operator: In, values: [c, m, r]}, {key: eks.amazonaws.com/instance-generation, operator: Gt, values: ["4"]}]}}}},
  {apiVersion: v1, kind: Node, metadata: {name: auto-1, labels: {node.kubernetes.io/instance-type: c6a.large, topology.kubernetes.io/zone: us-east-1b, karpenter.sh/capacity-type: on-demand, karpenter.sh/nodepool: general-purpose, eks.amazonaws.com/compute-type: auto}}, status: {allocatable: {cpu: "1.9", memory: 3Gi, pods: "27"}}}]}`)}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	require.NoError(t, err)
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	sale, err := h.Sale(market)
	require.NoError(t, err)
	require.Len(t, sale.Snapshot.Pools, 1)
	_, prices, known := sale.Nodes(h.Observations[0].Nodes)
	assert.True(t, known[0])
	assert.InDelta(t, 0.0765, prices[0].Dollars(), 1e-9)
	assert.Contains(t, strings.Join(sale.Notes, "\n"), "without the fee that AWS adds")
}

// A snapshot whose name says no time is of the latest time in it, and one that says none is an error.
func TestTimesOfSnapshots(t *testing.T) {
	file := func(name, node string) manifests.File {
		return manifests.File{Name: name, Data: []byte(node)}
	}
	h, err := history.ParseSnapshots([]manifests.File{
		file("b.yaml", "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {conditions: [{type: Ready, status: \"True\", lastHeartbeatTime: 2026-01-15T09:00:00Z}]}}"),
		file("1768464000.yaml", "{apiVersion: v1, kind: Node, metadata: {name: a}}"),
	}, nil)
	require.NoError(t, err)
	assert.Equal(t, "08:00:00-09:00:00 [a]\n09:00:00-10:00:00 [a]\n", told(h))
	assert.Equal(t, []string{"snapshots without a time in their names, dated by the latest time in them: 1"}, h.Notes)
	_, err = history.ParseSnapshots([]manifests.File{file("c.yaml", "{apiVersion: v1, kind: Node, metadata: {name: a}}"), file("1768464000.yaml", "{")}, nil)
	assert.ErrorContains(t, err, "c.yaml: neither the name nor an object says when it was taken")
	assert.ErrorContains(t, err, "1768464000.yaml:1")
	_, err = history.ReadFolder(t.TempDir(), nil)
	assert.ErrorContains(t, err, "no snapshot")
	_, err = history.ReadFolder("nowhere", nil)
	assert.Error(t, err)
}

// Pods of a log get the scheduler's default spread as pods of manifests do: those that a Service selects and that have no spread of their own.
func TestDefaultSpreadOfRecordedPods(t *testing.T) {
	cluster, err := manifests.Parse([]manifests.File{{Name: "shop.yaml", Data: []byte(`
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: early, namespace: shop, labels: {app: web}}, spec: {containers: [{name: a}]}}
`)}}, &manifests.Options{Spread: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}})
	require.NoError(t, err)
	const pod = `,"responseObject":{"kind":"Pod","metadata":{"labels":{"app":%q}},"spec":{"containers":[]%s}}`
	h, err := history.ReadLogs(cluster, logs(
		event(1, "create", "pods", "late", fmt.Sprintf(pod, "web", "")),
		event(2, "create", "pods", "other", fmt.Sprintf(pod, "db", "")),
		event(3, "create", "pods", "own", fmt.Sprintf(pod, "web", `,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"rack","whenUnsatisfiable":"ScheduleAnyway"}]`)),
		event(60, "create", "pods/binding", "late", `,"requestObject":{"kind":"Binding","target":{"kind":"Node","name":"a"}}`),
		event(100, "create", "pods", "last", fmt.Sprintf(pod, "db", "")),
	), nil)
	require.NoError(t, err)
	last := h.Observations[len(h.Observations)-1]
	spread := map[string]string{}
	for _, p := range last.Pods {
		for _, c := range p.Spec.TopologySpreadConstraints {
			spread[p.Name] += c.TopologyKey
		}
	}
	assert.Equal(t, map[string]string{"early": corev1.LabelTopologyZone, "late": corev1.LabelTopologyZone, "own": "rack"}, spread)
	assert.Same(t, h.Observations[1].Pods[0], last.Pods[0], "a pod that stays is the same object")
	assert.Equal(t, []string{"recorded pods with the default topology spread, which have none of their own and are selected by a Service or a controller: 2"}, h.Notes)
	assert.Empty(t, cluster.Pods[0].Spec.TopologySpreadConstraints, "no argument is modified")
}
