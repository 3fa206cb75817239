package replay_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gap is where a reason names nothing: a clause that ends in a word which wants an object, or an empty one.
var gap = regexp.MustCompile(`^$|\b(by|of|in|and|or|over|nearest)\s*([;,]|$)|  |, ,|; ;|: *$|%!`)

// What is said of each refused pod is whole: every pool has a reason, and each reason says what it is about.
func TestReasonsAreWhole(t *testing.T) {
	reasons := 0
	for i := range min(*scenarios, 200) {
		s := drawn(*from + uint64(i))
		packed, err := planned(t.Context(), s)
		require.NoError(t, err, s.String())
		for _, u := range packed.Unplaced() {
			for _, r := range u.Reasons() {
				reasons++
				assert.NotRegexp(t, gap, r.Detail, "%s: %s: %s", s, packed.Problem.Classes[u.Class].Name(), r)
			}
		}
	}
	t.Logf("%d reasons", reasons)
	require.Positive(t, reasons)
}
