package requirements_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/requirements"
)

// points are what a key of the small nodes may have: absent, a, b, a word nobody mentions, an integer on each side of
// the one bound in use, and all those below it.
func points() []string { return []string{noLabel, "a", "b", otherWord, "0", "1", "2"} }

// choices are what a set may say of one key; nil says nothing.
func choices(key string) []*requirements.Requirement {
	out := []*requirements.Requirement{nil}
	add := func(r requirements.Requirement) { out = append(out, &r) }
	add(requirements.In(key, "a"))
	add(requirements.In(key, "b", "a"))
	add(requirements.NotIn(key, "a"))
	add(requirements.NotIn(key, "b", "1"))
	add(requirements.Exists(key))
	add(requirements.DoesNotExist(key))
	add(requirements.Gt(key, 1))
	add(requirements.Lte(key, 1))
	add(requirements.In(key, "a").Union(requirements.DoesNotExist(key)))
	add(requirements.NotIn(key)) // anything, which a set does not keep
	return out
}

// model is a set in both forms: the real one, and the nodes of the small world that its requirements accept, asked one
// requirement at a time.
type model struct {
	real  requirements.Set
	parts []requirements.Requirement
	nodes []bool
}

func newModel(t *testing.T, world []map[string]string, parts ...requirements.Requirement) model {
	t.Helper()
	set, err := requirements.Of(parts...)
	require.NoError(t, err)
	m := model{real: set, parts: parts, nodes: make([]bool, len(world))}
	for i, labels := range world {
		m.nodes[i] = !slices.ContainsFunc(parts, func(r requirements.Requirement) bool {
			v, ok := labels[r.Key()]
			return ok && !r.Contains(v) || !ok && !r.AllowsAbsent()
		})
	}
	return m
}

// models are all sets over the keys, and the impossible one.
func models(t *testing.T, world []map[string]string, keys ...string) []model {
	t.Helper()
	combos := [][]requirements.Requirement{nil}
	for _, k := range keys {
		var next [][]requirements.Requirement
		for _, c := range combos {
			for _, r := range choices(k) {
				if r == nil {
					next = append(next, c)
				} else {
					next = append(next, append(slices.Clone(c), *r))
				}
			}
		}
		combos = next
	}
	out := []model{{real: requirements.Impossible(), nodes: make([]bool, len(world))}}
	for _, c := range combos {
		out = append(out, newModel(t, world, c...))
	}
	return out
}

func overlap(a, b []bool) bool {
	for i := range a {
		if a[i] && b[i] {
			return true
		}
	}
	return false
}

func inside(a, b []bool) bool {
	for i := range a {
		if a[i] && !b[i] {
			return false
		}
	}
	return true
}

func mustHold(t *testing.T, want, got bool, name string, sets ...requirements.Set) {
	t.Helper()
	if want != got {
		require.Failf(t, "a law is broken", "%s: want %t: %q", name, want, sets)
	}
}

func TestEverySetMatchesWhatItsPartsMatch(t *testing.T) {
	keys := []string{"x", "y"}
	if long() {
		keys = append(keys, "z")
	}
	world := assignments(keys, points())
	for _, m := range models(t, world, keys...) {
		for i, labels := range world {
			if m.nodes[i] != m.real.Matches(labels) {
				require.Failf(t, "a node is wrong", "want %t for %s in %s", m.nodes[i], nodeText(labels), m.real)
			}
		}
		back, err := requirements.Parse(m.real.String())
		require.NoError(t, err)
		require.True(t, back.Equal(m.real), "%q reads back as %q", m.real, back)
		require.Equal(t, !slices.Contains(m.nodes, true), m.real.IsImpossible(), "%s", m.real)
		require.Equal(t, !slices.Contains(m.nodes, false), m.real.IsAnything(), "%s", m.real)
	}
}

