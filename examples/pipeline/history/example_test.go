package history_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// Karpenter's log says which machines were there, and when.
func ExampleReadLogs() {
	h, err := history.ReadLogs(nil, []history.Log{{Name: "karpenter.log", Data: strings.NewReader(
		`{"time":"2026-01-15T08:00:00.000Z","message":"launched nodeclaim","NodeClaim":{"name":"general-x1"},"instance-type":"m5.large","zone":"us-east-1a","capacity-type":"on-demand"}
{"time":"2026-01-15T09:30:00.000Z","message":"deleted nodeclaim","NodeClaim":{"name":"general-x1"}}`)}}, &history.Options{Step: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, o := range h.Observations {
		fmt.Println(o.At.Format("15:04"), "to", h.End(i).Format("15:04"), len(o.Nodes), "nodes")
	}
	// Output:
	// 08:00 to 09:30 1 nodes
	// 09:30 to 09:31 0 nodes
}

// Snapshots that kubectl wrote are a history. What was there has a price, whoever bought it.
func ExampleHistory() {
	h, err := history.ParseSnapshots([]manifests.File{{Name: "2026-01-15T08-00-00Z.yaml", Data: []byte(
		"{apiVersion: v1, kind: Node, metadata: {name: a, labels: {node.kubernetes.io/instance-type: m5.large, topology.kubernetes.io/zone: us-east-1a, eks.amazonaws.com/nodegroup: web}}}")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	market, err := pipeline.EC2Market("us-east-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	sale, err := h.Sale(market)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, prices, known := sale.Nodes(h.Observations[0].Nodes)
	fmt.Println(prices[0].Dollars(), known[0])
	fmt.Println(sale.Notes[0])
	// Output:
	// 0.096 true
	// nodes that no pool sells count as bought from a pool of their own, "web", with the types that were seen there: m5.large
}

// A cluster over time is written as the audit log of its API server.
func ExampleWriter() {
	w := history.NewWriter(os.Stdout)
	at := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	first := history.Observation{At: at, Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}
	_ = w.Observe(history.Observation{At: at})
	_ = w.Observe(first)
	_ = w.Observe(history.Observation{At: at.Add(time.Hour)})
	// Output:
	// {"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"00000000-0000-0000-0000-000000000001","stage":"ResponseComplete","requestURI":"/api/v1/nodes/a","verb":"create","objectRef":{"resource":"nodes","name":"a","apiVersion":"v1"},"responseStatus":{"code":200},"responseObject":{"metadata":{"name":"a"},"spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}},"requestReceivedTimestamp":"2026-01-15T08:00:00Z","stageTimestamp":"2026-01-15T08:00:00Z"}
	// {"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"00000000-0000-0000-0000-000000000002","stage":"ResponseComplete","requestURI":"/api/v1/nodes/a","verb":"delete","objectRef":{"resource":"nodes","name":"a","apiVersion":"v1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-15T09:00:00Z","stageTimestamp":"2026-01-15T09:00:00Z"}
}
