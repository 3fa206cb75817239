package requirements_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

func expression(key string, op requirements.Operator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOperator(op), Values: values}
}

func TestNewReportsEveryFaultWithItsPath(t *testing.T) {
	for _, c := range []struct {
		name   string
		key    string
		op     requirements.Operator
		values []string
		want   []string // the beginnings of the lines
	}{
		{"operator misspelt", "cpu", "Inn", []string{"a"}, []string{`operator: "Inn": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte (did you mean "In"?)`}},
		{"operator in lower case", "cpu", "doesnotexist", nil, []string{`operator: "doesnotexist": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte (did you mean "DoesNotExist"?)`}},
		{"operator of nowhere", "cpu", "Matches", nil, []string{`operator: "Matches": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte`}},
		{"no operator", "cpu", "", nil, []string{`operator: "": want one of`}},
		{"In of nothing", "zone", requirements.OpIn, nil, []string{"values: operator In needs at least one value"}},
		{"NotIn of nothing", "zone", requirements.OpNotIn, nil, []string{"values: operator NotIn needs at least one value"}},
		{"Exists with a value", "zone", requirements.OpExists, []string{"a"}, []string{`values: operator Exists takes no values, got ["a"]`}},
		{"DoesNotExist with values", "zone", requirements.OpDoesNotExist, []string{"a", "b"}, []string{`values: operator DoesNotExist takes no values, got ["a" "b"]`}},
		{"Gt of two", "cpu", requirements.OpGt, []string{"1", "2"}, []string{"values: operator Gt needs exactly one integer, got 2 values"}},
		{"Lt of none", "cpu", requirements.OpLt, nil, []string{"values: operator Lt needs exactly one integer, got 0 values"}},
		{"Gte of a word", "cpu", requirements.OpGte, []string{"four"}, []string{`values[0]: "four": operator Gte needs an integer`}},
		{"Lte of a fraction", "cpu", requirements.OpLte, []string{"1.5"}, []string{`values[0]: "1.5": operator Lte needs an integer`}},
		{"Gt out of range", "cpu", requirements.OpGt, []string{"9223372036854775808"}, []string{`values[0]: "9223372036854775808": operator Gt needs an integer`}},
		{"Lt of a negative number", "cpu", requirements.OpLt, []string{"-1"}, []string{`values[0]: "-1": operator Lt needs an integer that is not negative`}},
		{"Gt with a sign", "cpu", requirements.OpGt, []string{"+4"}, []string{`values[0]: "+4": operator Gt needs an integer`}},
		{"no key", "", requirements.OpExists, nil, []string{`key: "": `, `key: "": `}},
		{"a key with two slashes", "a/b/c", requirements.OpExists, nil, []string{`key: "a/b/c": `}},
		{"values and key", "-", requirements.OpIn, []string{"ok", "not ok", strings.Repeat("x", 64)}, []string{`key: "-": `, `values[1]: "not ok": `, `values[2]: "xxxx`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := requirements.New(c.key, c.op, c.values...)
			require.Error(t, err)
			require.True(t, r.Equal(requirements.Requirement{}))
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(c.want), err.Error())
			for i, want := range c.want {
				require.True(t, strings.HasPrefix(lines[i], want), "want %s, got %s", want, lines[i])
			}
			var invalid *requirements.InvalidError
			require.True(t, errors.As(err, &invalid))
			require.NotEmpty(t, invalid.Path)
		})
	}
}

func TestNewIsTheConstructorOfItsOperator(t *testing.T) {
	for _, c := range []struct {
		op     requirements.Operator
		values []string
		want   requirements.Requirement
	}{
		{requirements.OpIn, []string{"b", "a"}, requirements.In("k", "a", "b")},
		{requirements.OpNotIn, []string{"7"}, requirements.NotIn("k", "7")},
		{requirements.OpExists, nil, requirements.Exists("k")},
		{requirements.OpDoesNotExist, nil, requirements.DoesNotExist("k")},
		{requirements.OpGt, []string{"007"}, requirements.Gt("k", 7)},
		{requirements.OpLt, []string{"9223372036854775807"}, requirements.Lt("k", 9223372036854775807)},
		{requirements.OpGte, []string{"0"}, requirements.Gte("k", 0)},
		{requirements.OpLte, []string{"12"}, requirements.Lte("k", 12)},
	} {
		r, err := requirements.New("k", c.op, c.values...)
		require.NoError(t, err)
		require.True(t, r.Equal(c.want), "%s: want %s, got %s", c.op, c.want, r)
	}
}

