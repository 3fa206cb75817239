// Package memory is what a provider remembers about tokens and instances: what was requested under
// which token, and the result.
package memory

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// remembered is how long the token of a deleted instance is known. No caller retries for longer.
const remembered = 24 * time.Hour

// Memory knows tokens and instances of this process, and those of earlier processes once their tags
// have been read.
type Memory struct {
	mu      sync.Mutex
	byToken map[string]*Entry
	byID    map[string]*Entry // by EC2's own id
	open    map[string]Question
	ends    []ended // in the order of their ends
	read    bool    // the history is known
}

// Entry is what is known about a token. It is a copy.
type Entry struct {
	Token, Name, Identity string
	State                 State
	done                  chan struct{} // closed when asking ends
	question              Question      // of open entries
	Instance              cloudprovider.Instance
	Checked               time.Time
	Why                   string // why the instance ended
	bare                  string
}

type ended struct {
	token, bare string
	at          time.Time
}

// State is the stage of a token.
type State int

// The states.
const (
	Asking State = iota // a call is in progress
	Open                // a fleet was requested, and its answer was lost or could not be recorded
	Live                // an instance is known
	Ended               // its instance has ended
)

// Question is a fleet whose result is unknown or not recorded.
type Question interface {
	// ID identifies the question.
	ID() string
}

// New returns an empty memory.
func New() *Memory {
	return &Memory{byToken: map[string]*Entry{}, byID: map[string]*Entry{}, open: map[string]Question{}}
}

// HistoryRead records that all of the history is known.
func (m *Memory) HistoryRead() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read = true
}

// KnowsHistory reports whether all of the history is known.
func (m *Memory) KnowsHistory() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read
}

// Begin looks up a token. A new token is in state Asking from now on, and the caller must end that
// with Reconcile.
func (m *Memory) Begin(token, name, identity string) (e Entry, fresh bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.byToken[token]; ok {
		return *known, false
	}
	made := &Entry{Token: token, Name: name, Identity: identity, State: Asking, done: make(chan struct{})}
	m.byToken[token] = made
	return *made, true
}

// Reconcile ends the state Asking: the token has an instance or an open question, or it counts as
// never used.
func (m *Memory) Reconcile(token string, instance *cloudprovider.Instance, batch Question, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byToken[token]
	if !ok {
		return
	}
	if e.State == Asking {
		close(e.done)
	}
	switch {
	case instance != nil:
		m.live(e, *instance, now)
	case batch != nil:
		e.State, e.question = Open, batch
		m.open[batch.ID()] = batch
	default:
		delete(m.byToken, token)
	}
}

func (m *Memory) live(e *Entry, instance cloudprovider.Instance, now time.Time) {
	e.State, e.Instance, e.bare, e.Checked, e.question = Live, instance.Clone(), Bare(instance.ID), now, nil
	m.byID[e.bare] = e
}

// Close ends an open question.
func (m *Memory) Close(batch Question) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, batch.ID())
}

// Learn records an instance that an earlier process made.
func (m *Memory) Learn(token, name, identity string, instance cloudprovider.Instance, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.byToken[token]; ok {
		return
	}
	e := &Entry{Token: token, Name: name, Identity: identity}
	m.byToken[token] = e
	m.live(e, instance, now)
}

// MarkTerminated records that an instance has ended, and forgets instances that ended long ago.
func (m *Memory) MarkTerminated(bare, why string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byID[bare]
	if ok && e.State == Live {
		// The rest is small, and is kept for a day.
		e.State, e.Instance, e.Why = Ended, cloudprovider.Instance{ID: e.Instance.ID}, why
		m.ends = append(m.ends, ended{e.Token, bare, now})
	}
	m.forget(now)
}

// forget forgets what ended long ago.
func (m *Memory) forget(now time.Time) {
	n := 0
	for ; n < len(m.ends) && now.Sub(m.ends[n].at) >= remembered; n++ {
		delete(m.byToken, m.ends[n].token)
		delete(m.byID, m.ends[n].bare)
	}
	if n > 0 {
		m.ends = append([]ended(nil), m.ends[n:]...)
	}
}

// Of returns what is known about an instance.
func (m *Memory) Of(bare string) (Entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byID[bare]
	if !ok {
		return Entry{}, false
	}
	copied := *e
	copied.Instance = e.Instance.Clone()
	return copied, true
}

// Instance returns a copy of the instance of a token.
func (m *Memory) Instance(token string) (cloudprovider.Instance, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byToken[token]
	if !ok || e.State != Live {
		return cloudprovider.Instance{}, false
	}
	return e.Instance.Clone(), true
}

// Has reports whether a token is known, even if it was only requested.
func (m *Memory) Has(token string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(now)
	_, ok := m.byToken[token]
	return ok
}

// Made corrects when an instance was made, by the cloud's clock.
func (m *Memory) Made(bare string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byID[bare]; ok && e.State == Live {
		e.Instance.Created = at
	}
}

// Knows reports whether one of the tokens has led to an instance, even if that has ended since.
func (m *Memory) Knows(tokens ...string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(tokens, func(token string) bool {
		e, ok := m.byToken[token]
		return ok && (e.State == Live || e.State == Ended)
	})
}

// Living returns copies of the instances that have not ended, by id.
func (m *Memory) Living() []cloudprovider.Instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []cloudprovider.Instance
	for _, e := range m.byID {
		if e.State == Live {
			out = append(out, e.Instance.Clone())
		}
	}
	slices.SortFunc(out, func(a, b cloudprovider.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// LaunchedBefore returns EC2's ids of the instances that were launched before a time.
func (m *Memory) LaunchedBefore(before time.Time) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]bool{}
	for bare, e := range m.byID {
		if e.State == Live && e.Instance.Created.Before(before) && e.Checked.Before(before) {
			out[bare] = true
		}
	}
	return out
}

// IsOpen reports whether the result of a batch is still open here.
func (m *Memory) IsOpen(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.open[id]
	return ok
}

// Opens returns the open questions, by id.
func (m *Memory) Opens() []Question {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]Question, 0, len(m.open))
	for _, b := range m.open {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b Question) int { return strings.Compare(a.ID(), b.ID()) })
	return out
}

// Await returns what to wait for under a token: a channel that is closed when the state Asking
// ends, or an open question. It returns neither if the token is reconciled.
func (m *Memory) Await(token string) (asking <-chan struct{}, open Question) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byToken[token]
	switch {
	case ok && e.State == Asking:
		return e.done, nil
	case ok && e.State == Open:
		return nil, e.question
	default:
		return nil, nil
	}
}

// ProviderID returns the id that a kubelet reports.
func ProviderID(zone, bare string) string { return "aws:///" + zone + "/" + bare }

// Zone returns the zone in an id that a kubelet reports, or an empty string.
func Zone(id string) string {
	rest, ok := strings.CutPrefix(id, "aws:///")
	zone, _, found := strings.Cut(rest, "/")
	if !ok || !found {
		return ""
	}
	return zone
}

// Bare returns EC2's own id of an instance, or an empty string if the id has neither form.
func Bare(id string) string {
	bare := id[strings.LastIndex(id, "/")+1:]
	if !strings.HasPrefix(bare, "i-") || strings.Contains(id, "/") && !strings.HasPrefix(id, "aws:///") {
		return ""
	}
	return bare
}
