package binpack

import "sync/atomic"

// watch tells work that goes on when the caller's context has ended. It looks every watchEvery steps, and not before graceSteps, so that
// what is done soon is done: a plan of a thousand items is always whole.
type watch struct {
	stop *atomic.Bool
	work int
	next int
	over bool
}

func newWatch(stop *atomic.Bool) watch { return watch{stop: stop, next: graceSteps} }

// ended counts n steps, and reports whether the work must end.
func (w *watch) ended(n int) bool {
	if w.work += n; w.work >= w.next && w.stop != nil {
		w.next = w.work + watchEvery
		w.over = w.over || w.stop.Load()
	}
	return w.over
}
