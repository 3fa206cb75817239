package pipeline_test

import (
	"context"
	"fmt"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// shelf sells two types in one zone, in the format of Karpenter's KWOK provider.
const shelf = `[
  {"name": "a.4", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "4", "memory": "16Gi", "pods": "50"},
   "offerings": [{"Price": 0.2, "Available": true, "Requirements": [
     {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]},
     {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}]},
  {"name": "b.4", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "4", "memory": "32Gi", "pods": "50"},
   "offerings": [{"Price": 0.3, "Available": true, "Requirements": [
     {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]},
     {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}]}
]`

// shop is a pool that buys anything, and three pods of which one fills a machine of the shelf.
const shop = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: registry.example.com/web, resources: {requests: {cpu: "3"}}}]
`

// shopping is the pods of the shop, and what they can buy off the shelf.
func shopping() (scheduling.Snapshot, error) {
	market, err := pipeline.KWOKMarket("shelf.json", []byte(shelf))
	if err != nil {
		return scheduling.Snapshot{}, err
	}
	m, err := manifests.Parse([]manifests.File{{Name: "shop.yaml", Data: []byte(shop)}}, nil)
	if err != nil {
		return scheduling.Snapshot{}, err
	}
	s, _, err := pipeline.Snapshot(m, market)
	return s, err
}

// What can be bought is a region of the embedded EC2 catalogue, or a file; either way it says of which list its prices are.
func ExampleMarket() {
	for _, open := range []func() (*pipeline.Market, error){
		func() (*pipeline.Market, error) { return pipeline.EC2Market("us-east-1") },
		func() (*pipeline.Market, error) { return pipeline.KWOKMarket("shelf.json", []byte(shelf)) },
	} {
		market, err := open()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: more than two types: %t, prices of a known day: %t\n", market.List, market.Len() > 2, market.Date != "")
	}
	// Output:
	// EC2 on-demand us-east-1: more than two types: true, prices of a known day: true
	// shelf.json: more than two types: false, prices of a known day: false
}

// A node to buy, in the words of Kubernetes, and what else would hold its pods.
func Example_newNode() {
	s, err := shopping()
	if err != nil {
		fmt.Println(err)
		return
	}
	packed, err := plan.Make(context.Background(), s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes := packed.NewNodes()
	n := nodes[0]
	fmt.Println(n.Name, n.InstanceType.Name, n.Zone, "for", n.Pods[0].Name)
	line := func(a plan.Alternative) string {
		return fmt.Sprintf("%s in %s: $%.2f an hour", a.InstanceType, a.Zone, a.PricePerHour)
	}
	for _, a := range n.Alternatives {
		fmt.Println(line(a))
	}
	claim := pipeline.Claim(&n, "token-1")
	fmt.Println(claim.Name, "may be any of", len(claim.Candidates))
	// Output:
	// default-0 a.4 zone-a for web-0
	// b.4 in zone-a: $0.30 an hour
	// default-0 may be any of 2
}

// The cloud has one machine left of the type that the plan wants three of. What it refuses is planned around: in the end every
// pod has a node, and the purchase says what that took.
func ExampleBuyer() {
	s, err := shopping()
	if err != nil {
		fmt.Println(err)
		return
	}
	cloud, err := memcloud.New(memcloud.Config{Types: pipeline.Offered(s), Pools: []memcloud.Pool{{
		Type: "a.4", Offering: requirements.MustParse("topology.kubernetes.io/zone=zone-a, karpenter.sh/capacity-type=on-demand"), Free: 1,
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens := 0
	b := pipeline.Buyer{
		Provider: cloud,
		Plan:     func(s scheduling.Snapshot) (*plan.Plan, error) { return plan.Make(context.Background(), s, nil) },
		Now:      cloud.Clock().Now,
		Wait:     func(ctx context.Context, d time.Duration) error { cloud.Clock().Advance(d); return ctx.Err() },
		Token:    func(node string) string { tokens++; return fmt.Sprintf("%s-%d", node, tokens) },
	}
	purchase, err := b.Buy(context.Background(), s)
	if err != nil {
		fmt.Println(err)
		return
	}
	unplaced := func(p *pipeline.Purchase) int { return len(p.Last.Unplaced()) }
	line := func(n pipeline.Bought) string {
		return fmt.Sprintf("%s is a %s for %d pod, $%.2f an hour", n.Launch.ID, n.Launch.Type, len(n.Pods), n.PricePerHour)
	}
	for _, n := range purchase.Nodes {
		fmt.Println(line(n))
	}
	fmt.Println(purchase.Plans, "plans,", len(purchase.Refused), "refusal,", unplaced(purchase), "unplaced")
	// Output:
	// memcloud://i-00000001 is a a.4 for 1 pod, $0.20 an hour
	// memcloud://i-00000002 is a b.4 for 1 pod, $0.30 an hour
	// memcloud://i-00000003 is a b.4 for 1 pod, $0.30 an hour
	// 3 plans, 1 refusal, 0 unplaced
}

// A refused pod comes with a change that was tried.
func Example_fix() {
	s, err := shopping()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range s.Pods {
		p.Spec.NodeSelector = map[string]string{"team": "web"}
	}
	packed, err := plan.Make(context.Background(), s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	u := packed.Unplaced()[0]
	fix := packed.Fix(u.Class, u.Reasons(), false)
	fmt.Println(fix.Text)
	fmt.Println(fix.Untried, "changes were not tried")
	// Output:
	// would fit if pool "default" had the label team=web, for at most $0.60/h more
	// 0 changes were not tried
}

// What was ordered is planned with before the cloud has answered.
func ExamplePromised() {
	s, err := shopping()
	if err != nil {
		fmt.Println(err)
		return
	}
	packed, err := plan.Make(context.Background(), s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes := packed.NewNodes()
	asked := pipeline.Claim(&nodes[0], "token")
	coming, err := pipeline.Promised(s.Pools, asked)
	fmt.Println(coming.Name, coming.Labels["node.kubernetes.io/instance-type"], coming.Allocatable.Cpu(), err)
	asked.Candidates[0].Type = "gone"
	_, err = pipeline.Promised(s.Pools, asked)
	fmt.Println(err)
	// Output:
	// default-0 a.4 4 <nil>
	// pipeline: claim "default-0": pool "default" has no instance type "gone" any more
}

// What Create has returned is planned with from then on.
func ExampleInFlight() {
	asked := cloudprovider.NodeClaim{Name: "default-0", Pool: "default"}
	bought := cloudprovider.Instance{ID: "cloud://1", Claim: "default-0", Pool: "default"}
	claim := pipeline.InFlight(asked, bought)
	fmt.Println(claim.Name, claim.ProviderID, claim.Labels["karpenter.sh/nodepool"])
	// Output: default-0 cloud://1 default
}
