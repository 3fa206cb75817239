package relax

import "sync/atomic"

// Watch ends work when the caller's context has ended. It checks that after every watchEvery steps,
// but not before its grace is used up. So short work is always completed.
type Watch struct {
	// Work counts the steps.
	Work int
	// Over means that the work must end.
	Over bool

	stop *atomic.Bool
	next int
}

// NewWatch returns a watch that ends work after grace steps if stop is set. stop may be nil.
func NewWatch(stop *atomic.Bool, grace int) *Watch { return &Watch{stop: stop, next: grace} }

// watchEvery is how many steps pass between two looks. A step takes 20 to 100 ns, as long as
// knapsackSteps of a [Knapsack].
const watchEvery, knapsackSteps = 10_000, 8

// Ended counts n steps, and reports whether the work must end.
func (w *Watch) Ended(n int) bool {
	if w.Work += n; w.Work >= w.next && w.stop != nil {
		w.next = w.Work + watchEvery
		w.Over = w.Over || w.stop.Load()
	}
	return w.Over
}
