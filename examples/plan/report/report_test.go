package report_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/report"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func planned() (*plan.Plan, error) {
	pod := func(name, cpu string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		}}}}
	}
	gated := pod("gated", "1")
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "later"}}
	capacity := corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}
	types := []instancetypes.InstanceType{{Name: "four", Capacity: capacity, Offerings: []instancetypes.Offering{
		{Price: 0.2, Available: true, Requirements: requirements.MustParse("topology.kubernetes.io/zone=a, karpenter.sh/capacity-type=spot")},
		{Price: 0.3, Available: true, Requirements: requirements.MustParse("topology.kubernetes.io/zone=b, karpenter.sh/capacity-type=spot")},
	}}}
	there := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "there"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		"cpu": resource.MustParse("1"), "pods": resource.MustParse("10"),
	}}}
	return plan.Make(context.Background(), scheduling.Snapshot{ //nolint:forbidigo // for the Example, which has no t
		Pods: []*corev1.Pod{pod("web", "3"), pod("small", "1"), pod("giant", "9"), gated}, Nodes: []*corev1.Node{there},
		Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "default"}, Types: types}},
	}, nil)
}

// A gate reads what provision -o json has written, or makes it itself.
func ExampleOf() {
	p, err := planned()
	if err != nil {
		fmt.Println(err)
		return
	}
	r := report.Of(p)
	s := r.Summary
	fmt.Println(s.Scheduled, "placed,", s.Unschedulable, "not,", s.Ignored, "ignored;", s.PricePerHour, s.Proof, s.Seconds == (*report.Seconds)(nil), s.Prices == report.Prices{})
	n := r.NewNodes[0]
	other := n.Alternatives[0]
	fmt.Println(n.Name, n.InstanceType, n.Zone, n.Pods, "or in", other.Zone)
	e := r.ExistingNodes[0]
	fmt.Println(e.Name, e.Pods)
	u := r.Unschedulable[0]
	why := u.Reasons[0]
	near := why.Nearest
	fmt.Println(u.Pod, why.Stage, near.InstanceType, near.Short, u.Fix == (*report.Fix)(nil))
	i := r.Ignored[0]
	fmt.Println(i.Pod, i.Why)
	parts := []any{report.Report{}, report.Summary{}, report.Node{}, report.Alternative{}, report.ExistingNode{}, report.Unschedulable{}, report.Reason{}, report.Nearest{}, report.Ignored{}}
	fmt.Println(len(parts), "types, each with keys of its own")
	// Output:
	// 2 placed, 1 not, 1 ignored; 0.2 certificate true true
	// default-0 four a [shop/web] or in b
	// there [shop/small]
	// shop/giant resource four map[cpu:5] true
	// shop/gated scheduling gate "later"
	// 9 types, each with keys of its own
}

// A pod that waits until a leaving node is gone says for which, and no other pod does.
func TestPodsThatWait(t *testing.T) {
	node := func(name string, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: "a"}}, Spec: corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("8"), "pods": resource.MustParse("10")}},
		}
	}
	pod := func(name string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": name}}}
		p.Spec.Containers = []corev1.Container{{Name: "main"}}
		return p
	}
	static, apart, free := pod("agent"), pod("apart"), pod("free")
	static.Spec.NodeName, static.Annotations = "leaves", map[string]string{corev1.MirrorPodAnnotationKey: "agent"}
	apart.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}},
	}}}
	p, err := plan.Make(t.Context(), scheduling.Snapshot{
		Pods:  []*corev1.Pod{static, apart, free},
		Nodes: []*corev1.Node{node("leaves", corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}), node("stays")},
	}, nil)
	require.NoError(t, err)
	r := report.Of(p)
	require.Len(t, r.BindingOrder, 2)
	require.Equal(t, map[string][]string{"shop/apart": {"leaves"}}, r.After)
}

// A program that mends what was refused reads which pods to change, and how.
func ExampleFixOf() {
	p, err := planned()
	if err != nil {
		fmt.Println(err)
		return
	}
	found := p.FirstFixes(false)
	fix := report.FixOf(&found[0])
	fmt.Println(fix.Kind, fix.Pods, fix.Requests)
	index := 0
	text, err := json.Marshal(report.Fix{Kind: string(plan.PreferOnly), Key: corev1.LabelHostname, Constraint: string(plan.PodAffinity), Index: &index, Pods: []string{"shop/web"}})
	fmt.Println(string(text), err)
	// Output:
	// RequestLess [shop/giant] map[cpu:4]
	// {"change":"","verified":false,"placed":0,"refused":0,"kind":"PreferOnly","key":"kubernetes.io/hostname","constraint":"podAffinity","index":0,"pods":["shop/web"]} <nil>
}

// What is written is read again as it was.
func TestReportsComeBack(t *testing.T) {
	p, err := planned()
	require.NoError(t, err)
	data, err := json.Marshal(report.Of(p))
	require.NoError(t, err)
	var back report.Report
	require.NoError(t, json.Unmarshal(data, &back))
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.JSONEq(t, string(data), string(again))
}
