package eligibility_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// The order in which nodes leave a static pool does not depend on the order in which they are listed.
func TestSurplus(t *testing.T) {
	daemon := pod(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" })
	dear := pod(func(p *corev1.Pod) { p.Annotations = map[string]string{eviction.DisruptionCost: "134217728"} })
	pool := nodepool.NodePool{Name: "default", APIVersion: nodepool.V1}
	named := func(name string, change ...func(*eligibility.Node)) eligibility.Node {
		n := node(change...)
		n.Node.Name, n.Pool = name, &pool
		return *n
	}
	inOrder := []eligibility.Node{
		named("b-empty"),
		named("c-daemons-only", with(daemon)),
		named("z-near-its-end", with(pod()), func(n *eligibility.Node) { n.Claim.ExpireAfter = after(2 * time.Hour) }), // half of 2
		named("e-one-pod", with(pod())),
		named("d-two-pods", with(pod()), with(pod())), // as dear as the next
		named("f-a-dear-pod", with(dear)),
		named("a-do-not-disrupt", noted(eviction.DoNotDisrupt)),
		named("a-protected-daemon", with(pod(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet"; protected(p) }))),
		named("a-protected-pod", with(pod(protected))),
	}
	passedOver := []eligibility.Node{named("a-leaving", tainted("karpenter.sh/disrupted")), named("a-deleted", func(n *eligibility.Node) { n.Claim.Deleting = true })}
	other := named("a-of-another")
	other.Pool = &nodepool.NodePool{Name: "other"}
	passedOver = append(passedOver, other, eligibility.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a-of-none"}}})
	var want []string
	for _, n := range inOrder {
		want = append(want, n.Name())
	}
	r := rand.New(rand.NewPCG(1, 1))
	for replicas := range len(inOrder) + 3 {
		all := append(append([]eligibility.Node(nil), inOrder...), passedOver...)
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		pool.Replicas = new(int64(replicas))
		var got []string
		for _, n := range eligibility.Surplus(pool, all, now()) {
			got = append(got, n.Name())
		}
		assert.ElementsMatch(t, want[:max(0, len(want)-replicas)], got, "%d replicas", replicas)
		if replicas == 0 {
			assert.Equal(t, want, got)
		}
	}
	pool.Replicas = nil
	assert.Empty(t, eligibility.Surplus(pool, inOrder, now()), "a pool that grows with its pods has no surplus")
}

func ExampleSurplus() {
	pool := nodepool.NodePool{Name: "base", Replicas: new(int64(1))}
	busy := eligibility.FromNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "busy"}}, []*corev1.Pod{{}}, &pool, 0)
	idle := eligibility.FromNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "idle"}}, nil, &pool, 0)
	for _, n := range eligibility.Surplus(pool, []eligibility.Node{busy, idle}, time.Now()) {
		fmt.Println(n.Name())
	}
	// Output: idle
}
