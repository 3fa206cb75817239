package cloudtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// LosingTransport carries out requests whose reply then gets lost: the server has acted, and the client sees [ErrLostReply]. It is
// put between a provider and its cloud, for what a provider does then is where second machines come from. Make one by
// [NewLosingTransport]; it is safe for concurrent use.
type LosingTransport struct {
	next http.RoundTripper

	mu   sync.Mutex
	lose func(*http.Request) bool
}

// NewLosingTransport loses nothing until [LosingTransport.Lose] says what. A nil transport is http.DefaultTransport.
func NewLosingTransport(next http.RoundTripper) *LosingTransport {
	if next == nil {
		next = http.DefaultTransport
	}
	return &LosingTransport{next: next}
}

// Lose loses the reply to the next request for which the function reports true, and then no more; nil loses none. It gives the
// restore function that [Harness].LoseReply asks for.
func (t *LosingTransport) Lose(which func(*http.Request) bool) (restore func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lose = which
	return func() { t.Lose(nil) }
}

// RoundTrip makes the request.
func (t *LosingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	lost := t.lose != nil && t.lose(r)
	if lost {
		t.lose = nil
	}
	t.mu.Unlock()
	reply, err := t.next.RoundTrip(r)
	if err == nil && lost {
		_ = reply.Body.Close()
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, ErrLostReply)
	}
	return reply, err
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
	if p.h.Provider, err = p.h.Reopen(ctx); err != nil {
		return fmt.Errorf("the harness did not reopen the provider: %w", err)
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
	if _, err := p.get(ctx, launch.ID); err != nil {
		return fmt.Errorf("Get of an instance from before the restart failed: %w", err)
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
	// Other candidates are a temptation to launch elsewhere, neighbours on several pages to be taken for the machine.
	neighbours := map[string]bool{}
	for range p.h.Many {
		_, launch, err := p.launch(ctx)
		if err != nil {
			return err
		}
		neighbours[launch.ID] = true
	}
	if err := p.lostReply(ctx, neighbours, false); err != nil || p.h.Reopen == nil {
		return err
	}
	return p.lostReply(ctx, neighbours, true)
}

// lostReply loses the reply to a launch and asks again, perhaps after a restart: there must be one machine, which is no neighbour's.
func (p *probe) lostReply(ctx context.Context, neighbours map[string]bool, restart bool) error {
	claim, said, err := p.unanswered(ctx)
	if err != nil {
		return err
	}
	if said != nil && !cloudprovider.Advise(said).Unknown && !errors.Is(said, cloudprovider.ErrNotReady) {
		return fmt.Errorf("Create whose outcome is not known failed as if nothing had been made: %w", said)
	}
	when := ""
	if restart {
		when = " after a restart"
		if p.h.Provider, err = p.h.Reopen(ctx); err != nil {
			return fmt.Errorf("the harness did not reopen the provider: %w", err)
		}
	}
	launch, err := p.create(ctx, claim)
	if err != nil {
		return fmt.Errorf("Create that was asked again%s failed: %w", when, err)
	}
	if neighbours[launch.ID] {
		return fmt.Errorf("Create that was asked again%s returned %q, which is another claim's", when, launch.ID)
	}
	if err := p.count(ctx, cloudprovider.NodeClaim{Name: claim.Name}, 1); err != nil {
		return fmt.Errorf("asked again%s: %w", when, err)
	}
	return nil
}

// unanswered is a claim whose launch was asked for, and the reply lost: what Create said of it, once everything must show.
func (p *probe) unanswered(ctx context.Context) (claim cloudprovider.NodeClaim, said, err error) {
	candidates, err := p.candidates(ctx, 4)
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
	_, said = p.create(ctx, claim)
	restore()
	return claim, said, p.settle(ctx)
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
	_, err = p.get(ctx, id)
	if err := mustBe("Get of a machine that Create has not made", err, cloudprovider.ErrNotFound); err != nil {
		return err
	}
	if err := mustBe("Delete of a machine that Create has not made", p.delete(ctx, id), cloudprovider.ErrNotFound); err != nil {
		return err
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

// deadLostToken deletes an instance of which only the list has told, for the reply to its launch was lost.
func deadLostToken(ctx context.Context, p *probe) error {
	if p.h.LoseReply == nil {
		return nil
	}
	claim, _, err := p.unanswered(ctx) // what Create said is for another case
	if err != nil {
		return err
	}
	made, err := p.of(ctx, claim)
	if err != nil || len(made) == 0 { // none: the request was lost, too
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

// lostDelete loses the reply to the end of a machine, perhaps with a restart after that: its token is over, whether the provider was told or not.
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
	said := p.delete(ctx, launch.ID) // nil if the provider has asked again, or the harness loses launches only
	restore()
	if err := p.settle(ctx); err != nil {
		return err
	}
	when := "Create after a Delete whose reply was lost"
	if restart {
		when += ", after a restart"
		if p.h.Provider, err = p.h.Reopen(ctx); err != nil {
			return fmt.Errorf("the harness did not reopen the provider: %w", err)
		}
	}
	_, err = p.create(ctx, claim)
	if err := mustBe(when, err, cloudprovider.ErrNotFound); err != nil {
		return fmt.Errorf("%w; Delete had said %w", err, orNil(said))
	}
	return p.count(ctx, claim, 0)
}