func TestEveryPairOfSets(t *testing.T) {
	keys := []string{"x", "y"}
	world := assignments(keys, points())
	all := models(t, world, keys...)
	for _, a := range all {
		for _, b := range all {
			meet := overlap(a.nodes, b.nodes)
			mustHold(t, meet, a.real.Overlaps(b.real), "overlaps", a.real, b.real)
			mustHold(t, inside(a.nodes, b.nodes), a.real.Subset(b.real), "subset", a.real, b.real)
			mustHold(t, slices.Equal(a.nodes, b.nodes), a.real.Equal(b.real), "equal", a.real, b.real)
			mustHold(t, slices.Equal(a.nodes, b.nodes), a.real.String() == b.real.String(), "equal texts", a.real, b.real)
			mustHold(t, slices.Equal(a.nodes, b.nodes), bytes.Equal(a.real.AppendKey(nil), b.real.AppendKey(nil)), "equal keys", a.real, b.real)

			both, err := a.real.Intersect(b.real)
			mustHold(t, meet, err == nil, "an intersection that is impossible is an error", a.real, b.real)
			mustHold(t, !meet, both.IsImpossible(), "impossible", a.real, b.real)
			for i, labels := range world {
				if want := a.nodes[i] && b.nodes[i]; want != both.Matches(labels) {
					require.Failf(t, "a node is wrong", "want %t for %s in %s intersect %s", want, nodeText(labels), a.real, b.real)
				}
			}
			back, _ := b.real.Intersect(a.real)
			mustHold(t, true, both.Equal(back), "intersection commutes", a.real, b.real)

			var built requirements.Builder
			same, errBuilt := built.AddSet(a.real).AddSet(b.real).Set()
			mustHold(t, true, same.Equal(both), "a builder is an intersection", a.real, b.real)
			mustHold(t, err == nil, errBuilt == nil, "a builder fails alike", a.real, b.real)
		}
	}
}

// Compatible asks whether some value of what the node leaves unknown satisfies the set. The oracle tries all values.
func TestCompatibleTriesEveryUnknownValue(t *testing.T) {
	keys := []string{"x", "y"}
	world := assignments(keys, points())
	all := models(t, world, keys...)
	for _, open := range [][]string{nil, {"x"}, {"y"}, {"x", "y"}} {
		openKeys := requirements.KeysOf(open...)
		for _, node := range all {
			// A key that is neither mentioned nor open is absent on every node that could come of it.
			possible := make([]bool, len(world))
			for w, labels := range world {
				possible[w] = node.nodes[w]
				for _, k := range keys {
					mentioned := slices.ContainsFunc(node.parts, func(r requirements.Requirement) bool { return r.Key() == k && !r.IsAnything() })
					if _, has := labels[k]; has && !mentioned && !slices.Contains(open, k) {
						possible[w] = false
					}
				}
			}
			for _, s := range all {
				want := overlap(s.nodes, possible)
				mustHold(t, want, s.real.Compatible(node.real, openKeys), "compatible", s.real, node.real)
				checkConflicts(t, want, s.real, node.real, openKeys)
				terms := requirements.AnyOf(s.real, node.real)
				for i, conflicts := range terms.Conflicts(node.real, openKeys) {
					mustHold(t, false, terms.Compatible(node.real, openKeys), "explained though compatible", terms.At(i), node.real)
					checkConflicts(t, false, terms.At(i), node.real, openKeys)
					mustHold(t, true, len(conflicts) == len(terms.At(i).Conflicts(node.real, openKeys)), "each term as by itself", terms.At(i), node.real)
				}
			}
		}
	}
}

