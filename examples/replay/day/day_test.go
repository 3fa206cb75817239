package day_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/replay/day"
)

// A deployment comes, grows, and goes; what its pods ask for is said once.
func ExampleRead() {
	list, err := day.Read("morning.jsonl", strings.NewReader(`{"at": "2026-01-15T08:00:00Z", "app": "web", "replicas": 3, "cpu": "500m", "memory": "1Gi"}
{"at": "2026-01-15T09:00:00Z", "app": "web", "replicas": 0}`))
	fmt.Println(len(list), err)
	fmt.Println(list[1].At.Sub(list[0].At), list[1].Replicas)
	// Output:
	// 2 <nil>
	// 1h0m0s 0
}

// A generated day is the same for the same seed.
func ExampleEvent() {
	e := day.Generate(7, 1)[0]
	fmt.Println(e.App, e.Replicas, e.CPU, e.Memory, e.At.Equal(day.Start()))
	// Output: app-0 4 250m 512Mi true
}

func TestGeneratedDayIsTheSameEveryTime(t *testing.T) {
	assert.Equal(t, day.Generate(7, 5), day.Generate(7, 5))
	assert.NotEqual(t, day.Generate(7, 5), day.Generate(8, 5))
	list := day.Generate(7, 5)
	for i := 1; i < len(list); i++ {
		assert.False(t, list[i].At.Before(list[i-1].At), "in the order of time")
	}
}

func TestBadDays(t *testing.T) {
	_, err := day.Read("day", strings.NewReader(`{"at": "2026-01-15T08:00:00Z", "app": "web", "replicas": 3}
{"at": "2026-01-15T08:00:00Z", "replicas": 3}
{"app": "web", "replicas": -1, "cpu": "much"}
{"ap": "web"}`))
	require.Error(t, err)
	for _, want := range []string{`day:1: cpu, memory: required where app "web" is first named`, "day:2: app: required", "day:3: at: required", "day:3: cpu:", `day:4: json: unknown field "ap"`} {
		assert.ErrorContains(t, err, want)
	}
	_, err = day.Read("day", strings.NewReader(""))
	assert.EqualError(t, err, "day: no events")
	_, err = day.Read("day", strings.NewReader(`{"at": "2026-01-15T08:00:00Z", "app": "a", "replicas": 1, "cpu": "-1", "memory": "1Gi"}`))
	assert.ErrorContains(t, err, "must not be negative")
	_, err = day.Read("day", strings.NewReader(`{"at": "2026-01-15T08:00:00Z", "app": "a", "replicas": 1, "cpu": "1", "memory": "1Gi"}
{"at": "9026-01-15T08:00:00Z", "app": "a", "replicas": 0}`))
	assert.ErrorContains(t, err, "at most 744h0m0s can be replayed")
}

func FuzzRead(f *testing.F) {
	f.Add(`{"at": "2026-01-15T08:00:00Z", "app": "web", "replicas": 3, "cpu": "1", "memory": "1Gi"}`)
	f.Add("# nothing\n\n")
	f.Add(`{"at": "2026-01-15T08:00:00Z", "app": "web", "replicas": 1e9}`)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := day.Read("day", strings.NewReader(text))
		if err != nil {
			return
		}
		assert.NotEmpty(t, list)
		for i, e := range list {
			assert.NotEmpty(t, e.App)
			assert.True(t, i == 0 || !e.At.Before(list[i-1].At))
		}
	})
}
