package cloudtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// LosingTransport carries out requests and then loses the reply: the server has acted, and the
// client gets [ErrLostReply]. It belongs between a provider and its cloud, because a lost reply is
// where second machines come from. Make one with [NewLosingTransport]. It is safe for concurrent
// use.
type LosingTransport struct {
	next http.RoundTripper

	mu     sync.Mutex
	lose   func(*http.Request) bool
	status int // of the reply instead of the lost one; 0 means none
}

// NewLosingTransport returns a transport that loses nothing until [LosingTransport.Lose] is called.
// A nil next means http.DefaultTransport.
func NewLosingTransport(next http.RoundTripper) *LosingTransport {
	if next == nil {
		next = http.DefaultTransport
	}
	return &LosingTransport{next: next}
}

// Lose loses the reply to the next request for which the function returns true, and then no more;
// nil loses none. It returns the restore function that [Harness].LoseReply needs.
func (t *LosingTransport) Lose(which func(*http.Request) bool) (restore func()) {
	return t.Fail(0, which)
}

// Fail is Lose with another reply instead of none: one with the status, such as 503, and without a
// body. A cloud that has acted may answer so, and its client knows no more than without a reply.
func (t *LosingTransport) Fail(status int, which func(*http.Request) bool) (restore func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lose, t.status = which, status
	return func() { t.Lose(nil) }
}

// RoundTrip makes the request.
func (t *LosingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	lost, status := t.loses(r)
	reply, err := t.next.RoundTrip(r)
	if err != nil || !lost {
		return reply, err
	}
	_ = reply.Body.Close()
	if status != 0 {
		return &http.Response{
			Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Proto: reply.Proto, ProtoMajor: reply.ProtoMajor, ProtoMinor: reply.ProtoMinor,
			Header: http.Header{}, Body: http.NoBody, Request: r,
		}, nil
	}
	return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, ErrLostReply)
}

// loses reports whether the reply to the request is the one to lose, and the status of another one.
// The function that decides may panic.
func (t *LosingTransport) loses(r *http.Request) (lost bool, status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lose == nil || !t.lose(r) {
		return false, 0
	}
	t.lose = nil
	return true, t.status
}

func startedAnew(ctx context.Context, p *probe) error {
	if p.h.Reopen == nil {
		return &skipped{"Harness.Reopen"}
	}
	claim, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	gone, deleted, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if err := p.delete(ctx, deleted.ID); err != nil {
		return fmt.Errorf("Delete failed: %w", err)
	}
	if err := p.reopen(ctx); err != nil {
		return err
	}
	again, err := p.create(ctx, claim)
	if err != nil {
		return fmt.Errorf("Create of a claim from before the restart failed: %w", err)
	}
	if again.ID != launch.ID {
		return fmt.Errorf("Create of a claim from before the restart returned %q instead of %q", again.ID, launch.ID)
	}
	if err := p.count(ctx, claim, 1); err != nil {
		return err
	}
	_, err = p.create(ctx, gone)
	if err := mustBe("Create of a claim whose instance was deleted before the restart", err, cloudprovider.ErrNotFound); err != nil {
		return err
	}
	have, err := p.get(ctx, launch.ID)
	if err != nil {
		return fmt.Errorf("Get of an instance from before the restart failed: %w", err)
	}
	for _, i := range []cloudprovider.Instance{again.Instance, have} {
		if want, have := describeInstance(launch.Instance), describeInstance(i); want != have {
			return fmt.Errorf("after the restart the instance is %s instead of %s", have, want)
		}
	}
	if err := p.delete(ctx, launch.ID); err != nil {
		return fmt.Errorf("Delete of an instance from before the restart failed: %w", err)
	}
	return nil
}

func lostReplies(ctx context.Context, p *probe) error {
	if p.h.LoseReply == nil {
		return &skipped{"Harness.LoseReply"}
	}
	// Other candidates tempt the provider to launch elsewhere. Neighbours on several pages may be
	// mistaken for the machine.
	neighbours := map[string]bool{}
	for range p.h.Many {
		_, launch, err := p.launch(ctx)
		if err != nil {
			return err
		}
		neighbours[launch.ID] = true
	}
	for _, when := range []string{" at once", "", " after a restart"} {
		if when == " after a restart" && p.h.Reopen == nil {
			continue
		}
		if err := p.lostReply(ctx, neighbours, when); err != nil {
			return err
		}
	}
	return nil
}