func checkConflicts(t *testing.T, compatible bool, s, node requirements.Set, open requirements.Keys) {
	t.Helper()
	conflicts := s.Conflicts(node, open)
	if s.IsImpossible() || node.IsImpossible() {
		mustHold(t, true, conflicts == nil, "impossible by itself, nothing to explain", s, node)
		return
	}
	mustHold(t, !compatible, len(conflicts) > 0, "a conflict for each refusal", s, node)
	last := ""
	for _, c := range conflicts {
		mustHold(t, true, c.Key > last, "conflicts in the order of keys", s, node)
		last = c.Key
		mustHold(t, true, s.Get(c.Key).Equal(c.Left), "the asking side is on the left", s, node)
		mustHold(t, false, c.Left.Overlaps(c.Right), "a conflict is one", s, node)
	}
}

func TestRestrictAndWithoutSplitASet(t *testing.T) {
	keys := []string{"x", "y"}
	world := assignments(keys, points())
	for _, m := range models(t, world, keys...) {
		for _, part := range [][]string{nil, {"x"}, {"y"}, {"x", "y"}, {"unknown"}} {
			only, rest := m.real.Restrict(requirements.KeysOf(part...)), m.real.Without(requirements.KeysOf(part...))
			both, err := only.Intersect(rest)
			mustHold(t, m.real.IsImpossible(), err != nil, "only an impossible set has impossible parts", m.real)
			mustHold(t, true, both.Equal(m.real), "the parts make the whole", m.real, only, rest)
			for r := range only.All() {
				require.Contains(t, part, r.Key())
			}
			for r := range rest.All() {
				require.NotContains(t, part, r.Key())
			}
		}
	}
}

// union is alternatives in both forms.
type union struct {
	real  requirements.Alternatives
	nodes []bool
}

func unionOf(sets ...model) union {
	u := union{nodes: make([]bool, len(sets[0].nodes))}
	var reals []requirements.Set
	for _, m := range sets {
		reals = append(reals, m.real)
		for i, ok := range m.nodes {
			u.nodes[i] = u.nodes[i] || ok
		}
	}
	u.real = requirements.AnyOf(reals...)
	return u
}

// A union can cover a set that none of its members covers; Subset must see that, and only that.
func TestAlternativesSubsetIsExact(t *testing.T) {
	keys := []string{"x", "y"}
	world := assignments(keys, points())
	all := models(t, world, keys...)
	// A fixed walk over triples: the steps are prime to the number of sets and to each other.
	n, rounds := len(all), 20_000
	if long() {
		rounds = 400_000
	}
	covered, joint := 0, 0
	for i := range rounds {
		pick := func(k int) model { return all[(i*k+i/n)%n] }
		left := unionOf(pick(1), pick(17))
		right := unionOf(pick(5), pick(7), pick(11), pick(13))
		want := inside(left.nodes, right.nodes)
		if got := left.real.Subset(right.real); want != got {
			require.Failf(t, "a law is broken", "subset: want %t: %s within %s", want, left.real, right.real)
		}
		both := left.real.Intersect(right.real)
		for w, labels := range world {
			if want := left.nodes[w] && right.nodes[w]; want != both.Matches(labels) {
				require.Failf(t, "a node is wrong", "%s intersect %s: want %t for %s", left.real, right.real, want, nodeText(labels))
			}
		}
		require.Equal(t, !overlap(left.nodes, right.nodes), both.IsImpossible(), "%s intersect %s", left.real, right.real)
		if want && !left.real.IsImpossible() {
			covered++
			if !slices.ContainsFunc(slices.Collect(right.real.All()), left.real.At(0).Subset) {
				joint++
			}
		}
	}
	require.Positive(t, joint, "some sets are covered by several only")
	require.Greater(t, rounds, covered, "some are not covered")
}

// The classic of exactness: three pieces, none of which covers the whole.
func TestAlternativesCoverTogether(t *testing.T) {
	whole := requirements.AnyOf(requirements.MustParse("x in (a,b)"))
	pieces := requirements.AnyOf(requirements.MustParse("x=a, y"), requirements.MustParse("x=b, y"), requirements.MustParse("!y"))
	require.True(t, whole.Subset(pieces))
	for i := range pieces.Len() {
		var two []requirements.Set
		for j := range pieces.Len() {
			if i != j {
				two = append(two, pieces.At(j))
			}
		}
		require.False(t, whole.Subset(requirements.AnyOf(two...)), "without %s", pieces.At(i))
	}
}

