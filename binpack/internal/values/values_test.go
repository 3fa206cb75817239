package values_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/binpack/internal/values"
)

func TestChoose(t *testing.T) {
	minimums := []values.Minimum{{Count: 3, From: 0, To: 1}, {Count: 2, From: 1, To: 2}}
	shows := [][]uint64{{1, 1}, {2, 1}, {4, 2}, {8, 2}, {6, 1}}
	of := func(i int) []uint64 { return shows[i] }
	all := func(int) bool { return true }
	none := func(int) bool { return false }

	got, ok := values.Choose(minimums, shows[0], 4, len(shows), of, none, all)
	assert.True(t, ok)
	assert.Equal(t, []int{1, 2}, got, "the first that show something new, without needless ones")
	got, _ = values.Choose(minimums, shows[0], 4, len(shows), of, func(i int) bool { return i == 3 }, all)
	assert.Equal(t, []int{3, 1}, got, "what is cheap comes first")
	got, _ = values.Choose(minimums, shows[0], 4, len(shows), of, none, func(i int) bool { return i != 1 })
	assert.Equal(t, []int{2, 3}, got)
	_, ok = values.Choose(minimums, shows[0], 4, len(shows), of, none, func(i int) bool { return i == 1 })
	assert.False(t, ok)
	got, ok = values.Choose(nil, nil, 0, len(shows), of, none, all)
	assert.True(t, ok)
	assert.Empty(t, got)
}
