//go:build race

package binpack_test

// raced says that the race detector watches: it makes this package's arithmetic ten times as slow and has one goroutine to
// watch, so the suites run at a tenth; make test runs them once more without it.
const raced = true
