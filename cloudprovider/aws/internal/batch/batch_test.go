package batch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/batch"
)

func double(calls *atomic.Int64) func(context.Context, string, []int) []batch.Result[int] {
	return func(ctx context.Context, _ string, in []int) []batch.Result[int] {
		calls.Add(1)
		out := make([]batch.Result[int], len(in))
		for i, n := range in {
			out[i] = batch.Result[int]{Value: 2 * n, Err: ctx.Err()}
			if n < 0 {
				out[i].Err = errors.New("negative")
			}
		}
		return out
	}
}

func TestManyAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c := batch.NewCaller(batch.Window{}, double(&calls))
		var group sync.WaitGroup
		for i := range 400 {
			group.Go(func() {
				got, err := c.Do(t.Context(), "k", i)
				assert.NoError(t, err)
				assert.Equal(t, 2*i, got)
			})
		}
		group.Wait()
		assert.LessOrEqual(t, calls.Load(), int64(4))
	})
}

func TestOneFailureIsOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c := batch.NewCaller(batch.Window{}, double(&calls))
		var group sync.WaitGroup
		for _, n := range []int{1, -1, 2} {
			group.Go(func() {
				got, err := c.Do(t.Context(), "k", n)
				assert.Equal(t, n < 0, err != nil)
				assert.Equal(t, 2*n, got)
			})
		}
		group.Wait()
	})
}

func TestMostAndKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sizes := map[string][]int{}
		c := batch.NewCaller(batch.Window{Most: 10}, func(_ context.Context, key string, in []int) []batch.Result[int] {
			mu.Lock()
			defer mu.Unlock()
			sizes[key] = append(sizes[key], len(in))
			return make([]batch.Result[int], len(in))
		})
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() { _, _ = c.Do(t.Context(), fmt.Sprint(i%2), i) })
		}
		group.Wait()
		assert.Len(t, sizes, 2)
		for _, list := range sizes {
			total := 0
			for _, n := range list {
				total += n
				assert.LessOrEqual(t, n, 10)
			}
			assert.Equal(t, 20, total)
		}
	})
}

// The first may give up: the others are served all the same.
func TestFirstGivesUpWhileCollecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c := batch.NewCaller(batch.Window{Idle: 50 * time.Millisecond}, double(&calls))
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			_, err := c.Do(ctx, "k", 1)
			assert.ErrorIs(t, err, context.Canceled)
		})
		time.Sleep(10 * time.Millisecond)
		for i := range 5 {
			group.Go(func() {
				got, err := c.Do(t.Context(), "k", i)
				assert.NoError(t, err)
				assert.Equal(t, 2*i, got)
			})
		}
		time.Sleep(5 * time.Millisecond)
		cancel()
		group.Wait()
		assert.Equal(t, int64(1), calls.Load())
		// The key is free again.
		got, err := c.Do(t.Context(), "k", 7)
		require.NoError(t, err)
		assert.Equal(t, 14, got)
	})
}

func TestTheOnlyOneGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c := batch.NewCaller(batch.Window{Idle: time.Hour}, double(&calls))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := c.Do(ctx, "k", 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, calls.Load())
	})
}

// One that gives up in the middle of the call leaves the others to their answer; if all do, the call ends.
func TestGivingUpInMidCall(t *testing.T) {
	for _, all := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			var ended error
			c := batch.NewCaller(batch.Window{}, func(ctx context.Context, _ string, in []int) []batch.Result[int] {
				calls++
				cancel()
				ended = api.Wait(ctx, time.Second)
				out := make([]batch.Result[int], len(in))
				for i := range in {
					out[i].Value = in[i]
				}
				return out
			})
			var group sync.WaitGroup
			for n := range 3 {
				group.Go(func() {
					own := t.Context()
					if n == 0 || all {
						own = ctx
					}
					got, err := c.Do(own, "k", n)
					if n == 0 || all {
						assert.ErrorIs(t, err, context.Canceled)
					} else {
						assert.NoError(t, err)
						assert.Equal(t, n, got)
					}
				})
			}
			group.Wait()
			synctest.Wait()
			assert.Equal(t, 1, calls)
			assert.Equal(t, all, ended != nil)
		})
	}
}

func ExampleCaller() {
	c := batch.NewCaller(batch.Window{Idle: -1}, func(_ context.Context, _ string, in []string) []batch.Result[int] {
		out := make([]batch.Result[int], len(in))
		for i, text := range in {
			out[i].Value = len(text)
		}
		return out
	})
	fmt.Println(c.Do(context.Background(), "key", "five!"))
	// Output: 5 <nil>
}
