//go:build race

package binpack_test

// raced means that the race detector runs. It makes this package ten times as slow and has one goroutine to watch, so the
// suites run at a tenth; make test runs them again without it.
const raced = true
