package kube_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

func expression(key string, op requirements.Operator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOperator(op), Values: values}
}

func TestFromExpressions(t *testing.T) {
	s, err := kube.FromExpressions([]corev1.NodeSelectorRequirement{
		expression("zone", requirements.OpIn, "b", "a"), expression("cpu", requirements.OpGt, "4"),
		expression("gpu", requirements.OpDoesNotExist), expression("cpu", requirements.OpLt, "100"),
	})
	require.NoError(t, err)
	require.Equal(t, "cpu>=5, cpu<=99, !gpu, zone in (a,b)", s.String())

	contradiction, err := kube.FromExpressions([]corev1.NodeSelectorRequirement{
		expression("zone", requirements.OpIn, "a"), expression("zone", requirements.OpIn, "b"),
	})
	require.NoError(t, err, "a contradiction is well formed")
	require.True(t, contradiction.IsImpossible())

	_, err = kube.FromExpressions([]corev1.NodeSelectorRequirement{
		expression("zone", requirements.OpIn, "a"), expression("zone", "in", "b"), expression("cpu", requirements.OpGt, "x"),
	})
	require.EqualError(t, err, "[1].operator: \"in\": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte (did you mean \"In\"?)\n"+
		"[2].values[0]: \"x\": operator Gt needs an integer")

	empty, err := kube.FromExpressions(nil)
	require.NoError(t, err)
	require.True(t, empty.IsAnything())
}

func TestFromNodeSelector(t *testing.T) {
	anything, err := kube.FromNodeSelector(nil)
	require.NoError(t, err)
	require.True(t, anything.Matches(nil), "no selector, no demand")

	nothing, err := kube.FromNodeSelector(&corev1.NodeSelector{})
	require.NoError(t, err)
	require.True(t, nothing.IsImpossible(), "a selector without terms matches nothing")

	got, err := kube.FromNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{}, // matches nothing, and is left out
		{MatchExpressions: []corev1.NodeSelectorRequirement{expression("zone", requirements.OpIn, "a")}},
		{MatchFields: []corev1.NodeSelectorRequirement{expression("metadata.name", requirements.OpIn, "node-1")}},
		{
			MatchExpressions: []corev1.NodeSelectorRequirement{expression("zone", requirements.OpExists)},
			MatchFields:      []corev1.NodeSelectorRequirement{expression("metadata.name", requirements.OpNotIn, "node-2")},
		},
	}})
	require.NoError(t, err)
	require.Equal(t, "zone in (a) or \"node name\" in (node-1) or \"node name\" notin (node-2), zone", got.String())

	got, err = kube.FromNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{expression("zone", requirements.OpIn, "a")}},
		{
			MatchExpressions: []corev1.NodeSelectorRequirement{expression("zone", "Equals", "a"), expression("zone", requirements.OpIn)},
			MatchFields: []corev1.NodeSelectorRequirement{
				expression("metadata.namespace", requirements.OpIn, "x"), expression("metadata.name", requirements.OpIn, "x", "y"),
				expression("metadata.name", requirements.OpExists, "x"),
			},
		},
	}})
	require.EqualError(t, err, "nodeSelectorTerms[1].matchExpressions[0].operator: \"Equals\": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte\n"+
		"nodeSelectorTerms[1].matchExpressions[1].values: operator In needs at least one value\n"+
		"nodeSelectorTerms[1].matchFields[0].key: \"metadata.namespace\": the only field that can be matched is \"metadata.name\"\n"+
		"nodeSelectorTerms[1].matchFields[1].values: a field needs exactly one value, got 2\n"+
		"nodeSelectorTerms[1].matchFields[2].operator: \"Exists\": a field can only be matched by In or NotIn")
	require.Equal(t, "zone in (a)", got.String(), "the terms that are well formed")
}

