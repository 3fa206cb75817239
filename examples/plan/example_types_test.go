package plan_test

import (
	"context"
	"fmt"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

func snapshot() scheduling.Snapshot { return scheduling.Snapshot{Pods: pods(6), Pools: pools()} }

// A node to buy, in the words of Kubernetes, and what else would hold its pods.
func ExampleNewNode() {
	p, err := plan.Make(context.Background(), snapshot(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var n plan.NewNode = p.NewNodes()[0]
	fmt.Println(n.Name, n.InstanceType.Name, n.Labels["kubernetes.io/arch"], len(n.Pods), "pods take", n.Requests.Cpu(), "cpu")
	var next plan.Alternative = n.Alternatives[0]
	fmt.Printf("or %s in %s at $%.3f\n", next.InstanceType, next.Zone, next.PricePerHour)
	// Output:
	// default-0 c6a.2xlarge amd64 5 pods take 7500m cpu
	// or c6a.2xlarge in us-east-1b at $0.306
}

// Larger machines than 4 cores are not wanted, and first fit will do.
func ExampleOptions() {
	p, err := plan.Make(context.Background(), snapshot(), &plan.Options{
		Packing: &binpack.Options{Effort: binpack.EffortFast}, Objective: &plan.Objective{MostCPU: 4},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(p.NewNodes()), "nodes, none larger")
	// Output: 6 nodes, none larger
}

// A core of the older family is counted as dearer than it is, for it does less.
func ExampleObjective() {
	slower := plan.Factor{Match: requirements.MustParse("karpenter.k8s.aws/instance-family in (c6a)"), Times: 1.5}
	p, err := plan.Make(context.Background(), snapshot(), &plan.Options{Objective: &plan.Objective{Factors: []plan.Factor{slower}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range p.NewNodes() {
		fmt.Println(n.InstanceType.Name)
	}
	// Output:
	// m6a.2xlarge
	// m6a.large
}

// A refused pod comes with a change that was tried.
func ExampleFix() {
	s := snapshot()
	for _, pod := range s.Pods {
		pod.Spec.NodeSelector = map[string]string{"team": "web"}
	}
	p, err := plan.Make(context.Background(), s, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	u := p.Unplaced()[0]
	var fix plan.Fix = p.Fix(u.Class, u.Reasons(), false)
	fmt.Println(fix.Text)
	// Output: would fit if pool "default" had the label team=web, for at most $0.3825/h more
}
