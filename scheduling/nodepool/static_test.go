package nodepool_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func static(replicas, limit int64) nodepool.NodePool {
	p := nodepool.NodePool{Name: "base", Replicas: &replicas}
	if limit >= 0 {
		p.Limits = corev1.ResourceList{"nodes": *resource.NewQuantity(limit, resource.DecimalSI)}
	}
	return p
}

func TestDeficitAndSurplus(t *testing.T) {
	for _, c := range []struct{ replicas, limit, staying, leaving, deficit, surplus int64 }{
		{3, -1, 0, 0, 3, 0},
		{3, -1, 3, 0, 0, 0},
		{3, -1, 5, 0, 0, 2},
		{3, -1, 2, 4, 1, 0}, // those that leave are no nodes of tomorrow
		{3, -1, 5, 4, 0, 2}, // and no surplus
		{3, 2, 0, 0, 2, 0},  // the limit
		{3, 4, 2, 2, 0, 0},  // counts all machines
		{3, 5, 2, 2, 1, 0},
		{3, 1, 2, 2, 0, 0}, // that is lower than what there is
		{0, -1, 2, 1, 0, 2},
		{0, 0, 0, 0, 0, 0},
	} {
		p, now := static(c.replicas, c.limit), nodepool.Population{Staying: c.staying, Leaving: c.leaving}
		assert.Equal(t, []int64{c.deficit, c.surplus}, []int64{p.Deficit(now), p.Surplus(now)}, "%+v", c)
	}
	grows := nodepool.NodePool{Name: "grows"}
	assert.Zero(t, grows.Deficit(nodepool.Population{}))
	assert.Zero(t, grows.Surplus(nodepool.Population{Staying: 9}))
	going := static(3, -1)
	going.Metadata.DeletionTimestamp = new(metav1.Now())
	assert.Zero(t, going.Deficit(nodepool.Population{}))
	assert.Zero(t, going.Surplus(nodepool.Population{Staying: 9}))
}

// Whatever there is, buying the deficit or giving back the surplus leads to the replicas or to the limit, and then to rest.
func TestStaticPoolsComeToRest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		p := static(r.Int64N(6), r.Int64N(8)-1)
		now := nodepool.Population{Staying: r.Int64N(8), Leaving: r.Int64N(4)}
		deficit, surplus := p.Deficit(now), p.Surplus(now)
		require.True(t, deficit == 0 || surplus == 0, "%+v", now)
		then := nodepool.Population{Staying: now.Staying + deficit - surplus, Leaving: now.Leaving + surplus}
		if limit, ok := p.Limits["nodes"]; ok && deficit > 0 {
			require.LessOrEqual(t, then.Staying+then.Leaving, limit.Value())
		}
		require.Zero(t, p.Surplus(then))
		then.Leaving = 0 // they are gone
		then.Staying += p.Deficit(then)
		require.Zero(t, p.Deficit(then))
		want := *p.Replicas
		if limit, ok := p.Limits["nodes"]; ok {
			want = min(want, max(limit.Value(), now.Staying-surplus))
		}
		require.Equal(t, want, then.Staying, "%+v", now)
	}
}

func ExampleNodePool_Deficit() {
	p, err := nodepool.Decode([]byte(`{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "base"},
		"spec": {"replicas": 5, "limits": {"nodes": 6}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Deficit(nodepool.Population{Staying: 3}), p.Deficit(nodepool.Population{Staying: 3, Leaving: 2}), p.Surplus(nodepool.Population{Staying: 7}))
	// Output: 2 1 2
}

// A node that leaves has its place in the limit until it is gone.
func ExamplePopulation() {
	two, three := int64(2), resource.MustParse("3")
	p := nodepool.NodePool{Name: "base", Replicas: &two, Limits: corev1.ResourceList{"nodes": three}}
	fmt.Println(p.Deficit(nodepool.Population{Staying: 1, Leaving: 1}), p.Deficit(nodepool.Population{Staying: 1, Leaving: 2}))
	// Output: 1 0
}
