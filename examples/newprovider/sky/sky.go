// Package sky is an imaginary cloud in memory. It takes the place of your cloud's own client. It
// has the faults of real clouds: it takes no client tokens, its list comes in pages and lags
// behind, some replies get lost, and it refuses what is sold out or beyond a quota.
package sky

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Offer is what the cloud sells: a size in a zone, kept until it is deleted or, as spot capacity,
// until the cloud takes it back.
type Offer struct {
	Size, Zone string
	Spot       bool
}

// Machine is what the cloud knows of a machine. Tags are the customer's; Config is handed to its
// kubelet, and not shown again.
type Machine struct {
	ID string
	Offer
	Tags    map[string]string
	Config  Config
	Created time.Time

	ended time.Time // zero: it runs
}

// Config is how a machine joins its cluster.
type Config struct {
	Labels map[string]string
	Taints []string
}

// Error is a reply that says no; nothing was done. Codes are not-found, sold-out, quota.
type Error struct{ Code string }

// Error returns the code.
func (e *Error) Error() string { return "sky: " + e.Code }

// ErrConnection is what the client says when no reply came: what was asked for may have been done.
var ErrConnection = errors.New("sky: connection reset")

// page is how many machines a page of the list holds.
const page = 5

// Cloud is the whole of it. Make one by [New]; it is safe for concurrent use.
type Cloud struct {
	lag time.Duration
	now func() time.Time

	mu       sync.Mutex
	machines []Machine // in the order of their ids, those that have ended too
	soldOut  map[Offer]bool
	quota    int
	lose     bool
	loseRead int // the call whose reply is lost, from 1
}

// New is a cloud without machines whose list is out of date by the lag, at a time that only rises.
func New(lag time.Duration, now func() time.Time) *Cloud {
	return &Cloud{lag: lag, now: now, soldOut: map[Offer]bool{}, quota: -1}
}

// SellOut leaves none of an offer, or has it in stock again.
func (c *Cloud) SellOut(o Offer, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.soldOut[o] = gone
}

// Quota is how many machines there may be at a time; below 0 any number.
func (c *Cloud) Quota(machines int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quota = machines
}

// LoseReply loses the next reply to CreateMachine or DeleteMachine, or none.
func (c *Cloud) LoseReply(lose bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose = lose
}

// LoseRead loses the reply to the n-th call of ListMachines or GetMachine from now; 0 loses none.
func (c *Cloud) LoseRead(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loseRead = n
}

// read counts a call that reads, and says whether its reply is lost.
func (c *Cloud) read() error {
	if c.loseRead--; c.loseRead == 0 {
		return ErrConnection
	}
	return nil
}

// CreateMachine starts a machine with everything but its id and time.
func (c *Cloud) CreateMachine(ctx context.Context, m Machine) (Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	running := 0
	for _, other := range c.machines {
		if other.ended.IsZero() {
			running++
		}
	}
	switch {
	case ctx.Err() != nil:
		return Machine{}, ctx.Err()
	case c.soldOut[m.Offer]:
		return Machine{}, &Error{"sold-out"}
	case c.quota >= 0 && running >= c.quota:
		return Machine{}, &Error{"quota"}
	}
	m.ID, m.Created, m.Tags, m.Config = fmt.Sprintf("sky://m-%08d", len(c.machines)+1), c.now(), maps.Clone(m.Tags), Config{}
	c.machines = append(c.machines, m)
	if c.lose {
		c.lose = false
		return Machine{}, ErrConnection
	}
	return m, nil
}

// GetMachine reads a machine that runs, without any lag.
func (c *Cloud) GetMachine(ctx context.Context, id string) (Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, err := c.find(ctx, id)
	if err = cmp.Or(err, c.read()); err != nil {
		return Machine{}, err
	}
	m := c.machines[i]
	m.Tags = maps.Clone(m.Tags)
	return m, nil
}

// ListMachines lists up to five of the machines that ran some time ago, from a page on; the next
// page is empty after the last.
func (c *Cloud) ListMachines(ctx context.Context, from string) (list []Machine, next string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.read(); err != nil {
		return nil, "", err
	}
	then := c.now().Add(-c.lag)
	for _, m := range c.machines {
		if m.ID < from || m.Created.After(then) || !m.ended.IsZero() && !m.ended.After(then) {
			continue
		}
		if len(list) == page {
			return list, m.ID, ctx.Err()
		}
		m.Tags = maps.Clone(m.Tags)
		list = append(list, m)
	}
	return list, "", ctx.Err()
}

// DeleteMachine ends a machine.
func (c *Cloud) DeleteMachine(ctx context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, err := c.find(ctx, id)
	if err != nil {
		return err
	}
	c.machines[i].ended = c.now()
	if c.lose {
		c.lose = false
		return ErrConnection
	}
	return nil
}

func (c *Cloud) find(ctx context.Context, id string) (int, error) {
	i := slices.IndexFunc(c.machines, func(m Machine) bool { return m.ID == id && m.ended.IsZero() })
	if i < 0 && ctx.Err() == nil {
		return 0, &Error{"not-found"}
	}
	return i, ctx.Err()
}
