package idempotent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/idempotent"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// memory is a store that outlives journals.
type memory struct {
	mu      sync.Mutex
	entries map[string]idempotent.Entry
}

func (m *memory) Update(ctx context.Context, change func(map[string]idempotent.Entry) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	next := maps.Clone(m.entries)
	if next == nil {
		next = map[string]idempotent.Entry{}
	}
	if err := change(next); err != nil {
		return err
	}
	m.entries = next
	return nil
}

func noon() time.Time { return time.Unix(43_200, 0) }

// cloud has no tokens: every launch makes a machine.
type cloud struct {
	mu       sync.Mutex
	machines []cloudprovider.Instance
	hidden   int   // the last so many do not show yet
	fail     error // of the next launch
	lose     bool  // the answer to the next launch
}

func (c *cloud) launch(claim cloudprovider.NodeClaim) func(context.Context) (cloudprovider.Launch, error) {
	return func(context.Context) (cloudprovider.Launch, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := c.fail; err != nil {
			c.fail = nil
			return cloudprovider.Launch{}, err
		}
		i := cloudprovider.Instance{ID: fmt.Sprintf("m-%d", len(c.machines)), Claim: claim.Name, Token: claim.Token}
		c.machines = append(c.machines, i)
		if c.lose {
			c.lose = false
			return cloudprovider.Launch{}, errors.New("connection reset")
		}
		return cloudprovider.Launch{Instance: i}, nil
	}
}

func (c *cloud) find(_ context.Context, token string) (cloudprovider.Instance, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.machines[:len(c.machines)-c.hidden] {
		if i.Token == token {
			return i, true, nil
		}
	}
	return cloudprovider.Instance{}, false, nil
}

func claim(token string) cloudprovider.NodeClaim {
	return cloudprovider.NodeClaim{Name: "a", Token: token, Candidates: []cloudprovider.Candidate{{Type: "box", Offering: requirements.MustParse("zone=a")}}}
}

// A token leads to one machine, whatever is lost and wherever it is stopped.
func TestOneTokenOneMachine(t *testing.T) {
	now := time.Unix(1000, 0)
	store, c := &memory{}, &cloud{}
	journal := func() *idempotent.Journal {
		return &idempotent.Journal{Store: store, Lag: time.Minute, Now: func() time.Time { return now }}
	}
	create := func(j *idempotent.Journal, token string) (cloudprovider.Launch, error) {
		return j.Create(t.Context(), claim(token), c.launch(claim(token)), c.find)
	}
	j := journal()
	first, err := create(j, "one")
	require.NoError(t, err)
	again, err := create(journal(), "one")
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID, "after a restart, too")

	// The answer is lost, and the machine does not show at once.
	c.lose = true
	_, err = create(j, "two")
	require.Error(t, err)
	c.hidden = 1
	_, err = create(j, "two")
	require.ErrorIs(t, err, cloudprovider.ErrNotReady)
	var detail *cloudprovider.Error
	require.ErrorAs(t, err, &detail)
	require.Equal(t, time.Minute, detail.RetryAfter)
	c.hidden = 0
	second, err := create(j, "two")
	require.NoError(t, err)
	require.Len(t, c.machines, 2)
	require.Equal(t, "m-1", second.ID)

	// Nothing was launched, and that is certain once the lag has passed.
	c.fail = errors.New("connection refused")
	_, err = create(j, "three")
	require.Error(t, err)
	now = now.Add(time.Minute)
	_, err = create(j, "three")
	require.NoError(t, err)
	require.Len(t, c.machines, 3)

	// A process was stopped in mid-call: the lag counts from when the next one learns of it.
	require.NoError(t, store.Update(t.Context(), func(entries map[string]idempotent.Entry) error {
		entries["four"] = idempotent.Entry{Claim: claim("four")}
		return nil
	}))
	now = now.Add(time.Hour)
	late := journal()
	_, err = create(late, "four")
	require.ErrorIs(t, err, cloudprovider.ErrNotReady)
	now = now.Add(time.Minute)
	_, err = create(late, "four")
	require.NoError(t, err)

	// What fails for certain uses up no token.
	c.fail = &cloudprovider.Error{Code: cloudprovider.ErrInsufficientCapacity}
	_, err = create(j, "five")
	require.ErrorIs(t, err, cloudprovider.ErrInsufficientCapacity)
	_, err = create(j, "five")
	require.NoError(t, err)

	// A tombstone stays for days, and only as long.
	ours, err := j.Delete(t.Context(), first.ID)
	require.NoError(t, err)
	require.True(t, ours)
	_, err = create(j, "one")
	require.ErrorIs(t, err, cloudprovider.ErrNotFound)
	ours, err = j.Delete(t.Context(), "of-others")
	require.NoError(t, err)
	require.False(t, ours)
	now = now.Add(49 * time.Hour)
	_, err = create(j, "six")
	require.NoError(t, err)
	require.NotContains(t, store.entries, "one")

	other := claim("two")
	other.Name = "b"
	_, err = j.Create(t.Context(), other, c.launch(other), c.find)
	require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
	_, err = j.Create(t.Context(), cloudprovider.NodeClaim{}, c.launch(other), c.find)
	require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
}

