package idempotent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// Entry is what a journal knows of a token.
type Entry struct {
	// Identity is that of the claim that the token was first used for.
	Identity string `json:"identity"`
	// Claim is that claim without its candidates, which may be thousands: what an instance has of it.
	Claim cloudprovider.NodeClaim `json:"claim"`
	// Instance is what it has led to; the zero value while that is not known. Create writes it; so does a provider that comes upon the
	// machine by its label while it reads.
	Instance cloudprovider.Instance `json:"instance"`
	// Ended is when the last call that may have launched something came to its end without an answer, or when the instance was
	// deleted; zero while a call is on its way.
	Ended time.Time `json:"ended"`
	// Deleted is the tombstone: the token leads to nothing any more.
	Deleted bool `json:"deleted,omitempty"`
}

// Store keeps a journal where a restart finds it: a file of one process, a ConfigMap that is updated by its resource version, a row of a
// database. A failed write need not be of the closed list of errors: what it was for is then unknown, and the call is made again. An entry takes
// some 1,500 bytes as JSON, mostly the labels of its instance.
type Store interface {
	// View lets a function read the entries, by token; its error comes back. It sees all updates that have ended before. The map is only lent.
	View(ctx context.Context, read func(entries map[string]Entry) error) error
	// Update lets a function change the entries, by token, and writes them if it returns nil, all or nothing; its error comes back.
	// Updates exclude each other, those of other processes included. The map is the function's for the time of the call.
	Update(ctx context.Context, change func(entries map[string]Entry) error) error
}

// Journal makes launches idempotent. What a token is for is written down before the cloud is asked, and what came of it
// afterwards; where an answer was lost, the cloud is asked what there is before it is asked for more, and not before everything
// that was launched must show. The zero value lacks a store and a clock; copies must not be made after the first use. It is safe for
// concurrent use, and calls with one token exclude each other.
type Journal struct {
	Store Store
	// Lag is how long the cloud may take to show a new machine to find; 0 = it shows at once.
	Lag time.Duration
	// Now is the time, such as time.Now.
	Now func() time.Time

	mu   sync.Mutex
	busy map[string]chan struct{} // by token, closed when its call ends
	seen map[string]time.Time     // calls without an end, since when this process knows of them
}

// remembered is how long a token is known after its instance was deleted: twice what providers promise.
const remembered = 48 * time.Hour

// Create keeps the obligations of [cloudprovider.Creator] about tokens, and tests the context and the claim before. For clouds without client tokens a
// provider writes two functions. Find looks for the machine that bears the token. Launch makes one, and labels it with the token in the call that
// makes it. Both return errors of the closed list where they are certain that nothing was launched, and any other where they are not.
// Create then fails with ErrNotReady until Lag has passed since that call ended, or since this process learnt of a call that another left open.
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
		maps.DeleteFunc(entries, func(_ string, e Entry) bool { return e.Deleted && j.Now().Sub(e.Ended) > remembered })
		switch e, known = entries[claim.Token]; {
		case known && e.Identity != identity:
			return fail(cloudprovider.ErrInvalidSpec, "token %q is of another claim", claim.Token)
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

// learn writes down what came of a call, whether its context has ended or not.
func (j *Journal) learn(ctx context.Context, token string, made cloudprovider.Launch, failed error) (cloudprovider.Launch, error) {
	err := j.Store.Update(context.WithoutCancel(ctx), func(entries map[string]Entry) error {
		e := entries[token]
		switch {
		case failed == nil:
			e.Instance = made.Clone()
		case !cloudprovider.Advise(failed).Unknown:
			delete(entries, token) // nothing was made, so the token is new
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
	case err != nil: // the machine is there, and a later call finds it
		return cloudprovider.Launch{}, err
	}
	return made, nil
}

// ended is when a call without an answer ended. Of one that was never written down, for its process was stopped, it is when this
// process first saw it.
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

// Machine is a machine of the cloud that bears a token.
type Machine struct {
	Token string
	// Instance is what the machine is for a claim, which has no candidates; see [Describe]. It is asked only where the reply to the launch was lost, and
	// it must not fail because the type has left the catalogue since.
	Instance func(claim cloudprovider.NodeClaim) cloudprovider.Instance
}

// Instances are those of the machines that bear a token of the journal, by id, for Get and List. One whose reply was lost is written down: from here on
// callers may hand its id to Delete, which has to know its token. Otherwise nothing is written.
func (j *Journal) Instances(ctx context.Context, machines ...Machine) ([]cloudprovider.Instance, error) {
	var out []cloudprovider.Instance
	lost := false
	err := j.Store.View(ctx, func(entries map[string]Entry) error {
		out, lost = known(maps.Clone(entries), machines)
		return nil
	})
	if err == nil && lost {
		err = j.Store.Update(ctx, func(entries map[string]Entry) error {
			out, _ = known(entries, machines)
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// known are the instances of those machines that have an entry, by id. It completes entries that lack theirs, and says whether there were any.
func known(entries map[string]Entry, machines []Machine) (out []cloudprovider.Instance, lost bool) {
	for _, m := range machines {
		e, ours := entries[m.Token]
		if !ours {
			continue
		}
		if e.Instance.ID == "" {
			lost = true
			e.Instance = m.Instance(e.Claim.Clone()).Clone()
			entries[m.Token] = e
		}
		instance := e.Instance.Clone()
		if e.Deleted { // and the list does not know yet
			instance.State = cloudprovider.Terminating
		}
		out = append(out, instance)
	}
	slices.SortFunc(out, func(a, b cloudprovider.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out, lost
}

// Delete writes the tombstone of an instance, so that its token leads to no second one. Call it before the cloud is asked to delete; if the cloud fails, call
// both again. Ours says whether the instance is that of an entry, also one that was deleted before. Of others nothing is written: a machine whose reply was lost is
// ours from the first call of Instances that has seen it.
func (j *Journal) Delete(ctx context.Context, id string) (ours bool, err error) {
	err = j.Store.Update(ctx, func(entries map[string]Entry) error {
		for token, e := range entries {
			if e.Instance.ID == id {
				ours = true
				if !e.Deleted {
					e.Deleted, e.Ended = true, j.Now()
					entries[token] = e
				}
			}
		}
		return nil
	})
	return ours, err
}

// lock waits until no other call has the token.
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
