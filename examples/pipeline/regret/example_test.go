package regret_test

import (
	"context"
	"fmt"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
)

const twoHours = `{apiVersion: v1, kind: List, items: [
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: default}, spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [
  {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}, {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}}}},
{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: {node.kubernetes.io/instance-type: m5.4xlarge, topology.kubernetes.io/zone: us-east-1a, karpenter.sh/capacity-type: on-demand, karpenter.sh/nodepool: default}},
  status: {allocatable: {cpu: 15890m, memory: 60Gi, pods: "234"}, capacity: {cpu: "16", memory: 64Gi, pods: "234"}}},
{apiVersion: v1, kind: Pod, metadata: {name: web-0, namespace: shop}, spec: {nodeName: node-a, containers: [{name: web, image: registry.example.com/web, resources: {requests: {cpu: 1500m, memory: 4Gi}}}]}}]}`

// A node of m5.4xlarge for a pod that fits an m5.large.
func ExampleAudit() {
	h, err := history.ParseSnapshots([]manifests.File{{Name: "2026-01-15T08-00-00Z.yaml", Data: []byte(twoHours)}}, nil)
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
	r, err := regret.Audit(context.Background(), h, sale, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("paid $%.3f, bound $%.3f\n", r.Paid.Dollars(), r.Bound.Dollars())
	d := r.Decisions[0]
	fmt.Printf("%s %s: %s\n", d.Kind, d.Node, d.Better)
	// Output:
	// paid $0.768, bound $0.096
	// kept node-a: m5.large in us-east-1a, on-demand, is enough for 1 pod ($0.096/h)
}

// Bills add up exactly, whatever the parts.
func ExampleAmount() {
	var sum regret.Amount
	for range 3600 {
		sum += 96_000_000 // a second of a node of $0.096 an hour
	}
	fmt.Println(sum.Dollars())
	// Output: 0.096
}
