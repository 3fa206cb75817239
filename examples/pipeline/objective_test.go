package pipeline_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

const webs = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [m]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 12
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: registry.example.com/web, resources: {requests: {cpu: "1", memory: 3Gi}}}]
`

func websOnEC2() (scheduling.Snapshot, error) {
	market, err := pipeline.EC2Market("us-east-1")
	if err != nil {
		return scheduling.Snapshot{}, err
	}
	m, err := manifests.Parse([]manifests.File{{Name: "webs.yaml", Data: []byte(webs)}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	if err != nil {
		return scheduling.Snapshot{}, err
	}
	s, _, err := pipeline.Snapshot(m, market)
	return s, err
}

func buy(s scheduling.Snapshot, beyond *plan.Objective) (*plan.Plan, error) {
	return plan.Make(context.Background(), s, &plan.Options{Objective: beyond}) //nolint:forbidigo // for Examples, which have no t
}

// By price alone a family of 2018 wins, for a core of it costs less and does less. A factor that says so makes newer ones
// win.
func Example_objective() {
	s, err := websOnEC2()
	if err != nil {
		fmt.Println(err)
		return
	}
	slower := &plan.Objective{Factors: []plan.Factor{
		{Match: requirements.MustParse("karpenter.k8s.aws/instance-generation<6"), Times: 1.45},
		{Match: requirements.MustParse("karpenter.k8s.aws/instance-generation in (6)"), Times: 1.2},
	}}
	for _, beyond := range []*plan.Objective{nil, slower} {
		packed, err := buy(s, beyond)
		if err != nil {
			fmt.Println(err)
			return
		}
		nodes := packed.NewNodes()
		for _, n := range nodes {
			fmt.Printf("%s $%.3f: %d pods\n", n.InstanceType.Name, n.PricePerHour, len(n.Pods))
		}
		fmt.Printf("$%.3f an hour, counts as $%.3f\n", packed.Cost().Dollars(), packed.Packing.Objective.Dollars())
	}
	// Output:
	// m5a.4xlarge $0.688: 12 pods
	// $0.688 an hour, counts as $0.688
	// m7i-flex.4xlarge $0.766: 12 pods
	// $0.766 an hour, counts as $0.766
}

func TestObjective(t *testing.T) {
	s, err := websOnEC2()
	require.NoError(t, err)
	largest := func(p *plan.Plan) (most int64) {
		for _, b := range p.NewNodes() {
			most = max(most, b.InstanceType.Capacity.Cpu().Value())
		}
		return most
	}
	free, err := buy(s, nil)
	require.NoError(t, err)
	require.Greater(t, largest(free), int64(4))

	small, err := buy(s, &plan.Objective{MostCPU: 4})
	require.NoError(t, err)
	assert.LessOrEqual(t, largest(small), int64(4))
	assert.Len(t, small.Bindings(), 12)
	assert.GreaterOrEqual(t, small.Cost(), free.Cost())

	few, err := buy(s, &plan.Objective{MostNodes: 1})
	require.NoError(t, err)
	assert.Len(t, few.NewNodes(), 1)
	assert.Len(t, few.Bindings(), 12)

	licensed, err := buy(s, &plan.Objective{PerNode: 10, MostCPU: 4})
	require.NoError(t, err)
	assert.Equal(t, licensed.Packing.Cost+binpack.Price(len(licensed.Packing.Bins))*10*binpack.PerDollar, licensed.Packing.Objective)
	assert.LessOrEqual(t, len(licensed.Packing.Bins), len(small.Packing.Bins))
	require.NoError(t, licensed.Instance.VerifyBound(licensed.Packing))
	assert.Len(t, s.Pools[0].Types, len(free.Problem.Pools[0].Types), "the snapshot stays as it is")
}
