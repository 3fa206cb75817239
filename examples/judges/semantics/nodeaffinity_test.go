package semantics_test

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// kube-scheduler's own matcher is the judge of what node affinity means. Random pods meet random nodes, and both sides
// must say the same. Integers are written canonically here; TestOneDivergence has the other spellings.
func TestNodeAffinityAgreesWithKubernetes(t *testing.T) {
	rounds := rounds(4_000, 200_000)
	rng := rand.New(rand.NewPCG(1, 2))
	matched := 0
	for range rounds {
		spec := randomPod(rng)
		pod, err := kube.FromPod(spec)
		require.NoError(t, err)
		theirs := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec})
		var preferred *nodeaffinity.PreferredSchedulingTerms
		if spec.Affinity != nil {
			preferred, err = nodeaffinity.NewPreferredSchedulingTerms(spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
			require.NoError(t, err)
		}
		for range 10 {
			node := randomNode(rng)
			want, err := theirs.Match(node)
			require.NoError(t, err)
			labels := map[string]string{requirements.NodeNameKey: node.Name}
			maps.Copy(labels, node.Labels)
			if got := pod.Required.Matches(labels); want != got {
				require.Failf(t, "not what Kubernetes says", "want %t for %v and %s", want, node.Labels, pod.Required)
			}
			// A running node leaves nothing open: Compatible is then the same question.
			if got := pod.Required.Compatible(requirements.FromLabels(labels), requirements.Keys{}); want != got {
				require.Failf(t, "not what Kubernetes says", "compatible: want %t for %v and %s", want, node.Labels, pod.Required)
			}
			var score int64
			for _, p := range pod.Preferred {
				if p.Nodes.Matches(labels) {
					score += int64(p.Weight)
				}
			}
			if preferred != nil && preferred.Score(node) != score {
				require.Failf(t, "not what Kubernetes says", "score: want %d, got %d for %v and %v", preferred.Score(node), score, node.Labels, pod.Preferred)
			}
			if want {
				matched++
			}
		}
	}
	require.Greater(t, matched, rounds, "one in ten matches, or the test is hollow")
	require.Less(t, matched, 9*rounds)
}

func randomKey(rng *rand.Rand) string {
	return []string{"zone", "cpu", "example.com/disk", "metadata.name"}[rng.IntN(4)] // the last is a label like others
}

func randomValue(rng *rand.Rand) string {
	return []string{"a", "b", "", "0", "1", "2", "3", "40", "9223372036854775807", "node-1"}[rng.IntN(10)]
}

func randomTerm(rng *rand.Rand) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for range rng.IntN(3) {
		e := corev1.NodeSelectorRequirement{Key: randomKey(rng)}
		switch e.Operator = corev1.NodeSelectorOperator(requirements.Operators()[rng.IntN(6)]); e.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			for range 1 + rng.IntN(3) {
				e.Values = append(e.Values, randomValue(rng))
			}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			e.Values = []string{strconv.Itoa(rng.IntN(45))}
		default: // no values
		}
		term.MatchExpressions = append(term.MatchExpressions, e)
	}
	if rng.IntN(5) == 0 {
		op := []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}[rng.IntN(2)]
		term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{
			Key: "metadata.name", Operator: op, Values: []string{[]string{"node-1", "node-2"}[rng.IntN(2)]},
		})
	}
	return term
}

func randomPod(rng *rand.Rand) *corev1.PodSpec {
	spec := &corev1.PodSpec{}
	if rng.IntN(3) == 0 {
		spec.NodeSelector = map[string]string{randomKey(rng): randomValue(rng)}
	}
	if rng.IntN(8) == 0 {
		return spec
	}
	na := &corev1.NodeAffinity{}
	spec.Affinity = &corev1.Affinity{NodeAffinity: na}
	if rng.IntN(8) > 0 {
		sel := &corev1.NodeSelector{}
		for range rng.IntN(4) {
			sel.NodeSelectorTerms = append(sel.NodeSelectorTerms, randomTerm(rng))
		}
		na.RequiredDuringSchedulingIgnoredDuringExecution = sel
	}
	for range rng.IntN(3) {
		na.PreferredDuringSchedulingIgnoredDuringExecution = append(na.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: 1 + rng.Int32N(100), Preference: randomTerm(rng)})
	}
	return spec
}

func randomNode(rng *rand.Rand) *corev1.Node {
	labels := map[string]string{}
	for range rng.IntN(4) {
		labels[randomKey(rng)] = randomValue(rng)
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: []string{"node-1", "node-2", "node-3"}[rng.IntN(3)], Labels: labels}}
}

// The one place where the algebra and kube-scheduler differ, as documented at the package: kube-scheduler reads any
// spelling of an integer under Gt and Lt, the algebra reads the canonical one only. Label values cannot start with a
// sign, so leading zeros are all that is left of it on a real node.
func TestOneDivergence(t *testing.T) {
	theirs, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "cpu", Operator: corev1.NodeSelectorOpGt, Values: []string{"4"}}}},
	}})
	require.NoError(t, err)
	ours := requirements.Gt("cpu", 4)
	for _, c := range []struct {
		value               string
		kubernetes, algebra bool
	}{
		{"7", true, true},
		{"4", false, false},
		{"007", true, false}, // the divergence
		{"7.0", false, false},
		{"seven", false, false},
		{"9223372036854775808", false, false}, // out of range for both
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"cpu": c.value}}}
		require.Equal(t, c.kubernetes, theirs.Match(node), "kube-scheduler on %q", c.value)
		require.Equal(t, c.algebra, ours.Contains(c.value), "the algebra on %q", c.value)
	}
}
