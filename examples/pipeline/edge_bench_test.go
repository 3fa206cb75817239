package pipeline_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// apartPods are replicas of one deployment that keep apart by node.
func apartPods(n int) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, n)
	labels := map[string]string{"app": "apart"}
	for i := range n {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("apart-%d", i), Labels: labels}}
		p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
		}}}}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
			}},
		}}
		out = append(out, p)
	}
	return out
}

// planEdge plans and fails unless all pods are placed, on the wanted number of new nodes where it is not negative.
func planEdge(b *testing.B, s scheduling.Snapshot, pods, nodes int) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		packed, err := plan.Make(b.Context(), s, nil)
		if err != nil {
			b.Fatal(err)
		}
		if n := len(packed.Bindings()); n != pods {
			b.Fatalf("%d of %d pods placed", n, pods)
		}
		if n := len(packed.NewNodes()); nodes >= 0 && n != nodes {
			b.Fatalf("%d new nodes, want %d", n, nodes)
		}
	}
	b.ReportMetric(float64(pods)*float64(b.N)/b.Elapsed().Seconds(), "pods/s")
}

// Replicas that keep apart need a node each. Ten times as many must not take a hundred times as long.
func BenchmarkSelfAntiAffinity(b *testing.B) {
	for _, n := range []int{500, 5000} {
		b.Run(fmt.Sprintf("pods=%d", n), func(b *testing.B) { planEdge(b, snapshot(b, apartPods(n)), n, n) })
	}
}

// Many pools of the same types, which differ by weight and taint.
func BenchmarkManyPools(b *testing.B) {
	for _, count := range []int{1, 63} {
		b.Run(fmt.Sprintf("pools=%d", count), func(b *testing.B) {
			s := snapshot(b, deployments(2000, 80, true))
			first := s.Pools[0]
			s.Pools = nil
			for i := range count {
				pool := first
				pool.Name = fmt.Sprintf("pool-%02d", i)
				pool.Weight = int32(1 + i)
				if i%2 == 1 {
					pool.Taints = []corev1.Taint{{Key: "team", Value: fmt.Sprintf("team-%d", i), Effect: corev1.TaintEffectNoSchedule}}
				}
				s.Pools = append(s.Pools, pool)
			}
			planEdge(b, s, 2000, -1)
		})
	}
}

// Existing nodes with room: most pods fit on what is there.
func BenchmarkExistingNodes(b *testing.B) {
	for _, count := range []int{100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", count), func(b *testing.B) {
			s := snapshot(b, deployments(3000, 60, true))
			s.Pools[0].NodePool = nodepool.NodePool{Name: "default", Requirements: requirements.MustParse("karpenter.sh/capacity-type=on-demand, kubernetes.io/arch=amd64")}
			room := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("58")}
			for i := range count {
				name := fmt.Sprintf("n-%d", i)
				s.Nodes = append(s.Nodes, &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
						corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("us-east-1%c", 'a'+i%3), corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
					}},
					Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
				})
			}
			planEdge(b, s, 3000, -1)
		})
	}
}

// One pod that asks for a type makes every type a kind of node of its own, and one pod of each team stays out: what is for sale to a class must
// not be copied for each.
func BenchmarkFineLabels(b *testing.B) {
	var pods []*corev1.Pod
	for team := range 300 {
		for range 4 {
			p := deployments(1, 1, false)[0]
			p.Name, p.Labels = fmt.Sprintf("loud-%d", len(pods)), map[string]string{"app": fmt.Sprintf("loud-%d", team)}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}},
			}}}
			pods = append(pods, p)
		}
	}
	pods[0].Spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: "m5.large"}
	s := snapshot(b, pods)
	s.Pools[0].Requirements = requirements.MustParse("topology.kubernetes.io/zone in (us-east-1a,us-east-1b,us-east-1c), kubernetes.io/arch=amd64")
	planEdge(b, s, 900, -1)
}

