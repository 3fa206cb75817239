//go:build !race

package binpack_test

const raced = false
