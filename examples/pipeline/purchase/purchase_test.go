package purchase_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/purchase"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/requirements"
)

const cluster = `
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: web}, spec: {template: {spec: {nodeClassRef: {group: g, kind: Class, name: web}, requirements: []}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, resources: {requests: {cpu: "3"}}}]
`

const catalogue = `[
{"name": "a.4", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "4", "memory": "8Gi", "pods": "20"}, "offerings": [{"Price": 0.2, "Available": true,
  "Requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]}, {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}]},
{"name": "b.4", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "4", "memory": "8Gi", "pods": "20"}, "offerings": [{"Price": 0.3, "Available": true,
  "Requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]}, {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}]}]`

// buy buys two nodes from a cloud that has one machine of the cheaper type.
func buy() (*pipeline.Market, *pipeline.Purchase, error) {
	m, err := manifests.Parse([]manifests.File{{Name: "cluster.yaml", Data: []byte(cluster)}}, nil)
	if err != nil {
		return nil, nil, err
	}
	market, err := pipeline.KWOKMarket("two types", []byte(catalogue))
	if err != nil {
		return nil, nil, err
	}
	s, _, err := pipeline.Snapshot(m, market)
	if err != nil {
		return nil, nil, err
	}
	cloud, err := memcloud.New(memcloud.Config{
		Types: pipeline.Offered(s), Clock: memcloud.NewClock(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)),
		Pools: []memcloud.Pool{{Type: "a.4", Offering: requirements.MustParse("topology.kubernetes.io/zone=z, karpenter.sh/capacity-type=on-demand"), Free: 1}},
	})
	if err != nil {
		return nil, nil, err
	}
	tokens := 0
	b := pipeline.Buyer{
		Provider: cloud, Now: cloud.Clock().Now,
		Wait:  func(ctx context.Context, d time.Duration) error { cloud.Clock().Advance(d); return ctx.Err() },
		Token: func(string) string { tokens++; return fmt.Sprint(tokens) },
	}
	bought, err := b.Buy(context.Background(), s) //nolint:forbidigo // for Examples, which have no t
	return market, bought, err
}

// What was bought, at the price of what was launched, and what was refused on the way.
func ExampleOf() {
	market, bought, err := buy()
	if err != nil {
		fmt.Println(err)
		return
	}
	r := purchase.Of(market, bought)
	fmt.Println(r.Summary.NewNodes, "nodes,", r.Summary.PricePerHour, "an hour, not below", r.Summary.LowerBoundPerHour)
	for _, n := range r.NewNodes {
		fmt.Println(n.Name, n.InstanceType, n.Pods)
	}
	if err := r.WriteRefused(os.Stdout, terminal.Style{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2 nodes, 0.5 an hour, not below 0.4
	// web-0 a.4 [default/web-0]
	// web-1 b.4 [default/web-1]
	//
	// planned 3 times; the cloud refused the following, and is not asked for it again until the given time
	// REFUSED   NAME  WHERE        UNTIL                 WHY
	// offering  a.4   z on-demand  2026-01-31T12:03:00Z  the pool is empty
}

// The launches behind the nodes of the report, in its order.
func ExampleNodes() {
	_, bought, err := buy()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range purchase.Nodes(bought) {
		fmt.Println(n.Name, n.Launch.ID)
	}
	// Output:
	// web-0 memcloud://i-00000001
	// web-1 memcloud://i-00000002
}