func TestAlternativesKeepOrderAndDropRepeats(t *testing.T) {
	a, b := requirements.MustParse("x=a"), requirements.MustParse("x=b")
	got := requirements.AnyOf(b, requirements.Impossible(), a, b)
	require.Equal(t, "x in (b) or x in (a)", got.String())
	require.Equal(t, 2, got.Len())
	require.False(t, got.Equal(requirements.AnyOf(a, b)), "the order is the order of trying")
	require.True(t, got.Compatible(a, requirements.Keys{}))
	require.False(t, got.Compatible(requirements.MustParse("x=c"), requirements.Keys{}))
	require.Equal(t, "impossible()", requirements.AnyOf().String())
	distinct := map[string]bool{}
	for _, alts := range []requirements.Alternatives{
		{},
		got, requirements.AnyOf(a), requirements.AnyOf(b), requirements.AnyOf(a, b), requirements.AnyOf(requirements.Set{}),
		requirements.AnyOf(requirements.Set{}, a), requirements.AnyOf(requirements.MustParse("x in (a,b)")), requirements.AnyOf(requirements.MustParse("x=a,y=b")),
	} {
		distinct[string(alts.AppendKey(nil))] = true
		require.Equal(t, alts.AppendKey(nil), alts.Intersect(requirements.AnyOf(requirements.Set{})).AppendKey(nil))
	}
	require.Len(t, distinct, 9)
	require.Equal(t, "anything or x in (a)", requirements.AnyOf(requirements.Set{}, a).String())
	require.True(t, requirements.Alternatives{}.IsImpossible())
	require.False(t, requirements.Alternatives{}.Matches(nil))
	require.Panics(t, func() { got.At(2) })
}

func TestConflictsAreReportedForEveryKey(t *testing.T) {
	_, err := requirements.Of(
		requirements.In("zone", "a"), requirements.In("arch", "arm64"), requirements.Gt("cpu", 4),
		requirements.In("zone", "b"), requirements.Lt("cpu", 3), requirements.NotIn("arch", "amd64"), requirements.In("empty"),
	)
	require.EqualError(t, err, "requirements: cpu: \"cpu>=5\" and \"cpu in (0,1,2)\" have nothing in common\n"+
		"requirements: empty: nothing satisfies \"empty in ()\"\n"+
		"requirements: zone: \"zone in (a)\" and \"zone in (b)\" have nothing in common")
	var conflict *requirements.ConflictError
	require.True(t, errors.As(err, &conflict))
	require.Equal(t, "cpu", conflict.Key)
	require.True(t, conflict.Left.Equal(requirements.Gt("cpu", 4)))

	a, b := requirements.MustParse("x=1, y=1, z=1"), requirements.MustParse("x=2, y=1, z>3")
	both, err := a.Intersect(b)
	require.True(t, both.IsImpossible())
	require.EqualError(t, err, "requirements: x: \"x in (1)\" and \"x in (2)\" have nothing in common\n"+
		"requirements: z: \"z in (1)\" and \"z>=4\" have nothing in common")
	require.Panics(t, func() { requirements.MustOf(requirements.In("x", "1"), requirements.In("x", "2")) })
}

func TestRequirementsOfDifferentKeysDoNotMix(t *testing.T) {
	x, y := requirements.Exists("x"), requirements.Exists("y")
	for name, f := range map[string]func(){
		"Intersect": func() { x.Intersect(y) }, "Union": func() { x.Union(y) },
		"Overlaps": func() { x.Overlaps(y) }, "Subset": func() { x.Subset(y) },
	} {
		require.PanicsWithValue(t, `requirements: keys "x" and "y" differ`, f, name)
	}
	require.False(t, x.Equal(y))
}
