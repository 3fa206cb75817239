package idempotent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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

	types     []instancetypes.InstanceType // of the catalogue
	described int                          // machines for which the journal asked
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

// delete ends a machine by its id; the cloud says what answers is.
func (c *cloud) delete(ctx context.Context, j *idempotent.Journal, id string, answers error) error {
	return j.Delete(ctx, id, func(ctx context.Context, id string) (cloudprovider.Instance, error) {
		list, err := j.Instances(ctx, c.shown()...)
		if i := slices.IndexFunc(list, func(i cloudprovider.Instance) bool { return i.ID == id }); err == nil && i < 0 {
			err = &cloudprovider.Error{Code: cloudprovider.ErrNotFound}
		}
		return cloudprovider.Instance{}, err
	}, func(context.Context) error { return answers })
}

// shown are the machines of the cloud.
func (c *cloud) shown() (out []idempotent.Machine) {
	for _, m := range c.machines {
		out = append(out, idempotent.Machine{ID: m.ID, Token: m.Token, Instance: func(claim cloudprovider.NodeClaim) cloudprovider.Instance {
			c.described++
			return idempotent.Describe(claim, c.types, "box", requirements.MustParse("zone=a"), m.ID, noon())
		}})
	}
	return out
}

var errGone = &cloudprovider.Error{Code: cloudprovider.ErrNotFound}

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
	require.NoError(t, c.delete(t.Context(), j, first.ID, nil))
	_, err = create(j, "one")
	require.ErrorIs(t, err, cloudprovider.ErrNotFound)
	require.ErrorIs(t, c.delete(t.Context(), j, first.ID, errGone), cloudprovider.ErrNotFound)
	_, err = create(j, "one")
	require.ErrorIs(t, err, cloudprovider.ErrNotFound)
	require.ErrorIs(t, c.delete(t.Context(), j, "of-others", errors.New("must not be asked")), cloudprovider.ErrNotFound)
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

// What was launched is found among the machines that the cloud shows. It is written once if the reply was lost, and otherwise only read.
func TestInstances(t *testing.T) {
	store, c := &memory{}, &cloud{types: catalogue()}
	j := &idempotent.Journal{Store: store, Now: noon}
	for _, token := range []string{"one", "two", "three"} {
		c.lose = token == "two"
		_, _ = j.Create(t.Context(), claim(token), c.find, c.launch(claim(token)))
	}
	shown := append(c.shown(), idempotent.Machine{Token: "of others"})
	slices.Reverse(shown)
	updates := store.updates
	for range 3 {
		list, err := j.Instances(t.Context(), shown...)
		require.NoError(t, err)
		require.Len(t, list, 3)
		assert.Equal(t, "m-1", list[1].ID)
		assert.Equal(t, "two", list[1].Token)
		assert.Equal(t, "a", list[1].Labels["zone"])
	}
	assert.Equal(t, updates+1, store.updates)
	require.NoError(t, c.delete(t.Context(), j, "m-1", nil))
	list, err := j.Instances(t.Context(), shown...)
	require.NoError(t, err)
	assert.Equal(t, cloudprovider.Terminating, list[1].State)
	_, err = j.Instances(t.Context(), idempotent.Machine{Token: "one"})
	require.ErrorContains(t, err, "set Machine.ID")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = j.Instances(ctx, shown...)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, c.delete(ctx, j, "m-0", nil), context.Canceled)
}

// Someone has copied a machine together with its tags. Both are shown, and each can be deleted without the other.
func TestTwoMachinesWithOneToken(t *testing.T) {
	for _, lost := range []bool{false, true} {
		now := noon()
		store, c := &memory{}, &cloud{types: catalogue(), lose: lost}
		j := &idempotent.Journal{Store: store, Now: func() time.Time { return now }}
		_, err := j.Create(t.Context(), claim("one"), c.find, c.launch(claim("one")))
		require.Equal(t, lost, err != nil)
		c.machines = append(c.machines, cloudprovider.Instance{ID: "m-copy", Token: "one"})
		ids := func() (out []string) {
			list, err := j.Instances(t.Context(), c.shown()...)
			require.NoError(t, err)
			for _, i := range list {
				out = append(out, fmt.Sprint(i.ID, " ", i.Claim, " ", i.Token, " ", i.State))
			}
			return out
		}
		ids()
		list, err := j.Instances(t.Context(), c.shown()[1])
		require.NoError(t, err)
		assert.Equal(t, "m-copy", list[0].ID)
		assert.Equal(t, "box", list[0].Type)
		assert.Equal(t, "m-0", store.entries["one"].Instance.ID, "nothing is written for the second")
		require.NoError(t, c.delete(t.Context(), j, "m-copy", nil))
		launch, err := j.Create(t.Context(), claim("one"), c.find, c.launch(claim("one")))
		require.NoError(t, err)
		assert.Equal(t, "m-0", launch.ID, "the token is alive")

		// The first goes, and the second is shown for as long as it runs.
		require.ErrorIs(t, c.delete(t.Context(), j, "m-0", errGone), cloudprovider.ErrNotFound)
		c.machines = c.machines[1:]
		for range 10 {
			now = now.Add(25 * time.Hour)
			assert.Equal(t, []string{"m-copy a one Running"}, ids())
			other := claim("other")
			_, err := j.Create(t.Context(), other, c.find, func(context.Context) (cloudprovider.Launch, error) {
				return cloudprovider.Launch{}, &cloudprovider.Error{Code: cloudprovider.ErrQuota}
			})
			require.ErrorIs(t, err, cloudprovider.ErrQuota)
		}
		require.NoError(t, c.delete(t.Context(), j, "m-copy", nil))
	}
}

