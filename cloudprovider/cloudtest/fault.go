package cloudtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Op names a method of cloudprovider.Provider.
type Op string

// The methods.
const (
	OpInstanceTypes Op = "InstanceTypes"
	OpCreate        Op = "Create"
	OpGet           Op = "Get"
	OpList          Op = "List"
	OpDelete        Op = "Delete"
	OpDrifted       Op = "Drifted"
)

// Fault is something that goes wrong in a call. It is made by [Fail], [Throttle], [LoseReply],
// [Stale], [Slow] or [Cancel]. The zero value is a call without a fault.
type Fault struct {
	kind  faultKind
	err   error
	delay time.Duration
}

type faultKind int

const (
	noFault faultKind = iota
	failing
	lostReply
	stale
	slow
	cancelled
)

// ErrLostReply is the error of a call whose reply was lost: it had its effect, but the caller does
// not know.
var ErrLostReply = errors.New("cloudtest: connection lost before the reply came")

// Fail makes the call fail with err without making it.
func Fail(err error) Fault { return Fault{kind: failing, err: err} }

// Throttle makes the call fail with cloudprovider.ErrThrottled without making it.
func Throttle() Fault { return Fail(&cloudprovider.Error{Code: cloudprovider.ErrThrottled}) }

// LoseReply makes the call and then fails with [ErrLostReply].
func LoseReply() Fault { return Fault{kind: lostReply} }

// Stale makes List and InstanceTypes repeat their last fresh answer. If there is none yet, the call
// is made without a fault. So are all other calls.
func Stale() Fault { return Fault{kind: stale} }

// Slow makes the call after a delay, or fails with the context's error if that comes first.
func Slow(d time.Duration) Fault { return Fault{kind: slow, delay: d} }

// Cancel makes the call with a context that is already cancelled.
func Cancel() Fault { return Fault{kind: cancelled} }

// Plan returns the fault of the n-th call of a method, with n from 1. It must depend only on its
// arguments or be safe for concurrent use.
type Plan func(op Op, n int) Fault

// Nth returns a plan with a fault in the n-th call of a method.
func Nth(op Op, n int, fault Fault) Plan {
	return func(o Op, i int) Fault {
		if o == op && i == n {
			return fault
		}
		return Fault{}
	}
}

// Every returns a plan with a fault in every n-th call of a method: n, 2n, 3n... An n of less than
// 1 counts as 1.
func Every(op Op, n int, fault Fault) Plan {
	return func(o Op, i int) Fault {
		if o == op && i%max(n, 1) == 0 {
			return fault
		}
		return Fault{}
	}
}

// Sometimes returns a plan with a fault in each call of a method with a probability from 0 to 1.
// Which calls these are depends only on the seed, the method and n.
func Sometimes(op Op, probability float64, seed uint64, fault Fault) Plan {
	return func(o Op, i int) Fault {
		if o == op && rand.New(rand.NewPCG(seed, uint64(i))).Float64() < probability {
			return fault
		}
		return Fault{}
	}
}

// Inject puts faults between a caller and its provider. Of several plans, the first that has a
// fault for a call decides. The result has only the methods of Provider, so that no call avoids the
// faults: the provider's optional methods cannot be reached. It may be used concurrently.
func Inject(p cloudprovider.Provider, plans ...Plan) cloudprovider.Provider {
	return &faulty{inner: p, plans: slices.Clone(plans), calls: map[Op]int{}}
}

type faulty struct {
	inner cloudprovider.Provider
	plans []Plan

	mu    sync.Mutex
	calls map[Op]int
	list  []cloudprovider.Instance
	types []instancetypes.InstanceType
}

func (f *faulty) next(op Op) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	for _, plan := range f.plans {
		if fault := plan(op, f.calls[op]); fault.kind != noFault {
			return fault
		}
	}
	return Fault{}
}

// call makes one call with a fault.
func call[T any](ctx context.Context, op Op, fault Fault, do func(context.Context) (T, error)) (T, error) {
	var none T
	switch fault.kind {
	case failing:
		return none, fault.err
	case lostReply:
		if _, err := do(ctx); err != nil {
			return none, err
		}
		return none, fmt.Errorf("%s: %w", op, ErrLostReply)
	case slow:
		timer := time.NewTimer(fault.delay)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return none, fmt.Errorf("cloudtest: %s was slow: %w", op, ctx.Err())
		case <-timer.C:
		}
	case cancelled:
		ctx, stop := context.WithCancel(ctx)
		stop()
		return do(ctx)
	case noFault, stale:
	}
	return do(ctx)
}

func (f *faulty) InstanceTypes(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error) {
	fault := f.next(OpInstanceTypes)
	f.mu.Lock()
	old := slices.Clone(f.types)
	f.mu.Unlock()
	if fault.kind == stale && old != nil {
		return old, nil
	}
	types, err := call(ctx, OpInstanceTypes, fault, func(ctx context.Context) ([]instancetypes.InstanceType, error) {
		return f.inner.InstanceTypes(ctx, pool)
	})
	if err == nil {
		f.mu.Lock()
		f.types = slices.Clone(types)
		f.mu.Unlock()
	}
	return types, err
}

func (f *faulty) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	return call(ctx, OpCreate, f.next(OpCreate), func(ctx context.Context) (cloudprovider.Launch, error) { return f.inner.Create(ctx, claim) })
}

func (f *faulty) Get(ctx context.Context, id string) (cloudprovider.Instance, error) {
	return call(ctx, OpGet, f.next(OpGet), func(ctx context.Context) (cloudprovider.Instance, error) { return f.inner.Get(ctx, id) })
}

func (f *faulty) List(ctx context.Context) ([]cloudprovider.Instance, error) {
	fault := f.next(OpList)
	f.mu.Lock()
	old := cloneInstances(f.list)
	f.mu.Unlock()
	if fault.kind == stale && old != nil {
		return old, nil
	}
	list, err := call(ctx, OpList, fault, f.inner.List)
	if err == nil {
		f.mu.Lock()
		f.list = cloneInstances(list)
		f.mu.Unlock()
	}
	return list, err
}

func (f *faulty) Delete(ctx context.Context, id string) error {
	_, err := call(ctx, OpDelete, f.next(OpDelete), func(ctx context.Context) (struct{}, error) { return struct{}{}, f.inner.Delete(ctx, id) })
	return err
}

func (f *faulty) Drifted(ctx context.Context, id string) (cloudprovider.Drift, error) {
	return call(ctx, OpDrifted, f.next(OpDrifted), func(ctx context.Context) (cloudprovider.Drift, error) { return f.inner.Drifted(ctx, id) })
}

func cloneInstances(list []cloudprovider.Instance) []cloudprovider.Instance {
	out := slices.Clone(list)
	for i := range out {
		out[i] = out[i].Clone()
	}
	return out
}
