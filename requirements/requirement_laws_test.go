package requirements_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/requirements"
)

// lawful is what the single-set laws run over: everything that the universe can tell apart, cut in the short suite.
func lawful(t *testing.T) []pair {
	t.Helper()
	if long() {
		return compounds(t, 1500)
	}
	return compounds(t, 180)
}

func TestOperatorsMeanWhatTheySay(t *testing.T) {
	for _, p := range basics(t) {
		agree(t, p, "%s", p.real)
		require.Equal(t, key, p.real.Key())
	}
}

func TestComplementAndPredicatesOfOne(t *testing.T) {
	for _, p := range compounds(t, 100_000) {
		agree(t, p, "%s", p.real)
		agree(t, pair{p.real.Complement(), p.dumb.not()}, "complement of %s", p.real)
		require.True(t, p.real.Complement().Complement().Equal(p.real), "complement twice: %s", p.real)
		require.Equal(t, !p.dumb.any(), p.real.IsImpossible(), "IsImpossible: %s", p.real)
		require.Equal(t, !p.dumb.not().any(), p.real.IsAnything(), "IsAnything: %s", p.real)

		values := members(p.dumb)
		finite := !p.dumb[otherWord] && !p.dumb[otherInt]
		got, ok := p.real.Values()
		require.Equal(t, finite, ok, "Values: %s", p.real)
		if finite {
			require.Equal(t, values, append([]string{}, got...), "Values: %s", p.real)
		} else {
			require.Nil(t, got, "Values: %s", p.real)
		}
		single, ok := p.real.Single()
		require.Equal(t, finite && len(values) == 1 && !p.dumb[noLabel], ok, "Single: %s", p.real)
		if ok {
			require.Equal(t, values[0], single, "Single: %s", p.real)
		}
		witness, ok := p.real.Any()
		require.Equal(t, len(values) > 0, ok, "Any: %s", p.real)
		if ok {
			require.True(t, p.real.Contains(witness), "Any: %q of %s", witness, p.real)
		}
	}
}

// members lists the values that the label may have.
func members(of truth) []string {
	out := []string{}
	for _, p := range universe() {
		if p != noLabel && of[p] {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

func TestEveryPairOfRequirements(t *testing.T) {
	sets := lawful(t)
	texts := make([]string, len(sets))
	for i, p := range sets {
		texts[i] = p.real.String()
	}
	for i, a := range sets {
		for j, b := range sets {
			both, either := a.real.Intersect(b.real), a.real.Union(b.real)
			agree(t, pair{both, a.dumb.and(b.dumb)}, "%s intersect %s", a.real, b.real)
			agree(t, pair{either, a.dumb.or(b.dumb)}, "%s union %s", a.real, b.real)
			law(t, a.dumb.and(b.dumb).any(), a.real.Overlaps(b.real), "overlaps", a, b)
			law(t, a.dumb.within(b.dumb), a.real.Subset(b.real), "subset", a, b)
			law(t, i == j, a.real.Equal(b.real), "equal", a, b) // lawful holds no set twice
			law(t, i == j, texts[i] == texts[j], "equal texts", a, b)
			law(t, true, both.Equal(b.real.Intersect(a.real)), "intersection commutes", a, b)
			law(t, true, either.Equal(b.real.Union(a.real)), "union commutes", a, b)
			law(t, true, both.Complement().Equal(a.real.Complement().Union(b.real.Complement())), "De Morgan", a, b)
			law(t, true, a.real.Intersect(either).Equal(a.real), "absorption", a, b)
			law(t, a.real.Subset(b.real), both.Equal(a.real), "a subset is its own intersection", a, b)
		}
	}
}

func law(t *testing.T, want, got bool, name string, sets ...pair) {
	t.Helper()
	if want != got {
		var texts []string
		for _, p := range sets {
			texts = append(texts, p.real.String())
		}
		require.Failf(t, "a law is broken", "%s: want %t: %s", name, want, strings.Join(texts, "   and   "))
	}
}

func TestEveryTripleOfRequirements(t *testing.T) {
	sets := basics(t)
	if !long() { // every third one still has all operators
		var few []pair
		for i := 0; i < len(sets); i += 3 {
			few = append(few, sets[i])
		}
		sets = few
	}
	for _, a := range sets {
		for _, b := range sets {
			ab, aOrB := a.real.Intersect(b.real), a.real.Union(b.real)
			for _, c := range sets {
				bc, bOrC := b.real.Intersect(c.real), b.real.Union(c.real)
				law(t, true, ab.Intersect(c.real).Equal(a.real.Intersect(bc)), "intersection is associative", a, b, c)
				law(t, true, aOrB.Union(c.real).Equal(a.real.Union(bOrC)), "union is associative", a, b, c)
				law(t, true, a.real.Intersect(bOrC).Equal(ab.Union(a.real.Intersect(c.real))), "intersection distributes", a, b, c)
				law(t, true, a.real.Union(bc).Equal(aOrB.Intersect(a.real.Union(c.real))), "union distributes", a, b, c)
			}
		}
	}
}

// One set has one text, however it came about, and the text says it all.
func TestCanonicalTextReadsBack(t *testing.T) {
	for _, p := range compounds(t, 100_000) {
		text := p.real.String()
		s, err := requirements.Parse(text)
		require.NoError(t, err, text)
		back := s.Get(key)
		require.True(t, back.Equal(p.real), "%s reads back as %s", text, back)
		agree(t, pair{back, p.dumb}, "text %s", text)
	}
}

// The longer runs of integers are written with bounds; both ends and holes must survive.
func TestLongRunsOfIntegers(t *testing.T) {
	run := func(lo, hi int64) requirements.Requirement {
		return requirements.Gte(key, lo).Intersect(requirements.Lte(key, hi))
	}
	var odd []string
	for n := range 70 {
		odd = append(odd, []string{"1", "3", "5", "7", "9"}[n%5]+strings.Repeat("0", n/5))
	}
	for _, r := range []requirements.Requirement{
		run(0, 63), run(0, 64), run(5, 68), run(5, 69), run(5, 1000),
		run(5, 1000).Intersect(requirements.NotIn(key, "6", "8", "999")),
		run(5, 1000).Complement(), run(5, 1000).Union(run(2000, 3000)), run(5, 1000).Union(requirements.DoesNotExist(key)),
		run(5, 1000).Union(requirements.In(key, "a", "2000", "1")),
		requirements.Gt(key, 9223372036854775806), requirements.Lt(key, 9223372036854775807),
		requirements.In(key, odd...), requirements.NotIn(key, odd...), requirements.In(key, append(odd, "word")...),
		requirements.Exists(key).Intersect(run(5, 1000).Complement()),
	} {
		s, err := requirements.Parse(r.String())
		require.NoError(t, err, r)
		require.True(t, s.Get(key).Equal(r), "%s reads back as %s", r, s.Get(key))
	}
	_, ok := run(0, 63).Values()
	require.True(t, ok, "64 integers are listed")
	_, ok = run(0, 64).Values()
	require.False(t, ok, "65 are not")
}
