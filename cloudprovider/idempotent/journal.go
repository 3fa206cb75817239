package idempotent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// Entry is what a journal knows about a token.
type Entry struct {
	// Identity is the identity of the claim for which the token was first used.
	Identity string `json:"identity"`
	// Claim is that claim without its candidates, which may be thousands.
	Claim cloudprovider.NodeClaim `json:"claim"`
	// Instance is the instance that the token has led to. It is the zero value while that is not
	// known. Create writes it. A provider also writes it when it finds the machine by its label
	// while reading.
	Instance cloudprovider.Instance `json:"instance"`
	// Ended is when the last call that may have launched something ended without an answer. It is
	// zero while a call is in progress. If Deleted is set, Ended is when the cloud said that the
	// machine is gone, and zero until then.
	Ended time.Time `json:"ended"`
	// Deleted is the tombstone: Delete was called, so the token no longer leads to an instance.
	Deleted bool `json:"deleted,omitempty"`
}

// Store keeps a journal across restarts: in a file of one process, in a ConfigMap that is updated
// by its resource version, or in a row of a database. A failed write need not return an error of
// the closed list: its outcome is then unknown, and the call is repeated. A Store must be safe for
// concurrent use. An entry takes about 1,500 bytes as JSON, mostly for the labels of its instance.
type Store interface {
	// View calls read with all entries, whose keys are the tokens, and returns the error of read.
	// It sees all updates that ended before. read must not keep the map, and must not change what
	// its entries refer to.
	View(ctx context.Context, read func(entries map[string]Entry) error) error
	// Update calls change with all entries, whose keys are the tokens. If change returns nil,
	// Update writes all changes or none; otherwise it returns the error of change. Updates exclude
	// each other, including those of other processes. change may use the map only during the call.
	// change may replace entries, but must not change what they refer to.
	Update(ctx context.Context, change func(entries map[string]Entry) error) error
}

// Journal makes launches idempotent. It records the claim of a token before the cloud is asked, and
// the result afterwards. If an answer was lost, it first asks the cloud what exists. It does not
// launch again until everything launched before must be visible.
//
// Store and Now are required: without them, the methods panic. A Journal must not be copied after
// its first use. It is safe for concurrent use, and calls with the same token exclude each other.
//
// Each Create and each Delete makes two updates, and an update writes the whole journal. With 500
// machines in a [File] a Create takes about 30 ms, mostly for the disk, and a read about 1 ms.
type Journal struct {
	Store Store
	// Lag is how long the cloud may take until the function find of [Journal.Create] sees a new
	// machine; 0 means that find sees it at once.
	Lag time.Duration
	// Hash turns a token into a text that fits into the cloud's label. It is needed if a label must
	// be shorter than a token, or allows other characters. nil means that the cloud has the token
	// itself. Different tokens must have different hashes: do not shorten a token or change its
	// case.
	Hash func(token string) string
	// Now returns the current time, for example time.Now.
	Now func() time.Time

	mu   sync.Mutex
	busy map[string]chan struct{} // by token, closed when its call ends
	seen map[string]time.Time     // calls without an end, and since when this process has known of them
}

// remembered is how long a token is known after the cloud has said that its machine is gone: twice
// the time that providers promise.
const remembered = 48 * time.Hour

