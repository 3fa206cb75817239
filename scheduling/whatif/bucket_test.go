package whatif

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
)

// plainly is find without buckets and bounds.
func (e *engine) plainly(c *class, lo, hi int) int {
	for at := lo; at < hi; at++ {
		if n := &e.nodes[at]; n.open() && e.accepts(c, n) {
			return at
		}
	}
	return hi
}

func quantities(cpu, memory int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
		corev1.ResourcePods: resource.MustParse("30"),
	}
}

// randomCluster has nodes of so many label classes, and pods of some classes with all types of constraints.
func randomCluster(r *rand.Rand, nodes, kinds int) scheduling.Snapshot {
	var s scheduling.Snapshot
	for i := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%04d", i), Labels: map[string]string{
			corev1.LabelTopologyZone: fmt.Sprintf("z%d", r.IntN(3)), "kind": fmt.Sprint(r.IntN(kinds)), "rack": fmt.Sprint(r.IntN(100)),
		}}}
		n.Labels[corev1.LabelHostname] = n.Name
		n.Status.Allocatable = quantities(1000+500*r.Int64N(16), 1000+1000*r.Int64N(32))
		n.Status.Capacity = n.Status.Allocatable
		s.Nodes = append(s.Nodes, n)
	}
	for a := range 30 {
		app := map[string]string{"app": fmt.Sprint(a)}
		own := &metav1.LabelSelector{MatchLabels: app}
		spec := corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: quantities(100+100*r.Int64N(85), 50+100*r.Int64N(320))}}}}
		delete(spec.Containers[0].Resources.Requests, corev1.ResourcePods)
		key := []string{corev1.LabelTopologyZone, corev1.LabelHostname, "rack"}[r.IntN(3)]
		term := []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: own}}
		switch a % 6 {
		case 1:
			spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 2, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own}}
		case 2:
			spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term}}
		case 3:
			spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term}}
		case 4:
			spec.NodeSelector = map[string]string{"kind": fmt.Sprint(r.IntN(kinds))}
		case 5:
			spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		}
		for k := range max(1, (nodes/2+a)/30) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("a%d-%d", a, k), Labels: app}, Spec: spec}
			p.Spec.NodeName = s.Nodes[r.IntN(nodes)].Name
			s.Pods = append(s.Pods, p)
		}
	}
	return s
}

// Whatever happened to the nodes, and was undone since, the same node is found as by looking at each.
func TestBucketsFindTheSameNode(t *testing.T) {
	for _, shape := range []struct{ nodes, kinds int }{{20, 1}, {3000, 1}, {400, 90}} {
		r := rand.New(rand.NewPCG(uint64(shape.nodes), 5))
		c, err := Compile(randomCluster(r, shape.nodes, shape.kinds), nil)
		require.NoError(t, err)
		e := c.e
		e.names, e.left = make([]int, 1), [][]int64{{0}} // of a pool to add nodes to
		if shape.kinds == 90 {
			require.Len(t, e.buckets, mostBuckets+1, "some nodes share the bucket of those that are odd")
		}
		found := 0
		check := func() {
			for i := range e.classes {
				lo := r.IntN(len(e.nodes)) * r.IntN(2)
				want := e.plainly(&e.classes[i], lo, len(e.nodes))
				require.Equal(t, want, e.find(&e.classes[i], lo, len(e.nodes)))
				if want < len(e.nodes) {
					found++
				}
			}
		}
		check()
		for step := range 300 {
			switch k := r.IntN(10); {
			case k < 6:
				p := int32(r.IntN(len(e.pods)))
				if at := e.find(&e.classes[e.pods[p].class], r.IntN(len(e.nodes)), len(e.nodes)); at < len(e.nodes) {
					e.do(op{kind: opPlace, pod: p, node: int32(at), old: e.pods[p].node})
				}
			case k <= 7:
				if n := int32(r.IntN(len(e.nodes))); e.nodes[n].alive {
					e.do(op{kind: opRemove, node: n})
				}
			case k == 8:
				n := e.nodes[r.IntN(len(e.nodes))]
				n.name, n.alive, n.Free = fmt.Sprint("new", len(e.nodes), "-", step), true, append([]int64(nil), n.Free...)
				n.pool, n.usage = 0, nil
				e.do(op{kind: opAdd, added: &n})
			default:
				e.rollback(max(0, len(e.journal)-r.IntN(30)))
			}
			if step%10 == 0 {
				check()
			}
		}
		e.rollback(0)
		check()
		require.Positive(t, found)
	}
}