// lostReply loses the reply to a launch and asks again: at once, once everything must show, or
// after a restart. There must then be one machine, it must be what its claim asked for, and it must
// not be a neighbour's.
func (p *probe) lostReply(ctx context.Context, neighbours map[string]bool, when string) error {
	candidates := 4
	if when == " at once" {
		candidates = 1 // with no other to launch, a provider may say that all were refused
	}
	claim, said, err := p.unanswered(ctx, candidates)
	if err != nil {
		return err
	}
	if said != nil && !cloudprovider.Advise(said).Unknown && !errors.Is(said, cloudprovider.ErrNotReady) {
		return fmt.Errorf("Create whose outcome is not known failed as if nothing had been made: %w", said)
	}
	if when != " at once" {
		if err := p.settle(ctx); err != nil {
			return err
		}
	}
	if when == " after a restart" {
		if err := p.reopen(ctx); err != nil {
			return err
		}
	}
	launch, err := p.createAgain(ctx, claim)
	if err != nil {
		return fmt.Errorf("Create that was asked again%s failed: %w", when, err)
	}
	if err := p.asPromised(ctx, claim, launch.Instance); err != nil {
		return fmt.Errorf("Create that was asked again%s: %w", when, err)
	}
	if neighbours[launch.ID] {
		return fmt.Errorf("Create that was asked again%s returned %q, which is another claim's", when, launch.ID)
	}
	if err := p.count(ctx, cloudprovider.NodeClaim{Name: claim.Name}, 1); err != nil {
		return fmt.Errorf("asked again%s: %w", when, err)
	}
	return nil
}

// createAgain repeats Create until its outcome is known.
func (p *probe) createAgain(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	launch, err := p.create(ctx, claim)
	for try := 1; try < patience && err != nil && cloudprovider.Advise(err).Unknown; try++ {
		if err := p.settle(ctx); err != nil {
			return launch, err
		}
		launch, err = p.create(ctx, claim)
	}
	return launch, err
}

// reopen continues with a provider that was started anew.
func (p *probe) reopen(ctx context.Context) (err error) {
	if p.h.Provider, err = p.h.Reopen(ctx); err != nil {
		return fmt.Errorf("the harness did not reopen the provider: %w", err)
	}
	return nil
}

// unanswered returns a claim with up to n candidates whose launch was requested and whose reply was
// lost, and what Create said.
func (p *probe) unanswered(ctx context.Context, n int) (claim cloudprovider.NodeClaim, said, err error) {
	candidates, err := p.candidates(ctx, n)
	if err != nil {
		return claim, nil, err
	}
	if claim, err = p.claim(ctx, candidates...); err != nil {
		return claim, nil, err
	}
	restore, err := p.h.LoseReply(ctx)
	if err != nil {
		return claim, nil, fmt.Errorf("the harness did not lose a reply: %w", err)
	}
	defer restore()
	var denied error // what Create said if it had launched something and asked for patience
	_, said = patiently(ctx, p, func() (cloudprovider.Launch, error) {
		launch, err := p.h.Provider.Create(ctx, claim)
		p.note(launch.ID)
		if errors.Is(err, cloudprovider.ErrThrottled) {
			if made, listed := p.of(ctx, claim); listed == nil && len(made) > 0 {
				denied, err = err, nil
			}
		}
		return launch, err
	})
	if denied != nil {
		said = denied
	}
	return claim, said, nil
}

// requestsOfCall is how many requests of a call are lost, one at a time.
const requestsOfCall = 4

