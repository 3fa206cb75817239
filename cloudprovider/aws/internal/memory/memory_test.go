package memory_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/memory"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type question string

func (q question) ID() string { return string(q) }

func instance(token, bare string, at time.Time) cloudprovider.Instance {
	return cloudprovider.Instance{ID: memory.ProviderID("us-east-1a", bare), Claim: token, Token: token, Created: at}
}

// Each token goes one way only: asked for, perhaps in doubt, alive, dead, and forgotten a day later.
func TestWayOfAToken(t *testing.T) {
	m := memory.New[question]()
	e, fresh := m.Begin("t", "web", "shape")
	require.True(t, fresh)
	assert.Equal(t, memory.Asking, e.State)
	e, fresh = m.Begin("t", "other", "other")
	require.False(t, fresh)
	assert.Equal(t, "web", e.Name, "what was there stays")
	asking := e.Asked
	require.NotNil(t, asking)

	m.Lost("t", question("q"))
	select {
	case <-asking:
	default:
		t.Fatal("those who wait must hear of it")
	}
	e, ok := m.Token("t", start)
	require.True(t, ok)
	require.Equal(t, memory.Open, e.State)
	require.Equal(t, question("q"), e.Question)
	require.True(t, m.IsOpen("q"))

	i := instance("t", "i-1", start)
	m.Launched("t", i, start)
	m.Close(question("q"))
	require.False(t, m.IsOpen("q"))
	e, ok = m.Of("i-1")
	require.True(t, ok)
	assert.Equal(t, memory.Live, e.State)
	e, ok = m.Token("t", start)
	require.True(t, ok)
	assert.Equal(t, i, e.Instance)
	assert.Equal(t, []memory.Entry[question]{e}, m.Living())

	m.MarkTerminated("i-1", "it was deleted", start)
	e, _ = m.Begin("t", "web", "shape")
	assert.Equal(t, memory.Ended, e.State)
	assert.Equal(t, "it was deleted", e.Why)
	assert.Empty(t, m.Living())
	m.MarkTerminated("i-none", "", start.Add(24*time.Hour-time.Second))
	_, ok = m.Of("i-1")
	assert.True(t, ok)
	m.MarkTerminated("i-none", "", start.Add(24*time.Hour))
	_, ok = m.Of("i-1")
	assert.False(t, ok)
	_, fresh = m.Begin("t", "web", "shape")
	assert.True(t, fresh)
	m.Unused("t")
	_, fresh = m.Begin("t", "new", "new")
	assert.True(t, fresh, "what led to nothing is as if it had never been asked for")
}

// What callers get is theirs to change.
func TestCopies(t *testing.T) {
	m := memory.New[question]()
	i := instance("t", "i-1", start)
	i.Labels = map[string]string{"a": "1"}
	m.Learn(i, "s", start)
	i.Labels["a"] = "2"
	e, _ := m.Of("i-1")
	e.Instance.Labels["a"] = "3"
	e, _ = m.Token("t", start)
	e.Instance.Labels["a"] = "4"
	e, _ = m.Token("t", start)
	assert.Equal(t, "1", e.Instance.Labels["a"])
	m.Learn(instance("t", "i-2", start), "s", start)
	e, _ = m.Token("t", start)
	assert.Equal(t, "aws:///us-east-1a/i-1", e.Instance.ID, "the first stays")
}

func TestQuestionsAreSorted(t *testing.T) {
	m := memory.New[question]()
	var group sync.WaitGroup
	for n := range 20 {
		group.Go(func() {
			token := fmt.Sprint("t", n)
			m.Begin(token, token, "s")
			m.Lost(token, question(fmt.Sprintf("q%02d", n)))
		})
	}
	group.Wait()
	for n, q := range m.Opens() {
		assert.Equal(t, fmt.Sprintf("q%02d", n), q.ID())
	}
}

func TestIDs(t *testing.T) {
	for id, want := range map[string]string{
		"aws:///us-east-1a/i-0123": "i-0123", "i-0123": "i-0123", "": "", "aws:///us-east-1a/": "", "gce://x/i-1": "", "us-east-1a/i-1": "", "i-": "i-",
	} {
		assert.Equal(t, want, memory.Bare(id), id)
	}
	for id, want := range map[string]string{"aws:///us-east-1a/i-0123": "us-east-1a", "i-0123": "", "": "", "aws:///us-east-1a": "", "gce:///a/b": ""} {
		assert.Equal(t, want, memory.Zone(id), id)
	}
}

func ExampleMemory() {
	m := memory.New[question]()
	_, fresh := m.Begin("token-1", "web-1", "shape")
	fmt.Println("ask for it:", fresh)
	i := cloudprovider.Instance{ID: memory.ProviderID("us-east-1a", "i-0123")}
	m.Launched("token-1", i, start)
	_, fresh = m.Begin("token-1", "web-1", "shape")
	e, _ := m.Token("token-1", start)
	fmt.Println("ask for it:", fresh, e.Instance.ID)
	// Output:
	// ask for it: true
	// ask for it: false aws:///us-east-1a/i-0123
}