func TestLabelsAreWhatIsCertain(t *testing.T) {
	s := requirements.MustParse("zone in (a,b), arch=arm64, cpu=8, gpu, !disk, team=x | !team")
	require.Equal(t, map[string]string{"arch": "arm64", "cpu": "8"}, s.Labels())
	require.Empty(t, requirements.Set{}.Labels())
	require.Empty(t, requirements.Impossible().Labels())
}

func TestInvalidErrorWithoutPath(t *testing.T) {
	require.EqualError(t, &requirements.InvalidError{Detail: "wrong"}, "wrong")
	require.EqualError(t, &requirements.InvalidError{Path: "a[1]", Detail: "wrong"}, "a[1]: wrong")
}

func TestFromExpressions(t *testing.T) {
	s, err := requirements.FromExpressions([]corev1.NodeSelectorRequirement{
		expression("zone", requirements.OpIn, "b", "a"), expression("cpu", requirements.OpGt, "4"),
		expression("gpu", requirements.OpDoesNotExist), expression("cpu", requirements.OpLt, "100"),
	})
	require.NoError(t, err)
	require.Equal(t, "cpu>=5, cpu<=99, !gpu, zone in (a,b)", s.String())

	contradiction, err := requirements.FromExpressions([]corev1.NodeSelectorRequirement{
		expression("zone", requirements.OpIn, "a"), expression("zone", requirements.OpIn, "b"),
	})
	require.NoError(t, err, "a contradiction is well formed")
	require.True(t, contradiction.IsImpossible())

	_, err = requirements.FromExpressions([]corev1.NodeSelectorRequirement{
		expression("zone", requirements.OpIn, "a"), expression("zone", "in", "b"), expression("cpu", requirements.OpGt, "x"),
	})
	require.EqualError(t, err, "[1].operator: \"in\": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte (did you mean \"In\"?)\n"+
		"[2].values[0]: \"x\": operator Gt needs an integer")

	empty, err := requirements.FromExpressions(nil)
	require.NoError(t, err)
	require.True(t, empty.IsAnything())
}

func TestFromNodeSelector(t *testing.T) {
	anything, err := requirements.FromNodeSelector(nil)
	require.NoError(t, err)
	require.True(t, anything.Matches(nil), "no selector, no demand")

	nothing, err := requirements.FromNodeSelector(&corev1.NodeSelector{})
	require.NoError(t, err)
	require.True(t, nothing.IsImpossible(), "a selector without terms matches nothing")

	got, err := requirements.FromNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{}, // matches nothing, and is left out
		{MatchExpressions: []corev1.NodeSelectorRequirement{expression("zone", requirements.OpIn, "a")}},
		{MatchFields: []corev1.NodeSelectorRequirement{expression("metadata.name", requirements.OpIn, "node-1")}},
		{
			MatchExpressions: []corev1.NodeSelectorRequirement{expression("zone", requirements.OpExists)},
			MatchFields:      []corev1.NodeSelectorRequirement{expression("metadata.name", requirements.OpNotIn, "node-2")},
		},
	}})
	require.NoError(t, err)
	require.Equal(t, "zone in (a) or metadata.name in (node-1) or metadata.name notin (node-2), zone", got.String())

	got, err = requirements.FromNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
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
	free, err := requirements.FromPod(&corev1.PodSpec{})
	require.NoError(t, err)
	require.True(t, free.Required.Matches(nil))
	require.Empty(t, free.Preferred)

	pod, err := requirements.FromPod(podSpec())
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
	_, err := requirements.FromPod(spec)
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

