package nodepool_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func ExampleDecode() {
	p, err := nodepool.Decode([]byte(`{
		"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "default"},
		"spec": {
			"requirements": [{"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m"]}],
			"labels": {"team": "shop"}, "consolidation": {"enabled": true}
		}}`))
	fmt.Println(err)
	fmt.Println(p.NodeRequirements())
	fmt.Println(p.Disruption.Policy)
	// Output:
	// <nil>
	// karpenter.k8s.aws/instance-category in (c,m), karpenter.sh/nodepool in (default), team in (shop)
	// WhenEmptyOrUnderutilized
}

// A pool made in Go gives nodes back like a pool from a manifest.
func ExampleNew() {
	p := nodepool.New("web", requirements.In("kubernetes.io/arch", "arm64"))
	fmt.Println(p.NodeRequirements())
	fmt.Println(p.Disruption.Policy, "after", *p.Disruption.ConsolidateAfter, "or", *p.Disruption.ExpireAfter, p.Disruption.Budgets[0].Allowed(20), "of 20 at once")
	// Output:
	// karpenter.sh/nodepool in (web), kubernetes.io/arch in (arm64)
	// WhenEmptyOrUnderutilized after 0s or 720h0m0s 2 of 20 at once
}

func ExampleFieldError() {
	_, err := nodepool.Decode([]byte(`{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"},
		"spec": {"weight": 101, "requirements": []}}`))
	var first *nodepool.FieldError
	fmt.Println(errors.As(err, &first), first.Path)
	fmt.Println(err)
	// Output:
	// true spec.requirements
	// nodepool: NodePool a: spec.requirements: unknown field "requirements": did you mean "spec.template.spec.requirements"?
	// nodepool: NodePool a: spec.weight: 101: want 1 to 100
}

func ExampleNodePool() {
	p := nodepool.NodePool{Name: "gpu", Labels: map[string]string{"team": "ml"}, Requirements: requirements.MustParse("kubernetes.io/arch in (amd64)")}
	fmt.Println(p.NodeRequirements())
	// Output: karpenter.sh/nodepool in (gpu), kubernetes.io/arch in (amd64), team in (ml)
}

func ExampleNodeClassRef() {
	fmt.Println(nodepool.NodeClassRef{}.IsZero(), nodepool.NodeClassRef{Name: "default"}.IsZero())
	// Output: true false
}

func ExampleCompare() {
	fmt.Println(nodepool.Compare(nodepool.NodePool{Name: "a"}, nodepool.NodePool{Name: "b", Weight: 10}))
	// Output: 1
}

// A custom hook: pools that name no architecture get two.
func ExampleApply() {
	both := func(p nodepool.NodePool) nodepool.NodePool {
		if !p.Requirements.Has("kubernetes.io/arch") {
			p.Requirements, _ = p.Requirements.Intersect(requirements.MustParse("kubernetes.io/arch in (amd64,arm64)"))
		}
		return p
	}
	p := nodepool.Apply(nodepool.NodePool{}, nodepool.LinuxByDefault, both)
	fmt.Println(p.Requirements)
	// Output: kubernetes.io/arch in (amd64,arm64), kubernetes.io/os in (linux)
}

func ExampleRequireByDefault() {
	onDemand := nodepool.RequireByDefault(requirements.In("karpenter.sh/capacity-type", "on-demand"))
	fmt.Println(onDemand(nodepool.NodePool{}).Requirements)
	// Output: karpenter.sh/capacity-type in (on-demand)
}

func ExampleLinuxByDefault() {
	fmt.Println(nodepool.LinuxByDefault(nodepool.NodePool{}).Requirements)
	// Output: kubernetes.io/os in (linux)
}

func ExampleBudget() {
	b := nodepool.Budget{Nodes: 10, Percent: true, Schedule: "0 9 * * mon-fri", Duration: 8 * time.Hour}
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	active, err := b.Active(noon)
	fmt.Println(active, err, b.Allowed(25))
	// Output: true <nil> 3
}

func ExampleParseBudget() {
	b, err := nodepool.ParseBudget("10%")
	fmt.Println(b.Allowed(25), err)
	_, err = nodepool.ParseBudget("ten")
	fmt.Println(err)
	// Output:
	// 3 <nil>
	// "ten": want a count such as "5" or a share such as "10%"
}

func ExampleDisruption() {
	var d nodepool.Disruption
	fmt.Println(d.ConsolidateAfter == nil, d.ExpireAfter == nil)
	// Output: true true
}

func ExampleKubelet() {
	p, _ := nodepool.Decode([]byte(`{"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": "a"},
		"spec": {"template": {"spec": {"kubelet": {"maxPods": 20}}}}}`))
	fmt.Println(*p.Kubelet.MaxPods, p.Kubelet.PodsPerCore == nil)
	// Output: 20 true
}

func ExamplePolicy() {
	p, _ := nodepool.Decode([]byte(`{"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": "a"},
		"spec": {"disruption": {"consolidationPolicy": "WhenUnderutilized"}}}`))
	fmt.Println(p.Disruption.Policy)
	// Output: WhenEmptyOrUnderutilized
}

func ExampleReason() {
	b := nodepool.Budget{Reasons: []nodepool.Reason{nodepool.Drifted}}
	fmt.Println(b.Counts(nodepool.Drifted), b.Counts(nodepool.Empty))
	// Output: true false
}

func ExampleDefault() {
	var linux nodepool.Default = nodepool.LinuxByDefault
	fmt.Println(linux(nodepool.NodePool{}).Requirements)
	// Output: kubernetes.io/os in (linux)
}

// An object from a client does not say its kind.
func ExampleDecodeObject() {
	p, err := nodepool.DecodeObject(map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"weight": 10, "template": map[string]any{"spec": map[string]any{}}}})
	fmt.Println(p.APIVersion, p.Name, p.Weight, err)
	_, err = nodepool.DecodeObject(map[string]any{"kind": "Provisioner", "metadata": map[string]any{"name": "a"}})
	fmt.Println(err)
	// Output:
	// karpenter.sh/v1 a 10 <nil>
	// nodepool: Provisioner a: apiVersion: "karpenter.sh/v1" has no Provisioner (did you mean "karpenter.sh/v1alpha5"?)
}