func podSpec() *corev1.PodSpec {
	return &corev1.PodSpec{
		NodeSelector: map[string]string{"arch": "arm64", "disk": "ssd"},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{expression("zone", requirements.OpIn, "b", "a")}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{expression("arch", requirements.OpIn, "amd64")}}, // against the node selector
				{MatchExpressions: []corev1.NodeSelectorRequirement{expression("cpu", requirements.OpGt, "7")}},
			}},
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{expression("zone", requirements.OpIn, "c")}}},
				{Weight: 50, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{expression("zone", requirements.OpIn, "a")}}},
				{Weight: 100}, // prefers every node alike
				{Weight: 50, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{expression("zone", requirements.OpIn, "b")}}},
			},
		}},
	}
}

func TestFromPod(t *testing.T) {
	free, err := kube.FromPod(&corev1.PodSpec{})
	require.NoError(t, err)
	require.True(t, free.Required.Matches(nil))
	require.Empty(t, free.Preferred)

	pod, err := kube.FromPod(podSpec())
	require.NoError(t, err)
	require.Equal(t, "arch in (arm64), disk in (ssd), zone in (a,b) or arch in (arm64), cpu>=8, disk in (ssd)", pod.Required.String())
	var soft []string
	for _, p := range pod.Preferred {
		soft = append(soft, p.Nodes.String())
	}
	require.Equal(t, []string{"zone in (a)", "zone in (b)", "zone in (c)"}, soft, "heaviest first, then the order of the manifest")
	require.Equal(t, int32(50), pod.Preferred[0].Weight)
}

func TestFromPodReportsEveryFault(t *testing.T) {
	spec := podSpec()
	na := spec.Affinity.NodeAffinity
	na.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[1].MatchExpressions[0].Operator = "in"
	na.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[2].MatchExpressions[0].Values = nil
	na.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight = 101
	na.PreferredDuringSchedulingIgnoredDuringExecution[2].Weight = 0
	na.PreferredDuringSchedulingIgnoredDuringExecution[3].Preference.MatchExpressions[0].Key = ""
	_, err := kube.FromPod(spec)
	require.Error(t, err)
	const at = "spec.affinity.nodeAffinity."
	for i, want := range []string{
		at + "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchExpressions[0].operator: ",
		at + "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[2].matchExpressions[0].values: operator Gt needs",
		at + "preferredDuringSchedulingIgnoredDuringExecution[0].weight: 101: want 1 to 100",
		at + "preferredDuringSchedulingIgnoredDuringExecution[2].weight: 0: want 1 to 100",
		at + "preferredDuringSchedulingIgnoredDuringExecution[3].preference.matchExpressions[0].key: ",
	} {
		require.True(t, strings.HasPrefix(strings.Split(err.Error(), "\n")[i], want), "line %d of\n%s", i, err)
	}
	var invalid *requirements.InvalidError
	require.True(t, errors.As(err, &invalid))
}

func TestArgumentsStayTheCallers(t *testing.T) {
	spec, copied := podSpec(), podSpec()
	_, err := kube.FromPod(spec)
	require.NoError(t, err)
	require.Equal(t, copied, spec)

	values := append(make([]string, 0, 4), "c", "a", "b")
	set, err := kube.FromExpressions([]corev1.NodeSelectorRequirement{expression("k", requirements.OpIn, values...)})
	require.NoError(t, err)
	require.Equal(t, []string{"c", "a", "b", ""}, values[:4])
	values[0] = "overwritten"
	require.Equal(t, "k in (a,b,c)", set.String())
	exprs, _ := kube.Expressions(set)
	exprs[0].Values[0] = "overwritten"
	require.Equal(t, "k in (a,b,c)", set.String(), "a result is the caller's own")
}

func BenchmarkFromPod(b *testing.B) {
	spec := podSpec()
	b.ReportAllocs()
	for b.Loop() {
		pod, err := kube.FromPod(spec)
		if err != nil || pod.Required.Len() != 2 || len(pod.Preferred) != 3 {
			b.Fatal(pod, err)
		}
	}
}