// Whatever can be written for the API means the same when it is read again.
func TestExpressionsReadBack(t *testing.T) {
	written := 0
	for _, p := range compounds(t, 100_000) {
		exprs, ok := p.real.Expressions()
		if !ok {
			require.Empty(t, exprs)
			continue
		}
		written++
		back := requirements.Set{}
		for _, e := range exprs {
			require.NotContains(t, []corev1.NodeSelectorOperator{"Gte", "Lte"}, e.Operator, "the API does not have it")
			r, err := requirements.New(e.Key, requirements.Operator(e.Operator), e.Values...)
			require.NoError(t, err, "%s as %v", p.real, exprs)
			back, err = back.Intersect(requirements.MustOf(r))
			require.NoError(t, err)
		}
		require.True(t, back.Get(key).Equal(p.real), "%s is written as %v", p.real, exprs)
	}
	require.Greater(t, written, 50)

	union := requirements.In(key, "5").Union(requirements.DoesNotExist(key))
	_, ok := union.Expressions()
	require.False(t, ok)
	_, ok = requirements.MustOf(union, requirements.In("x", "y")).Expressions()
	require.False(t, ok)
	_, ok = requirements.Gte("x", 0).Expressions()
	require.False(t, ok, "the API does not accept Gt -1")
	_, ok = requirements.Impossible().Expressions()
	require.False(t, ok)
	exprs, ok := requirements.MustParse("zone in (a), cpu>4, cpu!=6, !gpu").Expressions()
	require.True(t, ok)
	require.Equal(t, []corev1.NodeSelectorRequirement{
		expression("cpu", requirements.OpGt, "4"), expression("cpu", requirements.OpNotIn, "6"),
		expression("gpu", requirements.OpDoesNotExist), expression("zone", requirements.OpIn, "a"),
	}, exprs)
}

// Every argument is compared with a copy made before, spare capacity of slices included, and then overwritten: no
// result may change.
func TestArgumentsStayTheCallers(t *testing.T) {
	values := append(make([]string, 0, 8), "c", "a", "2", "b", "a", "1")
	before := slices.Clone(values[:cap(values)])
	in, notIn := requirements.In(key, values...), requirements.NotIn(key, values...)
	fromNew, err := requirements.New(key, requirements.OpIn, values...)
	require.NoError(t, err)
	keys := requirements.KeysOf(values...)
	_, _ = requirements.Nearest("x", values)
	expr := []corev1.NodeSelectorRequirement{expression("k", requirements.OpIn, values...)}
	fromExpr, err := requirements.FromExpressions(expr)
	require.NoError(t, err)
	one := append(make([]string, 0, 4), "only")
	single := requirements.In(key, one...)
	require.Equal(t, before, values[:cap(values)])

	for i := range values {
		values[i] = "overwritten"
	}
	one[0] = "overwritten"
	require.Equal(t, "k in (1,2,a,b,c)", in.String())
	require.Equal(t, "k notin (1,2,a,b,c)", notIn.String())
	require.True(t, fromNew.Equal(in))
	require.Equal(t, in.String(), fromExpr.String())
	require.Equal(t, "k in (only)", single.String())
	require.Equal(t, []string{"1", "2", "a", "b", "c"}, slices.Collect(keys.All()))

	rs := append(make([]requirements.Requirement, 0, 8), requirements.In("z", "1"), requirements.In("a", "1"), requirements.In("z", "1", "2"))
	set := requirements.MustOf(rs...)
	require.Equal(t, "z", rs[0].Key(), "not sorted in place")
	sets := []requirements.Set{set, set, requirements.MustParse("x")}
	alts := requirements.AnyOf(sets...)
	sets[0] = requirements.Impossible()
	require.Equal(t, "a in (1), z in (1) or x", alts.String())

	got, _ := in.Values()
	got[0] = "overwritten"
	require.Equal(t, "k in (1,2,a,b,c)", in.String(), "a result is the caller's own")
	exprs, _ := in.Expressions()
	exprs[0].Values[0] = "overwritten"
	require.Equal(t, "k in (1,2,a,b,c)", in.String())
	wide, _ := requirements.NotIn(key, "w", "v").Expressions()
	wide[0].Values[0] = "overwritten"
	require.Equal(t, "k notin (v,w)", requirements.NotIn(key, "w", "v").String())

	labels := map[string]string{"a": "1", "b": "2"}
	fromLabels := requirements.FromLabels(labels)
	labels["a"] = "3"
	require.Equal(t, "a in (1), b in (2)", fromLabels.String())
	spec, copied := podSpec(), podSpec()
	_, err = requirements.FromPod(spec)
	require.NoError(t, err)
	require.Equal(t, copied, spec)
}

func TestBuilderCanBeUsedFurther(t *testing.T) {
	var b requirements.Builder
	first, err := b.Add(requirements.In("z", "1")).Add(requirements.In("a", "1", "2")).Set()
	require.NoError(t, err)
	second, err := b.Add(requirements.In("a", "2")).Set()
	require.NoError(t, err)
	require.Equal(t, "a in (1,2), z in (1)", first.String())
	require.Equal(t, "a in (2), z in (1)", second.String())
	third, err := b.AddSet(requirements.Impossible()).Set()
	require.Error(t, err)
	require.True(t, third.IsImpossible())
}
