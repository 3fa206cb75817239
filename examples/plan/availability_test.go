package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// drawScarce is one pod, a pool that may restrict zones and capacity types, and types of which some
// offerings cannot be bought. available makes all of them available.
func drawScarce(r *rand.Rand, available bool) scheduling.Snapshot {
	var types []instancetypes.InstanceType
	for i := range 1 + r.IntN(3) {
		var offers []instancetypes.Offering
		for _, k := range r.Perm(4)[:1+r.IntN(3)] {
			o := instancetypes.Offer([]string{"a", "b"}[k%2], []string{"on-demand", "spot"}[k/2], 0.1+r.Float64())
			if out := r.IntN(3); !available && out == 0 {
				o.Available = false
			} else if !available && out == 1 {
				o = o.Stock(fmt.Sprint(i), 0)
			}
			offers = append(offers, o)
		}
		cpu := int64(2 << r.IntN(3))
		capacity := corev1.ResourceList{"cpu": *resource.NewQuantity(cpu, resource.DecimalSI), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")}
		types = append(types, instancetypes.New(fmt.Sprint("t-", i), nil, capacity, offers...))
	}
	pool, pod := nodepool.New("general"), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.PodSpec{NodeSelector: map[string]string{}}}
	for _, label := range [][]string{{corev1.LabelTopologyZone, "a", "b"}, {instancetypes.LabelCapacityType, "on-demand", "spot"}} {
		if value := label[1+r.IntN(2)]; r.IntN(3) == 0 {
			pool.Requirements, _ = pool.Requirements.Intersect(requirements.MustOf(requirements.In(label[0], value)))
		} else if r.IntN(2) == 0 {
			pod.Spec.NodeSelector[label[0]] = value
		}
	}
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewQuantity(int64(1+r.IntN(6)), resource.DecimalSI)}}}}
	return scheduling.Snapshot{Pods: []*corev1.Pod{pod}, Pools: []scheduling.Pool{{NodePool: pool, Types: types}}}
}

// A refusal says that something cannot be bought now exactly if the pod would have a place otherwise.
// A pool that sells nothing at all says so first, whatever the pod asks.
func TestReasonsNameWhatIsNotAvailable(t *testing.T) {
	draws, refused, otherwise := 5000, 0, 0
	if testing.Short() {
		draws = 1000
	}
	for seed := range draws {
		made, err := plan.Make(t.Context(), drawScarce(rand.New(rand.NewPCG(uint64(seed), 251)), false), nil)
		require.NoError(t, err)
		if len(made.Unplaced()) == 0 {
			continue
		}
		all, err := plan.Make(t.Context(), drawScarce(rand.New(rand.NewPCG(uint64(seed), 251)), true), nil)
		require.NoError(t, err)
		reason := made.Unplaced()[0].Reasons()[0]
		places := len(all.Unplaced()) == 0
		text := reason.String()
		if strings.Contains(text, "all of its offerings") || strings.Contains(text, "the pool's own requirements") {
			continue
		}
		if refused++; places {
			otherwise++
		}
		assert.Equal(t, places, strings.Contains(text, "available now") || strings.Contains(text, "sold out"), "%d: %s", seed, text)
		assert.True(t, places || reason.Stage != scheduling.StageOffering, "%d: %s", seed, text)
	}
	t.Log(refused, otherwise)
	assert.Greater(t, otherwise, draws/20)
	assert.Greater(t, refused-otherwise, draws/20)
}
