package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Where spot pools are too few, pods are placed all the same, and a note says so: for each limit that
// is not kept, with the setting, the pods and the spot pool. There is no note for a limit that is kept.
func TestSpreadThatIsNotKept(t *testing.T) {
	size := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi")}
	for pools := 1; pools <= 4; pools++ {
		for _, onDemand := range []bool{false, true} {
			for _, running := range []int{0, 3} {
				for _, part := range []float64{0.25, 0.5, 0.75, 1} {
					for _, spread := range []plan.Spread{{Workload: part}, {Plan: part}, {Workload: part, Plan: part}} {
						name := fmt.Sprintf("%d spot pools, on-demand %t, %d running, %+v", pools, onDemand, running, spread)
						var types []instancetypes.InstanceType
						for i := range pools {
							offers := []instancetypes.Offering{instancetypes.Offer("a", "spot", 0.1+float64(i)/100)}
							if onDemand {
								offers = append(offers, instancetypes.Offer("a", "on-demand", 1))
							}
							types = append(types, instancetypes.New(fmt.Sprintf("t%d", i), nil, size, offers...))
						}
						s := scheduling.Snapshot{
							Pods: pending(4, func(p *corev1.Pod) {
								p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
								p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1500m")}
							}),
						}
						s.Pools = []scheduling.Pool{{NodePool: nodepool.New("p"), Types: types}}
						in, of, workload := map[string]int{}, 4+running, plan.WorkloadOf(s.Pods[0])
						for i := range running {
							node := types[0].Node(fmt.Sprintf("n%d", i), types[0].Offerings[0], s.Pools[0].PoolLabels())
							s.Nodes = append(s.Nodes, node)
							pod := s.Pods[0].DeepCopy()
							pod.Name, pod.UID, pod.Spec.NodeName = fmt.Sprintf("running-%d", i), "", node.Name
							pod.Status.Phase = corev1.PodRunning
							s.Pods = append(s.Pods, pod)
							in["t0"]++
						}
						p, err := plan.Make(t.Context(), s, &plan.Options{Objective: &plan.Objective{Spread: spread, Flags: true}})
						require.NoError(t, err, name)
						require.Len(t, p.Bindings(), 4, name)
						for _, n := range p.NewNodes() {
							if n.CapacityType == "spot" {
								in[n.InstanceType.Name] += len(n.Pods)
							}
						}
						broken := 0
						for typ, n := range in {
							if n > max(int(part*float64(of)+1e-9), 1) {
								broken++
								assert.Contains(t, notesOf(p), fmt.Sprintf("%d of %d pods", n, of), name)
								assert.Contains(t, notesOf(p), typ+" in a", name)
								if spread.Workload > 0 {
									assert.Contains(t, notesOf(p), fmt.Sprintf("--max-workload-in-spot-pool %v", part), name)
									assert.Contains(t, notesOf(p), workload, name)
								}
								if spread.Plan > 0 {
									assert.Contains(t, notesOf(p), fmt.Sprintf("--max-plan-in-spot-pool %v", part), name)
								}
							}
						}
						if broken == 0 {
							assert.NotContains(t, notesOf(p), "in-spot-pool", name)
						}
						if onDemand && running == 0 {
							assert.Zero(t, broken, name)
						}
					}
				}
			}
		}
	}
}

func notesOf(p *plan.Plan) string { return strings.Join(p.Notes(), "\n") }
