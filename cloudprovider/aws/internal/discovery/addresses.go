package discovery

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// settling is how long it may take until the addresses of a launched node show in a subnet's free
// count: the interfaces of pods come one by one after it has joined.
const settling = 2 * time.Minute

// Addresses counts the free addresses of subnets: EC2's count minus what was launched since and may
// not be counted there yet. EC2 allows launching a node into a subnet that then has no addresses
// left for its pods. It is safe for concurrent use.
type Addresses struct {
	mu    sync.Mutex
	free  map[string]int64
	taken map[string][]taking
}

type taking struct {
	n  int64
	at time.Time
}

func newAddresses() *Addresses {
	return &Addresses{free: map[string]int64{}, taken: map[string][]taking{}}
}

func (a *Addresses) refresh(list []Subnet) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range list {
		a.free[s.ID] = s.Free
	}
}

// Left returns how many addresses a subnet has for more nodes.
func (a *Addresses) Left(subnet string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left(subnet)
}

func (a *Addresses) left(subnet string) int64 {
	now := time.Now()
	live := slices.DeleteFunc(a.taken[subnet], func(t taking) bool { return now.Sub(t.at) >= settling })
	a.taken[subnet] = live
	left := a.free[subnet]
	for _, t := range live {
		left -= t.n
	}
	return max(left, 0)
}

// Take counts n addresses of a subnet as used since a time. A negative n returns addresses that
// were taken then and not used after all.
func (a *Addresses) Take(subnet string, n int64, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n != 0 {
		a.taken[subnet] = append(a.taken[subnet], taking{n, at})
	}
}

// Exhausted records that EC2 found no address in the subnet: for a while it counts as empty.
func (a *Addresses) Exhausted(subnet string) { a.Take(subnet, math.MaxInt32, time.Now()) }

// Best returns the subnet with the most addresses left in each zone; equal ones by id. A zone whose
// subnets all seem empty still has one, because EC2 may know better.
func (a *Addresses) Best(subnets []Subnet) map[string]Subnet {
	a.mu.Lock()
	defer a.mu.Unlock()
	ordered := slices.Clone(subnets)
	left := map[string]int64{}
	for _, s := range ordered {
		left[s.ID] = a.left(s.ID)
	}
	slices.SortFunc(ordered, func(x, y Subnet) int { return cmp.Or(cmp.Compare(left[y.ID], left[x.ID]), strings.Compare(x.ID, y.ID)) })
	best := map[string]Subnet{}
	for _, s := range ordered {
		if _, ok := best[s.Zone]; !ok {
			best[s.Zone] = s
		}
	}
	return best
}