// lostReads loses the reply to one reading request of each call. A provider that takes this for an
// answer of the cloud may say that an instance is gone, or that a claim can never be launched.
func lostReads(ctx context.Context, p *probe) error {
	if p.h.LoseRead == nil {
		return &skipped{"Harness.LoseRead"}
	}
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	for n := 1; n <= requestsOfCall; n++ {
		provider := p.h.Provider
		for _, call := range []struct {
			name string
			do   func() error
		}{
			{"InstanceTypes", func() error { _, err := provider.InstanceTypes(ctx, p.h.Pool); return err }},
			{"Get", func() error { _, err := provider.Get(ctx, launch.ID); return err }},
			{"List", func() error { _, err := provider.List(ctx); return err }},
			{"Drifted", func() error { _, err := provider.Drifted(ctx, launch.ID); return err }},
		} {
			if err := p.lostRead(ctx, n, call.name, call.do); err != nil {
				return err
			}
		}
		for _, unanswered := range []bool{true, false} {
			if err := p.lostReadOfCreate(ctx, n, unanswered); err != nil {
				return err
			}
		}
		if err := p.lostReadOfDelete(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// lostReadOfCreate loses a reply while Create looks for what it may launch, or, if it was
// unanswered before, for what its token has led to.
func (p *probe) lostReadOfCreate(ctx context.Context, n int, unanswered bool) error {
	claim, err := p.claim(ctx)
	if unanswered && p.h.LoseReply != nil {
		claim, _, err = p.unanswered(ctx, 1)
	}
	if err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	if err := p.lostRead(ctx, n, "Create", func() error {
		launch, err := p.h.Provider.Create(ctx, claim)
		p.note(launch.ID)
		return err
	}); err != nil {
		return err
	}
	if _, err := p.createAgain(ctx, claim); err != nil {
		return fmt.Errorf("the reply to request %d of Create was lost, and the same claim failed afterwards: %w", n, err)
	}
	return p.count(ctx, cloudprovider.NodeClaim{Name: claim.Name}, 1)
}

// lostReadOfDelete loses a reply while Delete looks at the instance. If the request that ends it
// counts as one that reads, the instance may really be gone.
func (p *probe) lostReadOfDelete(ctx context.Context, n int) error {
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	return p.lostRead(ctx, n, "Delete", func() error {
		err := p.h.Provider.Delete(ctx, launch.ID)
		if !errors.Is(err, cloudprovider.ErrNotFound) {
			return err
		}
		if err := p.settle(ctx); err != nil {
			return err
		}
		if _, there := p.get(ctx, launch.ID); there == nil {
			return err
		}
		return nil
	})
}

// lostRead fails unless a call, to whose n-th reading request the reply is lost, succeeds or fails
// without a code. A code that asks for patience may be the truth, unless it comes each time.
func (p *probe) lostRead(ctx context.Context, n int, name string, call func() error) error {
	var failed error // of the harness
	err := p.retry(ctx, func() error {
		restore, err := p.h.LoseRead(ctx, n)
		if err != nil {
			failed = fmt.Errorf("the harness did not lose a reply: %w", err)
			return nil
		}
		defer restore()
		return call()
	})
	switch {
	case failed != nil:
		return failed
	case err != nil && !cloudprovider.Advise(err).Unknown:
		return fmt.Errorf("the reply to request %d of %s was lost, and %s took that for an answer: %w", n, name, name, err)
	}
	return nil
}

func foreign(ctx context.Context, p *probe) error {
	if p.h.Foreign == nil {
		return &skipped{"Harness.Foreign"}
	}
	id, there, err := p.h.Foreign(ctx)
	if err != nil {
		return fmt.Errorf("the harness put no machine there: %w", err)
	}
	all, err := p.list(ctx)
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.ID == id {
			return fmt.Errorf("List shows %q, which Create has not made", id)
		}
	}
	calls := map[string]func() error{
		"Get":     func() error { _, err := p.h.Provider.Get(ctx, id); return err },
		"Drifted": func() error { _, err := p.h.Provider.Drifted(ctx, id); return err },
		"Delete":  func() error { return p.h.Provider.Delete(ctx, id) },
	}
	if rebooter, ok := p.h.Provider.(cloudprovider.Rebooter); ok {
		calls["Reboot"] = func() error { return rebooter.Reboot(ctx, id, p.h.Prefix+"-foreign") }
	}
	for _, name := range sortedKeys(calls) {
		if err := mustBe(name+" of a machine that Create has not made", p.retry(ctx, calls[name]), cloudprovider.ErrNotFound); err != nil {
			return err
		}
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	switch alive, err := there(ctx); {
	case err != nil:
		return fmt.Errorf("the harness cannot say whether %q is there: %w", id, err)
	case !alive:
		return fmt.Errorf("%q, which Create has not made, is gone after Delete", id)
	}
	return nil
}

// deadLostToken deletes an instance that only the list has shown, because the reply to its launch
// was lost.
func deadLostToken(ctx context.Context, p *probe) error {
	if p.h.LoseReply == nil {
		return nil
	}
	claim, _, err := p.unanswered(ctx, 4) // another case checks what Create said
	if err != nil {
		return err
	}
	made, err := p.of(ctx, claim)
	if err != nil || len(made) == 0 { // if there is none, the request was lost too
		return err
	}
	p.note(made[0].ID)
	if err := p.delete(ctx, made[0].ID); err != nil {
		return fmt.Errorf("Delete of an instance that only List has told of failed: %w", err)
	}
	_, err = p.create(ctx, claim)
	if err := mustBe("Create after Delete of an instance that only List has told of", err, cloudprovider.ErrNotFound); err != nil {
		return err
	}
	if err := p.count(ctx, claim, 0); err != nil {
		return err
	}
	if err := p.lostDelete(ctx, false); err != nil || p.h.Reopen == nil {
		return err
	}
	return p.lostDelete(ctx, true)
}

// lostDelete loses the reply to the end of a machine, perhaps with a restart after that. Its token
// has ended, whether the provider was told or not.
func (p *probe) lostDelete(ctx context.Context, restart bool) error {
	claim, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	restore, err := p.h.LoseReply(ctx)
	if err != nil {
		return fmt.Errorf("the harness did not lose a reply: %w", err)
	}
	said := p.delete(ctx, launch.ID) // nil if the provider has asked again, or if the harness loses only launches
	restore()
	if err := p.settle(ctx); err != nil {
		return err
	}
	when := "Create after a Delete whose reply was lost"
	if restart {
		when += ", after a restart"
		if err := p.reopen(ctx); err != nil {
			return err
		}
	}
	_, err = p.create(ctx, claim)
	if err := mustBe(when, err, cloudprovider.ErrNotFound); err != nil {
		return fmt.Errorf("%w; Delete had said %w", err, orNil(said))
	}
	return p.count(ctx, claim, 0)
}
