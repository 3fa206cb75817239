package requirements_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/requirements"
)

// FuzzParse: whatever is read prints, reads back as the same set, and prints the same again; whatever is refused is
// refused by a ParseError that quotes the input. The corpus that grew from these seeds is in testdata/fuzz.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"",                                   // anything
		"impossible()",                       // the other end
		"zone in (a,b), !gpu, cpu>4",         // the usual
		"cpu>=2, cpu<=9, cpu notin (3,5)",    // a row with holes
		"cpu>4 | !cpu",                       // a union that no chain can express
		"!(cpu>=2, cpu<=900)",                // a complement with a broken row of integers
		"!((a=1|a=x), a!=7)",                 // nested parentheses
		`"" = ""`,                            // an empty key, which is refused
		`"a key" in ("", "\x00", "\u00e9")`,  // what only quotes can say
		"a in (007,7,+7,7.0)",                // integers and what only looks like one
		"a<9223372036854775807, a>-1",        // both ends of the integers
		"a>=9223372036854775807",             // the last integer alone
		"a<-9223372036854775808",             // below all
		"a=1, a=2",                           // a contradiction is a value
		"notin notin (notin)",                // operators as words
		"a in (b",                            // not closed
		"a || b",                             // not the grammar
		strings.Repeat("(", 40) + "a",        // too deep
		"a!=b,a!=c,a!=d,b=1|b=2|b>10,b<2000", // several pieces of each kind
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := requirements.Parse(text)
		if err != nil {
			var parse *requirements.ParseError
			require.ErrorAs(t, err, &parse)
			require.True(t, s.IsAnything())
			return
		}
		canonical := s.String()
		back, err := requirements.Parse(canonical)
		require.NoError(t, err, "the text %q of %q", canonical, text)
		require.True(t, back.Equal(s), "%q prints as %q and reads back as %q", text, canonical, back)
		require.Equal(t, canonical, back.String())
		witness := map[string]string{}
		for r := range s.All() {
			require.False(t, r.IsImpossible() || r.IsAnything(), "not canonical: %s", r)
			require.True(t, r.Complement().Complement().Equal(r))
			if v, ok := r.Any(); ok {
				witness[r.Key()] = v
			}
		}
		require.Equal(t, !s.IsImpossible(), s.Matches(witness), "%q accepts the node made of one value of each key", canonical)
	})
}

// FuzzIntersect: two texts as sets, and a node to ask both and their intersection about.
func FuzzIntersect(f *testing.F) {
	f.Add("cpu>4", "cpu<9, zone=a", "cpu", "7", "zone", "a")                   // inside both
	f.Add("cpu>4", "cpu<9", "cpu", "007", "", "")                              // no integer
	f.Add("a!=1", "a!=2", "a", "3", "b", "1")                                  // open on both sides
	f.Add("!a", "a!=1", "b", "1", "", "")                                      // absent is in both
	f.Add("a in (1,2)", "a in (2,3), b", "a", "2", "b", "")                    // an empty value is a value
	f.Add("a=1", "a=2", "a", "1", "", "")                                      // a conflict
	f.Add("impossible()", "", "a", "1", "", "")                                // the ends
	f.Add("a=5|!a", "!(a>=2, a<=900)", "a", "1", "b", "2")                     // unions
	f.Add("a>=9223372036854775807", "a>0", "a", "9223372036854775807", "", "") // the last integer
	f.Fuzz(func(t *testing.T, left, right, key1, value1, key2, value2 string) {
		a, errA := requirements.Parse(left)
		b, errB := requirements.Parse(right)
		if errA != nil || errB != nil {
			return
		}
		both, err := a.Intersect(b)
		other, _ := b.Intersect(a)
		require.True(t, both.Equal(other), "%s and %s do not commute", a, b)
		require.Equal(t, err != nil, both.IsImpossible())
		require.Equal(t, a.Overlaps(b), !both.IsImpossible(), "%s overlaps %s", a, b)
		require.True(t, both.Subset(a) && both.Subset(b), "%s is within %s and %s", both, a, b)
		require.Equal(t, a.Subset(b), both.Equal(a), "%s subset %s", a, b)
		again, _ := both.Intersect(a)
		require.True(t, again.Equal(both), "nothing is left to narrow")
		back, err := requirements.Parse(both.String())
		require.NoError(t, err)
		require.True(t, back.Equal(both))

		node := map[string]string{key1: value1, key2: value2}
		require.Equal(t, a.Matches(node) && b.Matches(node), both.Matches(node), "%s and %s on %v", a, b, node)
		require.Equal(t, a.Matches(node), a.Compatible(requirements.FromLabels(node), requirements.Keys{}), "a running node: %s on %v", a, node)
		one, two := requirements.AnyOf(a, b), requirements.AnyOf(b)
		require.Equal(t, a.Matches(node) || b.Matches(node), one.Matches(node))
		require.True(t, two.Subset(one), "%s within %s", two, one)
		require.Equal(t, a.Subset(b), one.Subset(two), "%s within %s", one, two)
	})
}
