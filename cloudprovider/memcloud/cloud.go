package memcloud

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Cloud is a running cloud. It implements cloudprovider.Provider, cloudprovider.BatchCreator,
// cloudprovider.RepairAdviser, cloudprovider.Rebooter and interruption.Source. Make one with [New].
// It is safe for concurrent use.
type Cloud struct {
	clock  *Clock
	config Config // what does not change while the cloud runs

	mu        sync.Mutex
	types     []instancetypes.InstanceType
	pools     map[string]int // by poolKey: free machines
	quotas    []Quota
	used      []int64 // by quota
	image     string
	made      int
	tokens    map[string]*machine // never forgotten; only one day is promised
	machines  map[string]*machine // by id, until no reader shows them any more
	due       time.Time           // when the next machine changes by itself; zero means never
	events    []interruption.Event
	confirmed int // number of events before this one
}

// machine is one instance and its future. A zero time means not yet, or never.
type machine struct {
	instance cloudprovider.Instance
	claim    cloudprovider.NodeClaim
	lag      time.Duration
	warn     time.Time // when the cloud announces that it takes the machine back
	end      time.Time // when the machine is gone and its capacity and quota are free
	leaving  bool      // it is terminating
	gone     bool
	reboots  []string // the operations
}

// New returns a cloud without machines. The config is copied. The error joins all its faults.
func New(config Config) (*Cloud, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config.Notice = cmp.Or(config.Notice, 2*time.Minute)
	c := &Cloud{
		clock: config.Clock, config: config, types: instancetypes.Clone(config.Types), quotas: slices.Clone(config.Quotas),
		used: make([]int64, len(config.Quotas)), image: config.Image,
		pools: map[string]int{}, tokens: map[string]*machine{}, machines: map[string]*machine{},
	}
	if c.clock == nil {
		c.clock = NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	for _, p := range config.Pools {
		c.pools[poolKey(p.Type, p.Offering)] = p.Free
	}
	return c, nil
}

// Clock returns the cloud's clock.
func (c *Cloud) Clock() *Clock { return c.clock }

// Settle moves the clock until every change made so far is finished and visible.
func (c *Cloud) Settle() { c.clock.Advance(c.config.Boot + c.config.Shutdown + c.config.Lag) }

// begin starts every call. It locks the cloud unless the context is done, lets the call's time
// pass, and applies the changes that are due.
func (c *Cloud) begin(ctx context.Context, op, subject string) (now time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fmt.Errorf("memcloud: %s %q: %w", op, subject, err)
	}
	c.mu.Lock()
	now = c.clock.Advance(c.config.Latency)
	c.happen(now)
	return now, nil
}

// happen brings the machines up to date.
func (c *Cloud) happen(now time.Time) {
	if c.due.IsZero() || now.Before(c.due) {
		return
	}
	ids := make([]string, 0, len(c.machines))
	for id := range c.machines {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	c.due = time.Time{}
	for _, id := range ids {
		m := c.machines[id]
		if !m.warn.IsZero() && !now.Before(m.warn) {
			c.announce(m, interruption.SpotInterrupted, m.warn, m.warn.Add(c.config.Notice))
		}
		if !m.end.IsZero() && !now.Before(m.end) {
			c.finish(m)
		}
		if m.gone && !now.Before(m.end.Add(m.lag)) {
			delete(c.machines, id)
			continue
		}
		c.expect(m)
	}
}

// announce announces that a machine will be taken back.
func (c *Cloud) announce(m *machine, kind interruption.Kind, at, deadline time.Time) {
	m.warn = time.Time{}
	c.events = append(c.events, interruption.Event{
		ID: fmt.Sprintf("event-%d", len(c.events)+1), Instance: m.instance.ID, Kind: kind, At: at, Deadline: deadline,
	})
	if kind.Respond() == interruption.Ignore {
		return
	}
	if m.end.IsZero() || deadline.Before(m.end) {
		m.end = deadline
	}
}

// finish frees the machine's capacity and quota.
func (c *Cloud) finish(m *machine) {
	if m.gone {
		return
	}
	m.gone, m.leaving, m.warn = true, true, time.Time{}
	key := poolKey(m.instance.Type, m.instance.Offering)
	if free, ok := c.pools[key]; ok {
		c.pools[key] = free + 1
	}
	for i, q := range c.quotas {
		c.used[i] -= q.weight(m.instance.Labels, m.instance.Capacity)
	}
}

// expect updates the due time for the machine's next change.
func (c *Cloud) expect(m *machine) {
	next := m.end
	if m.gone {
		next = m.end.Add(m.lag)
	}
	if !m.warn.IsZero() && (next.IsZero() || m.warn.Before(next)) {
		next = m.warn
	}
	if !next.IsZero() && (c.due.IsZero() || next.Before(c.due)) {
		c.due = next
	}
}

// InstanceTypes returns the whole catalogue, whatever the pool.
func (c *Cloud) InstanceTypes(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error) {
	if _, err := c.begin(ctx, "instance types", pool.Name); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	types := instancetypes.Clone(c.types)
	if !c.config.Reveal {
		return types, nil
	}
	for i, t := range types {
		for j, o := range t.Offerings {
			if free, ok := c.pools[poolKey(t.Name, o.Requirements)]; ok && free <= 0 {
				types[i].Offerings[j].Available = false
			}
		}
	}
	return types, nil
}

// Get returns the machine as the cloud's readers see it, up to Config.Lag late.
func (c *Cloud) Get(ctx context.Context, id string) (cloudprovider.Instance, error) {
	now, err := c.begin(ctx, "get", id)
	if err != nil {
		return cloudprovider.Instance{}, err
	}
	defer c.mu.Unlock()
	m, ok := c.machines[id]
	if !ok || now.Before(m.instance.Created.Add(m.lag)) {
		return cloudprovider.Instance{}, &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Op: "get", Subject: id}
	}
	return c.view(m, now), nil
}