// Ten pods are pending in a cluster where each node runs thirteen. Five times as many nodes must not take ten times as long.
func BenchmarkFewPending(b *testing.B) {
	for _, count := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", count), func(b *testing.B) {
			const each = 13
			pods := deployments(each*count+10, each*count/100, true)
			s := snapshot(b, nil)
			s.Pools[0].NodePool = nodepool.NodePool{Name: "default", Requirements: requirements.MustParse("topology.kubernetes.io/zone in (us-east-1a,us-east-1b,us-east-1c)")}
			room := corev1.ResourceList{"cpu": resource.MustParse("32"), "memory": resource.MustParse("128Gi"), "pods": resource.MustParse("58")}
			for i := range count {
				name := fmt.Sprintf("n-%d", i)
				s.Nodes = append(s.Nodes, &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
						corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprintf("us-east-1%c", 'a'+i%3), corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
					}},
					Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
				})
			}
			pending := 0
			for i, p := range pods { // the pending ones are of ten deployments
				if i%(len(pods)/10) == 0 && pending < 10 {
					pending++
					continue
				}
				p.Spec.NodeName, p.Status.Phase = s.Nodes[i%count].Name, corev1.PodRunning
			}
			s.Pods = pods
			planEdge(b, s, 10, 0)
		})
	}
}

// teams are n pods, a hundred for each team: four that keep to themselves by zone, where there are three, forty-eight spread
// over zones, and as many that want to be beside those on a node.
func teams(n int) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, n)
	for i := range n {
		team, replica := i/100, i%100
		app, cpu := "loud", "2"
		switch {
		case replica >= 52:
			app, cpu = "guest", "100m"
		case replica >= 4:
			app, cpu = "web", "250m"
		}
		labels := func(app string) map[string]string { return map[string]string{"app": fmt.Sprintf("%s-%d", app, team)} }
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d-%d", app, team, replica), Labels: labels(app)}}
		p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("512Mi")},
		}}}
		term := func(key, app string) []corev1.PodAffinityTerm {
			return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: labels(app)}}}
		}
		switch app {
		case "loud":
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: term(corev1.LabelTopologyZone, "loud"),
			}}
		case "web":
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels("web")},
			}}
		case "guest":
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: term(corev1.LabelHostname, "web"),
			}}
		}
		out = append(out, p)
	}
	return out
}

// One pod of each team stays out, so other orders are tried. Ten times as many pods must not take a hundred times as long.
func BenchmarkUnplaceable(b *testing.B) {
	for _, n := range []int{500, 5000} {
		b.Run(fmt.Sprintf("pods=%d", n), func(b *testing.B) {
			s := snapshot(b, teams(n))
			s.Pools[0].Requirements = requirements.MustParse("topology.kubernetes.io/zone in (us-east-1a,us-east-1b,us-east-1c), kubernetes.io/arch=amd64")
			planEdge(b, s, n-n/100, -1)
		})
	}
}

// One of 5,000 pods must not make the plan cost more than three times as much: a pod that another keeps out of the only zone that
// it asks for, and two pods of which only one fits on the node that suits them.
func BenchmarkOneUnplaceable(b *testing.B) {
	single := func(name string, edit func(*corev1.PodSpec)) *corev1.Pod {
		p := deployments(1, 1, false)[0]
		p.Name, p.Labels = name, map[string]string{"app": name}
		edit(&p.Spec)
		return p
	}
	inZone := func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelTopologyZone: "us-east-1a"} }
	kept := single("kept", func(s *corev1.PodSpec) {
		inZone(s)
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "keeper"}}},
		}}}
	})
	special := func(name string) *corev1.Pod {
		return single(name, func(s *corev1.PodSpec) {
			s.NodeSelector = map[string]string{"special": "yes"}
			s.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("6")}
		})
	}
	room := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("58")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "special", Labels: map[string]string{corev1.LabelHostname: "special", "special": "yes"}},
		Status:     corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, c := range []struct {
		name   string
		extra  []*corev1.Pod
		placed int
	}{
		{"none", nil, 5000},
		{"kept out by another", []*corev1.Pod{single("keeper", inZone), kept}, 5001},
		{"two for one node", []*corev1.Pod{special("one"), special("two")}, 5001},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := snapshot(b, append(deployments(5000, 100, true), c.extra...))
			s.Nodes = []*corev1.Node{node}
			planEdge(b, s, c.placed, -1)
		})
	}
}