// Create keeps the obligations of [cloudprovider.Creator] that concern tokens. It first checks the
// context and the claim.
//
// A provider of a cloud without client tokens supplies two functions. find gets the token, not its
// Hash, and looks for the machine that carries the token or its Hash. launch makes a machine and
// labels it with the token in the same call. Both return an error of the closed list if they are
// certain that nothing was launched, and any other error if not.
//
// After an error that is not certain, Create fails with ErrNotReady until Lag has passed since that
// call ended. If another process left the call open, Lag counts from when this process learnt of
// it.
func (j *Journal) Create(ctx context.Context, claim cloudprovider.NodeClaim,
	find func(ctx context.Context, token string) (cloudprovider.Instance, bool, error), launch func(context.Context) (cloudprovider.Launch, error),
) (cloudprovider.Launch, error) {
	none := cloudprovider.Launch{}
	fail := func(code error, format string, args ...any) error {
		return &cloudprovider.Error{Code: code, Op: "create", Subject: claim.Name, Err: fmt.Errorf(format, args...)}
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := claim.Validate(); err != nil {
		return none, fail(cloudprovider.ErrInvalidSpec, "%w", err)
	}
	unlock, err := j.lock(ctx, claim.Token)
	if err != nil {
		return none, err
	}
	defer unlock()
	identity := claim.Identity()
	var e Entry
	known := false
	err = j.Store.Update(ctx, func(entries map[string]Entry) error {
		maps.DeleteFunc(entries, func(_ string, e Entry) bool {
			return e.Deleted && !e.Ended.IsZero() && j.Now().Sub(e.Ended) > remembered
		})
		switch e, known = entries[claim.Token]; {
		case known && e.Identity != identity:
			return fail(cloudprovider.ErrInvalidSpec, "token %q belongs to another claim", claim.Token)
		case e.Deleted:
			return fail(cloudprovider.ErrNotFound, "%q was deleted", e.Instance.ID)
		case !known:
			e = Entry{Identity: identity, Claim: claim.Clone()}
			e.Claim.Candidates = nil
			entries[claim.Token] = e
		}
		return nil
	})
	switch {
	case err != nil:
		return none, err
	case e.Instance.ID != "":
		return cloudprovider.Launch{Instance: e.Instance.Clone()}, nil
	case known:
		there, ok, err := find(ctx, claim.Token)
		if err != nil {
			return none, err
		}
		if ok {
			return j.learn(ctx, claim.Token, cloudprovider.Launch{Instance: there}, nil)
		}
		if left := j.ended(claim.Token, e).Add(j.Lag).Sub(j.Now()); left > 0 {
			return none, &cloudprovider.Error{
				Code: cloudprovider.ErrNotReady, Op: "create", Subject: claim.Name, RetryAfter: left,
				Err: fmt.Errorf("the answer to token %q was lost, and what it launched may not show yet", claim.Token),
			}
		}
	}
	made, err := launch(ctx)
	return j.learn(ctx, claim.Token, made, err)
}

// learn records the result of a call, even if the context has ended.
func (j *Journal) learn(ctx context.Context, token string, made cloudprovider.Launch, failed error) (cloudprovider.Launch, error) {
	err := j.Store.Update(context.WithoutCancel(ctx), func(entries map[string]Entry) error {
		e := entries[token]
		switch {
		case failed == nil:
			e.Instance = made.Clone()
		case !cloudprovider.Advise(failed).Unknown:
			delete(entries, token) // nothing was made, so the token is unused again
			return nil
		default:
			e.Ended = j.Now()
		}
		entries[token] = e
		return nil
	})
	j.mu.Lock()
	delete(j.seen, token)
	j.mu.Unlock()
	switch {
	case failed != nil:
		return cloudprovider.Launch{}, failed
	case err != nil: // the machine exists, and a later call finds it
		return cloudprovider.Launch{}, err
	}
	return made, nil
}

// ended returns when a call without an answer ended. If no end was recorded, because the process
// was stopped, it is when this process first saw the call.
func (j *Journal) ended(token string, e Entry) time.Time {
	if !e.Ended.IsZero() {
		return e.Ended
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.seen[token]; !ok {
		if j.seen == nil {
			j.seen = map[string]time.Time{}
		}
		j.seen[token] = j.Now()
	}
	return j.seen[token]
}

// Machine is a machine of the cloud that carries a token.
type Machine struct {
	// ID is the id of the machine's instance, and is required. If the token has already led to a
	// machine with another id, this machine is a duplicate, for example a copy that was made
	// together with its tags.
	ID string
	// Token is what the machine's label has: the token, or the [Journal].Hash of it.
	Token string
	// Instance describes the machine for a claim without candidates, see [Describe]. It is called
	// if the reply to the launch was lost, or if the machine is a duplicate. Read the catalogue
	// before you call Instances, and fail if you cannot, because what Instance returns is kept. If
	// the cloud limits calls, a catalogue of some minutes ago will do. Instance must not fail
	// because the type has left the catalogue since.
	Instance func(claim cloudprovider.NodeClaim) cloudprovider.Instance
}

// Instances returns the instances of the machines whose token is in the journal, in the order of
// their ids, for Get and List. If the reply to a launch was lost, Instances records the instance,
// and records it again once the catalogue knows its type. It also keeps the tombstone of a machine
// that still shows a day after its end. It writes nothing else.
//
// The state of an instance is the one that it was recorded with, and Terminating once Delete was
// called. If the cloud says more about the state, replace it: a provider whose Create returns
// Pending must report Running itself, because the journal does not learn of it.
func (j *Journal) Instances(ctx context.Context, machines ...Machine) ([]cloudprovider.Instance, error) {
	machines = slices.SortedFunc(slices.Values(machines), func(a, b Machine) int { return strings.Compare(a.ID, b.ID) })
	var out []cloudprovider.Instance
	changed := false
	err := j.Store.View(ctx, func(entries map[string]Entry) (err error) {
		out, changed, err = j.known(maps.Clone(entries), machines)
		return err
	})
	if err == nil && changed {
		err = j.Store.Update(ctx, func(entries map[string]Entry) (err error) {
			out, _, err = j.known(entries, machines)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// known returns the instances of the machines that have an entry, in the order of the machines. It
// completes entries that lack their instance, and keeps tombstones of machines that still show;
// changed says whether there were any.
func (j *Journal) known(entries map[string]Entry, machines []Machine) (out []cloudprovider.Instance, changed bool, err error) {
	tokens := j.tokens(entries)
	for _, m := range machines {
		token, ours := tokens[m.Token]
		if !ours {
			continue
		}
		if m.ID == "" {
			return nil, false, fmt.Errorf("idempotent: the machine of token %q has no id: set Machine.ID", token)
		}
		e := entries[token]
		instance := e.Instance
		second := e.Instance.ID != "" && e.Instance.ID != m.ID
		if second || e.Instance.Capacity == nil { // nothing is recorded of it, or not what its type has
			instance = m.Instance(e.Claim.Clone()).Clone()
		}
		if !second && e.Instance.Capacity == nil {
			changed = changed || e.Instance.ID == "" || instance.Capacity != nil
			e.Instance = instance
		}
		if e.Deleted && !e.Ended.IsZero() && j.Now().Sub(e.Ended) > remembered/2 { // said to be gone, and it still shows
			e.Ended, changed = j.Now(), true
		}
		entries[token] = e
		instance = instance.Clone()
		if e.Deleted && !second { // the cloud's list does not know that yet
			instance.State = cloudprovider.Terminating
		}
		out = append(out, instance)
	}
	return out, changed, nil
}

// tokens returns the tokens of the entries by what the cloud calls them.
func (j *Journal) tokens(entries map[string]Entry) map[string]string {
	out := make(map[string]string, len(entries))
	for token := range entries {
		label := token
		if j.Hash != nil {
			label = j.Hash(token)
		}
		out[label] = token
	}
	return out
}

// Delete ends the machine of an instance and its token, as [cloudprovider.Deleter] says. get is the
// provider's own Get, which calls Instances. end asks the cloud to delete the machine and returns
// ErrNotFound if the machine is gone.
//
// Delete writes the tombstone before it calls end, so that the token never leads to a second
// machine, whatever happens to the answer. It does not look for the machine first, because the
// token must end even if the cloud has taken the machine already. get is called only for an id that
// the journal does not know: the reply to the launch was lost, or the machine is a duplicate. The
// token of a duplicate stays in use, because it belongs to another machine. Any other token is
// remembered until two days after end has returned ErrNotFound. So it is known for as long as the
// machine may run, however often the cloud refuses to delete it.
func (j *Journal) Delete(ctx context.Context, id string,
	get func(ctx context.Context, id string) (cloudprovider.Instance, error), end func(context.Context) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ours, err := j.markDeleted(ctx, id, time.Time{})
	if err == nil && !ours {
		if _, err = get(ctx, id); err == nil {
			_, err = j.markDeleted(ctx, id, time.Time{})
		}
	}
	if err != nil {
		return err
	}
	err = end(ctx)
	if errors.Is(err, cloudprovider.ErrNotFound) {
		if _, failed := j.markDeleted(context.WithoutCancel(ctx), id, j.Now()); failed != nil {
			return failed // a later call records that the machine is gone
		}
	}
	return err
}

// markDeleted writes the tombstone of an instance. gone is when the cloud said that the machine is
// gone, or the zero time. ours says whether an entry has the instance; otherwise nothing changes.
func (j *Journal) markDeleted(ctx context.Context, id string, gone time.Time) (ours bool, err error) {
	err = j.Store.Update(ctx, func(entries map[string]Entry) error {
		for token, e := range entries {
			if e.Instance.ID == id {
				e.Deleted, e.Ended, ours = true, gone, true
				entries[token] = e
			}
		}
		return nil
	})
	return ours, err
}

// lock waits until no other call uses the token.
func (j *Journal) lock(ctx context.Context, token string) (unlock func(), err error) {
	for {
		j.mu.Lock()
		other := j.busy[token]
		if other == nil {
			done := make(chan struct{})
			if j.busy == nil {
				j.busy = map[string]chan struct{}{}
			}
			j.busy[token] = done
			j.mu.Unlock()
			return func() {
				j.mu.Lock()
				delete(j.busy, token)
				j.mu.Unlock()
				close(done)
			}, nil
		}
		j.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-other:
		}
	}
}
