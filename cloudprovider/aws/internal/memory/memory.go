// Package memory is what a provider remembers about tokens and instances: what was requested under
// which token, and the result.
package memory

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// remembered is how long the token of a deleted instance is known. No caller retries for longer.
const remembered = 24 * time.Hour

// Memory knows tokens and instances of this process, and those of earlier processes once their tags
// have been read. Q is a fleet whose result is unknown or not recorded. It is safe for concurrent
// use.
type Memory[Q Question] struct {
	mu      sync.Mutex
	byToken map[string]*Entry[Q]
	byID    map[string]*Entry[Q] // by EC2's own id
	open    map[string]Q
	ends    []ended // in the order of their ends
}

// Question is a fleet whose result is unknown or not recorded.
type Question interface {
	// ID identifies the question.
	ID() string
}

// Entry is what is known about a token. It is a copy.
type Entry[Q Question] struct {
	Token, Name, Identity string
	State                 State
	Asked                 <-chan struct{} // closed when the state Asking ends; nil if it never was
	Question              Q               // of the state Open
	Instance              cloudprovider.Instance
	Checked               time.Time
	Why                   string // why the instance ended
	done                  chan struct{}
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

// New returns an empty memory.
func New[Q Question]() *Memory[Q] {
	return &Memory[Q]{byToken: map[string]*Entry[Q]{}, byID: map[string]*Entry[Q]{}, open: map[string]Q{}}
}

// Begin looks up a token. A new token is in state Asking from now on, and the caller must end that
// with one of Launched, Lost and Unused.
func (m *Memory[Q]) Begin(token, name, identity string) (e Entry[Q], fresh bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.byToken[token]; ok {
		return known.copied(), false
	}
	done := make(chan struct{})
	made := &Entry[Q]{Token: token, Name: name, Identity: identity, State: Asking, Asked: done, done: done}
	m.byToken[token] = made
	return *made, true
}

func (e *Entry[Q]) copied() Entry[Q] {
	out := *e
	out.Instance = e.Instance.Clone()
	return out
}

// asked finds an entry and ends its state Asking.
func (m *Memory[Q]) asked(token string) (*Entry[Q], bool) {
	e, ok := m.byToken[token]
	if ok && e.State == Asking {
		close(e.done)
	}
	return e, ok
}

// Launched records that a token has an instance.
func (m *Memory[Q]) Launched(token string, instance cloudprovider.Instance, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.asked(token); ok {
		m.live(e, instance, now)
	}
}

// Lost records that the result of a token is an open question.
func (m *Memory[Q]) Lost(token string, question Q) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.asked(token); ok {
		e.State, e.Question = Open, question
		m.open[question.ID()] = question
	}
}

// Unused records that a token has led to nothing. It counts as never used.
func (m *Memory[Q]) Unused(token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked(token)
	delete(m.byToken, token)
}

func (m *Memory[Q]) live(e *Entry[Q], instance cloudprovider.Instance, now time.Time) {
	e.State, e.Instance, e.Checked = Live, instance.Clone(), now
	m.byID[Bare(instance.ID)] = e
}

// Close ends an open question.
func (m *Memory[Q]) Close(question Q) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, question.ID())
}

// Learn records an instance that an earlier process made.
func (m *Memory[Q]) Learn(instance cloudprovider.Instance, identity string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.byToken[instance.Token]; ok {
		return
	}
	e := &Entry[Q]{Token: instance.Token, Name: instance.Claim, Identity: identity}
	m.byToken[e.Token] = e
	m.live(e, instance, now)
}

// MarkTerminated records that an instance has ended, and forgets instances that ended long ago.
func (m *Memory[Q]) MarkTerminated(bare, why string, now time.Time) {
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
func (m *Memory[Q]) forget(now time.Time) {
	for len(m.ends) > 0 && now.Sub(m.ends[0].at) >= remembered {
		delete(m.byToken, m.ends[0].token)
		delete(m.byID, m.ends[0].bare)
		m.ends = m.ends[1:]
	}
}

// Of returns what is known about an instance.
func (m *Memory[Q]) Of(bare string) (Entry[Q], bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byID[bare]; ok {
		return e.copied(), true
	}
	return Entry[Q]{}, false
}

// Token returns what is known about a token.
func (m *Memory[Q]) Token(token string, now time.Time) (Entry[Q], bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(now)
	if e, ok := m.byToken[token]; ok {
		return e.copied(), true
	}
	return Entry[Q]{}, false
}

// Made corrects when an instance was made, by the cloud's clock.
func (m *Memory[Q]) Made(bare string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byID[bare]; ok && e.State == Live {
		e.Instance.Created = at
	}
}

// Living returns the entries of instances that have not ended, by id.
func (m *Memory[Q]) Living() []Entry[Q] {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Entry[Q]
	for _, e := range m.byID {
		if e.State == Live {
			out = append(out, e.copied())
		}
	}
	slices.SortFunc(out, func(a, b Entry[Q]) int { return strings.Compare(a.Instance.ID, b.Instance.ID) })
	return out
}

// IsOpen reports whether the result of a batch is still open here.
func (m *Memory[Q]) IsOpen(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.open[id]
	return ok
}

// Opens returns the open questions, by id.
func (m *Memory[Q]) Opens() []Q {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.open), func(a, b Q) int { return strings.Compare(a.ID(), b.ID()) })
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
