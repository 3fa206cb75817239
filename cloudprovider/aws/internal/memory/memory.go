// Package memory is what a provider remembers of tokens and instances: what was asked for under which token, and what came of it.
package memory

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// remembered is for how long the token of a deleted instance is known; no caller retries for longer.
const remembered = 24 * time.Hour

// Memory knows tokens and instances of this process, and of earlier ones once their tags were read.
type Memory struct {
	mu      sync.Mutex
	byToken map[string]*Entry
	byID    map[string]*Entry // by the bare id
	open    map[string]Question
	ends    []ended // in the order of their ends
	read    bool    // the history is known
}

// Entry is what became of a token. It is a copy.
type Entry struct {
	Token, Name, Identity string
	State                 State
	done                  chan struct{} // closed when asking ends
	question              Question      // of open entries
	Instance              cloudprovider.Instance
	Checked               time.Time
	Why                   string // what one that has ended has ended of
	bare                  string
}

type ended struct {
	token, bare string
	at          time.Time
}

// State is how far a token has come.
type State int

// The states.
const (
	Asking State = iota // a call is under way
	Open                // a fleet was asked for, and its answer was lost or could not be recorded
	Live                // an instance is known
	Ended               // its instance has ended
)

// Question is a fleet whose outcome is not known, or not recorded.
type Question interface {
	// ID tells questions apart.
	ID() string
}

// New knows nothing.
func New() *Memory {
	return &Memory{byToken: map[string]*Entry{}, byID: map[string]*Entry{}, open: map[string]Question{}}
}

// HistoryRead notes that all of the history is known.
func (m *Memory) HistoryRead() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read = true
}

// KnowsHistory says whether all of the history is known.
func (m *Memory) KnowsHistory() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read
}

// Begin looks a token up. A new one is being asked for from now on: the caller must end it by Reconcile.
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

// Reconcile ends the asking: the token has an instance, or an open question, or it is as if it had never been used.
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

// Learn notes an instance that an earlier process made.
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

// MarkTerminated notes that an instance has ended, and forgets those that have ended long ago.
func (m *Memory) MarkTerminated(bare, why string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byID[bare]
	if ok && e.State == Live {
		// What is left is small: it is kept for a day.
		e.State, e.Instance, e.Why = Ended, cloudprovider.Instance{ID: e.Instance.ID}, why
		m.ends = append(m.ends, ended{e.Token, bare, now})
	}
	m.forget(now)
}

// forget forgets what has ended long ago.
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

// Of is what is known of an instance.
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

// Instance of a token, cloned.
func (m *Memory) Instance(token string) (cloudprovider.Instance, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byToken[token]
	if !ok || e.State != Live {
		return cloudprovider.Instance{}, false
	}
	return e.Instance.Clone(), true
}

// Has says whether a token is known, be it only asked for.
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

// Knows says whether one of the tokens has led to an instance, be it ended since.
func (m *Memory) Knows(tokens ...string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(tokens, func(token string) bool {
		e, ok := m.byToken[token]
		return ok && (e.State == Live || e.State == Ended)
	})
}

// Living are the instances that have not ended, cloned, by id.
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

// LaunchedBefore are the bare ids of the instances that were launched before a time.
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

// IsOpen says whether the outcome of a batch is still open here.
func (m *Memory) IsOpen(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.open[id]
	return ok
}

// Opens are the open questions, by id.
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

// Await returns what there is to wait for under a token: a channel that is closed when the asking ends, or an open question; neither if the
// token is reconciled.
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

// ProviderID is the id that a kubelet reports.
func ProviderID(zone, bare string) string { return "aws:///" + zone + "/" + bare }

// Zone is the zone in an id that a kubelet reports; empty if there is none.
func Zone(id string) string {
	rest, ok := strings.CutPrefix(id, "aws:///")
	zone, _, found := strings.Cut(rest, "/")
	if !ok || !found {
		return ""
	}
	return zone
}

// Bare is EC2's own id of an instance; empty if an id is of neither form.
func Bare(id string) string {
	bare := id[strings.LastIndex(id, "/")+1:]
	if !strings.HasPrefix(bare, "i-") || strings.Contains(id, "/") && !strings.HasPrefix(id, "aws:///") {
		return ""
	}
	return bare
}