// A machine is known for as long as the cloud has not said that it is gone: while the cloud refuses to delete it, and if the caller was
// away for days and buys something before it lists.
func TestAMachineThatCannotBeDeletedIsKnown(t *testing.T) {
	now := noon()
	store, c := &memory{}, &cloud{}
	j := &idempotent.Journal{Store: store, Now: func() time.Time { return now }}
	create := func(token string) error {
		_, err := j.Create(t.Context(), claim(token), c.find, c.launch(claim(token)))
		return err
	}
	require.NoError(t, create("one"))
	locked := errors.New("deletion protection")
	for hour := range 100 {
		require.ErrorIs(t, c.delete(t.Context(), j, "m-0", locked), locked)
		now = now.Add(time.Hour)
		require.NoError(t, create(fmt.Sprint("hour-", hour)))
	}
	now = now.Add(100 * time.Hour)
	require.NoError(t, create("late"))
	list, err := j.Instances(t.Context(), c.shown()[0])
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, cloudprovider.Terminating, list[0].State)
	require.ErrorIs(t, create("one"), cloudprovider.ErrNotFound)

	// From when the cloud says that it is gone, the token is remembered for two days.
	require.ErrorIs(t, c.delete(t.Context(), j, "m-0", errGone), cloudprovider.ErrNotFound)
	now = now.Add(47 * time.Hour)
	require.NoError(t, create("later"))
	require.ErrorIs(t, create("one"), cloudprovider.ErrNotFound)
	now = now.Add(2 * time.Hour)
	require.NoError(t, create("latest"))
	require.NotContains(t, store.entries, "one")
}

// If a type has left the catalogue when a lost machine is first described, its resources are recorded once the catalogue has it again.
func TestATypeThatComesBack(t *testing.T) {
	store, c := &memory{}, &cloud{lose: true}
	j := &idempotent.Journal{Store: store, Now: noon}
	_, err := j.Create(t.Context(), claim("one"), c.find, c.launch(claim("one")))
	require.Error(t, err)
	for i, types := range [][]instancetypes.InstanceType{nil, catalogue(), nil} {
		c.types = types
		list, err := j.Instances(t.Context(), c.shown()...)
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, i == 0, list[0].Capacity == nil)
		assert.Equal(t, list[0].Capacity, store.entries["one"].Instance.Capacity)
	}
	described := c.described
	_, err = j.Instances(t.Context(), c.shown()...)
	require.NoError(t, err)
	assert.Equal(t, described, c.described)
}

// The cloud's labels may hold a hash of the token only.
func TestHash(t *testing.T) {
	j := &idempotent.Journal{Store: &memory{}, Now: noon, Hash: func(token string) string { return fmt.Sprintf("%x", token) }}
	c := &cloud{}
	_, err := j.Create(t.Context(), claim("one"), c.find, c.launch(claim("one")))
	require.NoError(t, err)
	for label, want := range map[string]int{"6f6e65": 1, "one": 0} {
		list, err := j.Instances(t.Context(), idempotent.Machine{ID: "m-0", Token: label, Instance: c.shown()[0].Instance})
		require.NoError(t, err)
		require.Len(t, list, want)
	}
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

// The file is read again only if another process has written it since.
func TestFileOfTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.json")
	one, two := idempotent.NewFile(path), idempotent.NewFile(path)
	tokens := func(f *idempotent.File) (out []string) {
		require.NoError(t, f.View(t.Context(), func(entries map[string]idempotent.Entry) error {
			out = slices.Sorted(maps.Keys(entries))
			return nil
		}))
		return out
	}
	var want []string
	for i := range 20 {
		token := fmt.Sprintf("token-%02d", i)
		want = append(want, token)
		f := []*idempotent.File{one, two}[i%2]
		require.NoError(t, f.Update(t.Context(), func(entries map[string]idempotent.Entry) error {
			entries[token] = idempotent.Entry{}
			return nil
		}))
		assert.Equal(t, want, tokens(one))
		assert.Equal(t, want, tokens(two))
	}
	require.NoError(t, os.Remove(path))
	assert.Empty(t, tokens(one))
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
	return []instancetypes.InstanceType{{Name: "box", Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}, Offerings: []instancetypes.Offering{{Requirements: requirements.MustParse("zone=a"), Price: 1}}}}
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
	list, err := j.Instances(context.Background(), idempotent.Machine{ID: "m-0", Token: "one", Instance: func(c cloudprovider.NodeClaim) cloudprovider.Instance {
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