// Calls with one token wait for each other.
func TestCallsExcludeEachOther(t *testing.T) {
	j, c := &idempotent.Journal{Store: &memory{}, Lag: time.Minute, Now: noon}, &cloud{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := j.Create(context.WithoutCancel(t.Context()), claim("one"), c.launch(claim("one")), c.find)
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.Len(t, c.machines, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := j.Create(ctx, claim("two"), c.launch(claim("two")), c.find)
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, c.machines, 1)
}

func catalogue() []instancetypes.InstanceType {
	return []instancetypes.InstanceType{{Name: "box", Offerings: []instancetypes.Offering{{Requirements: requirements.MustParse("zone=a"), Price: 1}}}}
}

func TestResolve(t *testing.T) {
	for want, edit := range map[string]func(*cloudprovider.NodeClaim){
		"token: required": func(c *cloudprovider.NodeClaim) { c.Token = "" },
		"candidates[0]: crate (zone in (a)) is not in the catalogue": func(c *cloudprovider.NodeClaim) { c.Candidates[0].Type = "crate" },
		"candidates[0]: box (zone in (b)) is not in the catalogue":   func(c *cloudprovider.NodeClaim) { c.Candidates[0].Offering = requirements.MustParse("zone=b") },
		"zone": func(c *cloudprovider.NodeClaim) { c.Requirements = requirements.MustParse("zone=b") },
	} {
		c := claim("one")
		edit(&c)
		_, err := idempotent.Resolve(c, catalogue())
		require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
		require.ErrorContains(t, err, want)
	}
}

func ExampleChoice() {
	choices, err := idempotent.Resolve(claim("one"), catalogue())
	first := choices[0]
	fmt.Println(first.Type.Name, first.Offering.Price, first.Labels["zone"], err)
	// Output: box 1 a <nil>
}

// A lost answer is no second machine.
func ExampleJournal() {
	c := &cloud{lose: true}
	j := idempotent.Journal{Store: &memory{}, Lag: time.Minute, Now: noon}
	for range 2 {
		launch, err := j.Create(context.Background(), claim("one"), c.launch(claim("one")), c.find)
		fmt.Println(launch.ID, err)
	}
	fmt.Println(len(c.machines), "machine")
	// Output:
	//  connection reset
	// m-0 <nil>
	// 1 machine
}

func ExampleStore() {
	var store idempotent.Store = &memory{}
	err := store.Update(context.Background(), func(entries map[string]idempotent.Entry) error {
		entries["one"] = idempotent.Entry{Claim: claim("one")}
		return nil
	})
	fmt.Println(err)
	// Output: <nil>
}
