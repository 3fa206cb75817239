package idempotent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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
	updates int
}

func (m *memory) View(ctx context.Context, read func(map[string]idempotent.Entry) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return read(maps.Clone(m.entries))
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
	m.updates++
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
		return j.Create(t.Context(), claim(token), c.find, c.launch(claim(token)))
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
		entries["four"] = idempotent.Entry{Identity: claim("four").Identity(), Claim: claim("four")}
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
	_, err = j.Create(t.Context(), other, c.find, c.launch(other))
	require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
	_, err = j.Create(t.Context(), cloudprovider.NodeClaim{}, c.find, c.launch(other))
	require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
}

// What was launched is found among the machines that the cloud shows: written down once, where the reply was lost, and otherwise read only.
func TestInstances(t *testing.T) {
	store, c := &memory{}, &cloud{}
	j := &idempotent.Journal{Store: store, Now: noon}
	for _, token := range []string{"one", "two", "three"} {
		c.lose = token == "two"
		_, _ = j.Create(t.Context(), claim(token), c.find, c.launch(claim(token)))
	}
	ours, err := j.Delete(t.Context(), "m-1")
	require.NoError(t, err)
	require.False(t, ours, "nobody has heard of it")
	asked := 0
	shown := []idempotent.Machine{{Token: "of others"}}
	for _, m := range c.machines {
		shown = append(shown, idempotent.Machine{Token: m.Token, Instance: func(claim cloudprovider.NodeClaim) cloudprovider.Instance {
			asked++
			assert.Empty(t, claim.Candidates)
			return idempotent.Describe(claim, nil, "gone", requirements.MustParse("zone=a"), m.ID, noon())
		}})
	}
	updates := store.updates
	for range 3 {
		list, err := j.Instances(t.Context(), shown...)
		require.NoError(t, err)
		require.Len(t, list, 3)
		assert.Equal(t, "m-1", list[1].ID)
		assert.Equal(t, "two", list[1].Token)
		assert.Equal(t, map[string]string{"zone": "a", "node.kubernetes.io/instance-type": "gone"}, list[1].Labels)
		assert.Empty(t, list[1].Capacity)
	}
	assert.Equal(t, updates+1, store.updates)
	assert.LessOrEqual(t, asked, 2)
	ours, err = j.Delete(t.Context(), "m-1")
	require.NoError(t, err)
	require.True(t, ours)
	list, err := j.Instances(t.Context(), shown...)
	require.NoError(t, err)
	assert.Equal(t, cloudprovider.Terminating, list[1].State)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = j.Instances(ctx, shown...)
	require.ErrorIs(t, err, context.Canceled)
}

// An entry does not grow with the candidates of its claim.
func TestEntriesAreSmall(t *testing.T) {
	file := idempotent.NewFile(filepath.Join(t.TempDir(), "journal.json"))
	j, c := &idempotent.Journal{Store: file, Now: noon}, &cloud{}
	large := claim("one")
	for i := range 3000 {
		large.Candidates = append(large.Candidates, cloudprovider.Candidate{Type: fmt.Sprint("box", i), Offering: requirements.MustParse("zone=a")})
	}
	_, err := j.Create(t.Context(), large, c.find, c.launch(large))
	require.NoError(t, err)
	require.NoError(t, file.View(t.Context(), func(entries map[string]idempotent.Entry) error {
		data, err := json.Marshal(entries)
		assert.Less(t, len(data), 1500)
		return err
	}))
	large.Candidates = large.Candidates[1:]
	_, err = j.Create(t.Context(), large, c.find, c.launch(large))
	require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec, "another claim, though the entry has no candidates")
}

// What is no journal is never overwritten, and a function that fails changes nothing.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.json")
	file := idempotent.NewFile(path)
	put := func(entries map[string]idempotent.Entry) error { entries["one"] = idempotent.Entry{}; return nil }
	failing := errors.New("no")
	require.NoError(t, file.Update(t.Context(), put))
	require.ErrorIs(t, file.Update(t.Context(), func(entries map[string]idempotent.Entry) error { clear(entries); return failing }), failing)
	require.NoError(t, file.View(t.Context(), func(entries map[string]idempotent.Entry) error { assert.Len(t, entries, 1); clear(entries); return nil }))
	require.NoError(t, file.View(t.Context(), func(entries map[string]idempotent.Entry) error { assert.Len(t, entries, 1); return nil }))
	for _, text := range []string{"", "{", "[]"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.ErrorContains(t, file.Update(t.Context(), put), path)
		require.ErrorContains(t, file.View(t.Context(), put), path)
	}
	require.NoError(t, os.WriteFile(path, []byte("null"), 0o600))
	require.NoError(t, file.Update(t.Context(), put))
	require.Error(t, idempotent.NewFile(filepath.Join(path, "no folder")).Update(t.Context(), put))
}

// Calls with one token wait for each other.
func TestCallsExcludeEachOther(t *testing.T) {
	j, c := &idempotent.Journal{Store: &memory{}, Lag: time.Minute, Now: noon}, &cloud{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := j.Create(context.WithoutCancel(t.Context()), claim("one"), c.find, c.launch(claim("one")))
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.Len(t, c.machines, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := j.Create(ctx, claim("two"), c.find, c.launch(claim("two")))
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
		launch, err := j.Create(context.Background(), claim("one"), c.find, c.launch(claim("one")))
		fmt.Println(launch.ID, err)
	}
	fmt.Println(len(c.machines), "machine")
	// Output:
	//  connection reset
	// m-0 <nil>
	// 1 machine
}

func ExampleDescribe() {
	i := idempotent.Describe(claim("one"), catalogue(), "box", requirements.MustParse("zone=a"), "m-7", noon())
	fmt.Println(i.ID, i.Type, i.Claim, i.Labels["zone"])
	// Output: m-7 box a a
}

func ExampleMachine() {
	c := &cloud{lose: true}
	j := idempotent.Journal{Store: &memory{}, Now: noon}
	_, err := j.Create(context.Background(), claim("one"), c.find, c.launch(claim("one")))
	fmt.Println(err)
	list, err := j.Instances(context.Background(), idempotent.Machine{Token: "one", Instance: func(c cloudprovider.NodeClaim) cloudprovider.Instance {
		return idempotent.Describe(c, catalogue(), "box", requirements.MustParse("zone=a"), "m-0", noon())
	}})
	fmt.Println(list[0].ID, err)
	// Output:
	// connection reset
	// m-0 <nil>
}

func ExampleFile() {
	folder, err := os.MkdirTemp("", "journal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := idempotent.NewFile(filepath.Join(folder, "journal.json"))
	for range 2 {
		err = file.Update(context.Background(), func(entries map[string]idempotent.Entry) error {
			fmt.Println(len(entries), "tokens")
			entries["first"] = idempotent.Entry{Claim: claim("first")}
			return nil
		})
	}
	fmt.Println(err)
	// Output:
	// 0 tokens
	// 1 tokens
	// <nil>
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
