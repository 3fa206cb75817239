package quota_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/scheduling/topology/quota"
)

func ExampleDivide() {
	spots := []quota.Spot{
		{Values: []string{"zone-a", "spot"}, Most: 9},
		{Values: []string{"zone-a", "on-demand"}, Most: 9},
		{Values: []string{"zone-b", "on-demand"}, Most: 9}, // no spot in zone b
	}
	fmt.Println(quota.Divide(6, spots, []map[string]int{nil, nil}))
	// Output: [3 0 3]
}

func TestDivideKeepsToWhatSpotsTake(t *testing.T) {
	spots := []quota.Spot{{Values: []string{"a"}, Most: 1}, {Values: []string{"b"}, Most: 2}, {Values: []string{"c"}, Most: -1}}
	assert.Equal(t, []int{1, 2, 0}, quota.Divide(9, spots, []map[string]int{nil}))
	counts := map[string]int{"a": 1, "b": 0}
	assert.Equal(t, []int{0, 1, 0}, quota.Divide(1, spots, []map[string]int{counts}), "what is there counts")
	assert.Equal(t, map[string]int{"a": 1, "b": 0}, counts, "and is only read")
	assert.Empty(t, quota.Divide(3, nil, []map[string]int{nil}))
}
