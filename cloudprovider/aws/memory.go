package aws

import (
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/record"
)

// remembered is for how long the token of a deleted instance is known; nobody retries for longer.
const remembered = 24 * time.Hour

// memory knows tokens and instances of this process, and of earlier ones once their tags were read.
type memory struct {
	mu      sync.Mutex
	byToken map[string]*entry
	byID    map[string]*entry // by the bare id
	open    map[string]*pending
	dead    []grave // in the order of their ends
	read    bool    // the past is known
}

// entry is what became of a token. Its fields are guarded by the memory's lock.
type entry struct {
	token, name, shape string
	state              state
	done               chan struct{} // closed when asking ends
	batch              *pending      // of open entries
	instance           cloudprovider.Instance
	bare               string
	checked            time.Time
	why                string // what a dead one died of
}

type grave struct {
	token, bare string
	at          time.Time
}

type state int

const (
	asking state = iota // a call is under way
	open                // a fleet was asked for, and its answer was lost or could not be recorded
	live
	dead
)

// pending is a fleet whose outcome is not known, or not recorded.
type pending struct {
	turn   chan struct{} // holds one token: whoever takes it finds out
	rec    record.Batch
	input  *ec2.CreateFleetInput
	offers []offer
	// When it was first and last asked for; guarded by the memory's lock.
	first, sent time.Time
	ids         []string // of machines that are known and not recorded
	claims      []cloudprovider.NodeClaim
}

func newMemory() *memory {
	return &memory{byToken: map[string]*entry{}, byID: map[string]*entry{}, open: map[string]*pending{}}
}

// readPast notes that all of the past is known, and knowsPast tells.
func (m *memory) readPast() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read = true
}

func (m *memory) knowsPast() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read
}

// begin looks a token up. A new one is being asked for from now on: the caller must end it by settle.
func (m *memory) begin(token, name, shape string) (e entry, fresh bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.byToken[token]; ok {
		return *known, false
	}
	made := &entry{token: token, name: name, shape: shape, state: asking, done: make(chan struct{})}
	m.byToken[token] = made
	return *made, true
}

// settle ends the asking: the token has an instance, or an open question, or it is as if it had never been used.
func (m *memory) settle(token string, instance *cloudprovider.Instance, batch *pending, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byToken[token]
	if !ok {
		return
	}
	if e.state == asking {
		close(e.done)
	}
	switch {
	case instance != nil:
		m.bear(e, *instance, now)
	case batch != nil:
		e.state, e.batch = open, batch
		m.open[batch.rec.ID] = batch
	default:
		delete(m.byToken, token)
	}
}

func (m *memory) bear(e *entry, instance cloudprovider.Instance, now time.Time) {
	e.state, e.instance, e.bare, e.checked, e.batch = live, instance.Clone(), bareID(instance.ID), now, nil
	m.byID[e.bare] = e
}

// close ends an open question.
func (m *memory) close(batch *pending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, batch.rec.ID)
}

// learn notes an instance that an earlier process made.
func (m *memory) learn(token, name, shape string, instance cloudprovider.Instance, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.byToken[token]; ok {
		return
	}
	e := &entry{token: token, name: name, shape: shape}
	m.byToken[token] = e
	m.bear(e, instance, now)
}

// bury notes that an instance has ended, and forgets those that have ended long ago.
func (m *memory) bury(bare, why string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byID[bare]
	if ok && e.state == live {
		// What is left is small: it is kept for a day.
		e.state, e.instance, e.why = dead, cloudprovider.Instance{ID: e.instance.ID}, why
		m.dead = append(m.dead, grave{e.token, bare, now})
	}
	n := 0
	for ; n < len(m.dead) && now.Sub(m.dead[n].at) >= remembered; n++ {
		delete(m.byToken, m.dead[n].token)
		delete(m.byID, m.dead[n].bare)
	}
	if n > 0 {
		m.dead = append([]grave(nil), m.dead[n:]...)
	}
}

// of is what is known of an instance.
func (m *memory) of(bare string) (entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byID[bare]
	if !ok {
		return entry{}, false
	}
	copied := *e
	copied.instance = e.instance.Clone()
	return copied, true
}

// instance of a token, cloned.
func (m *memory) instance(token string) (cloudprovider.Instance, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byToken[token]
	if !ok || e.state != live {
		return cloudprovider.Instance{}, false
	}
	return e.instance.Clone(), true
}

// lived are the bare ids of the instances that were launched before a time.
func (m *memory) lived(before time.Time) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]bool{}
	for bare, e := range m.byID {
		if e.state == live && e.instance.Created.Before(before) && e.checked.Before(before) {
			out[bare] = true
		}
	}
	return out
}

// isOpen says whether the outcome of a batch is still open here.
func (m *memory) isOpen(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.open[id]
	return ok
}

// stamp notes when a fleet was asked for, and sentAt tells: zero = never.
func (m *memory) stamp(batch *pending, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	batch.sent = at
	if at.IsZero() || batch.first.IsZero() {
		batch.first = at
	}
}

func (m *memory) firstSent(batch *pending) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return batch.first
}

func (m *memory) sentAt(batch *pending) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return batch.sent
}

// opens are the open questions.
func (m *memory) opens() []*pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*pending, 0, len(m.open))
	for _, b := range m.open {
		out = append(out, b)
	}
	return out
}

// providerID is the id that a kubelet reports, and bareID EC2's own; empty if an id is of neither form.
func providerID(zone, bare string) string { return "aws:///" + zone + "/" + bare }

func bareID(id string) string {
	bare := id[strings.LastIndex(id, "/")+1:]
	if !strings.HasPrefix(bare, "i-") || strings.Contains(id, "/") && !strings.HasPrefix(id, "aws:///") {
		return ""
	}
	return bare
}