// List returns all machines as the cloud's readers see them, up to Config.Lag late.
func (c *Cloud) List(ctx context.Context) ([]cloudprovider.Instance, error) {
	now, err := c.begin(ctx, "list", "")
	if err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	return c.collect(now, func(m *machine) bool { return !now.Before(m.instance.Created.Add(m.lag)) }), nil
}

// Truth returns what exists, without lag and without letting time pass.
func (c *Cloud) Truth() []cloudprovider.Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.happen(now)
	return c.collect(now, func(m *machine) bool { return !m.gone })
}

func (c *Cloud) collect(now time.Time, shown func(*machine) bool) []cloudprovider.Instance {
	list := make([]cloudprovider.Instance, 0, len(c.machines))
	for _, m := range c.machines {
		if shown(m) {
			list = append(list, c.view(m, now))
		}
	}
	slices.SortFunc(list, func(a, b cloudprovider.Instance) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// view returns a copy of the instance in its current state.
func (c *Cloud) view(m *machine, now time.Time) cloudprovider.Instance {
	i := m.instance.Clone()
	switch {
	case m.leaving:
		i.State = cloudprovider.Terminating
	case now.Before(i.Created.Add(c.config.Boot)):
		i.State = cloudprovider.Pending
	default:
		i.State = cloudprovider.Running
	}
	return i
}

// Delete starts the machine's shutdown, which takes Config.Shutdown.
func (c *Cloud) Delete(ctx context.Context, id string) error {
	now, err := c.begin(ctx, "delete", id)
	if err != nil {
		return err
	}
	defer c.mu.Unlock()
	m, ok := c.machines[id]
	if !ok || m.gone {
		return &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Op: "delete", Subject: id}
	}
	if end := now.Add(c.config.Shutdown); !m.leaving && (m.end.IsZero() || end.Before(m.end)) {
		m.end = end
	}
	m.leaving, m.warn = true, time.Time{}
	c.expect(m)
	c.happen(now)
	return nil
}

// Drifted compares the image that the machine has booted with the current one: "ImageDrift".
func (c *Cloud) Drifted(ctx context.Context, id string) (cloudprovider.Drift, error) {
	if _, err := c.begin(ctx, "drifted", id); err != nil {
		return cloudprovider.Drift{}, err
	}
	defer c.mu.Unlock()
	m, ok := c.machines[id]
	if !ok || m.gone {
		return cloudprovider.Drift{}, &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Op: "drifted", Subject: id}
	}
	if m.instance.ImageID == c.image {
		return cloudprovider.Drift{}, nil
	}
	return cloudprovider.Drift{Reason: "ImageDrift", Detail: fmt.Sprintf("boots %q instead of %q", m.instance.ImageID, c.image)}, nil
}

// chance returns the n-th machine's own source of random numbers.
func (c *Cloud) chance(n int) *rand.Rand { return rand.New(rand.NewPCG(c.config.Seed, uint64(n))) }

// decay returns a time from an exponential distribution, so the chance to be taken back does not
// depend on the machine's age.
func decay(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(min(r.ExpFloat64()*float64(mean), math.MaxInt64/4))
}
