package ruletest_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// Planning reports what is wrong with an object, by its name. Nothing is corrected in silence, and
// nothing panics.
func TestFaultsOfObjects(t *testing.T) {
	pod, pool, typ := ruletest.Pod("x"), ruletest.Pool("p"), ruletest.Type("t", "cpu", "4").Offer("z", "on-demand", 1)
	for want, object := range map[string]ruletest.Object{
		`ruletest: Deployment shop/web: replicas -1: want 0 or more`:                                              ruletest.Deployment("shop/web", -1),
		`ruletest: Pod default/x: cpu is given twice, as 1 and as 2`:                                              pod.Requests("cpu", "1", "cpu", "2"),
		`ruletest: node "n": cpu is given twice, as 1 and as 1`:                                                   ruletest.ExistingNode("n", "cpu", "1", "cpu", "1"),
		`ruletest: type "u": cpu is given twice, as 1 and as 2`:                                                   ruletest.Type("u", "cpu", "1", "cpu", "2").Offer("z", "spot", 1),
		`ruletest: type "t": price NaN: want dollars an hour, 0 or more`:                                          typ.Offer("z", "spot", math.NaN()),
		`ruletest: type "t": price +Inf: want dollars an hour, 0 or more`:                                         typ.Offer("z", "spot", math.Inf(1)),
		`ruletest: type "t": price -1: want dollars an hour, 0 or more`:                                           typ.Offer("z", "spot", -1),
		`ruletest: type "t": an offer needs a zone`:                                                               typ.Offer("", "spot", 1),
		`spec.weight: 0: want 1 to 100`:                                                                           pool.Weight(0),
		`spec.weight: -1: want 1 to 100`:                                                                          pool.Weight(-1),
		`spec.topologySpreadConstraints[0].maxSkew: -1: want 1 or more`:                                           pod.Spreads("zone", -1),
		`spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: -1: want 1 to 100`: pod.Prefers(-1, "a=b"),
		`ruletest: Pod default/x: RunningOn needs the name of a node`:                                             pod.RunningOn(""),
		`ruletest: Pod default/x: Edit needs a function`:                                                          pod.Edit(nil),
		`ruletest: Pod default/x: no container is left to set requests of`:                                        pod.Edit(func(s *corev1.PodSpec) { s.Containers = nil }).Requests("cpu", "1"),
		`ruletest: object 1 of Add is nil; leave it out`:                                                          nil,
	} {
		t.Run(want, func(t *testing.T) {
			_, err := ruletest.New(ruletest.Pool("other"), object).Solve()
			require.ErrorContains(t, err, want)
		})
	}
	_, err := ruletest.New(pool).FS(nil, "*.yaml").Solve()
	require.ErrorContains(t, err, "ruletest: FS needs a file system")
}

// The last value of a label counts, for types as for all other objects.
func TestLabelsAreReplaced(t *testing.T) {
	typ := ruletest.Type("t", "cpu", "4").Offer("z", "on-demand", 1).Label("disk", "slow").Label("disk", "fast")
	ruletest.New(ruletest.Pool("p"), typ, ruletest.Pod("x").On("disk=fast"), ruletest.Pod("y").On("disk=slow")).Plan(t).Pods("x").ArePlaced()
	p, err := ruletest.New(ruletest.Pool("p"), typ, ruletest.Pod("y").On("disk=slow")).Solve()
	require.NoError(t, err)
	require.Len(t, p.Packed().Unplaced(), 1)
}
