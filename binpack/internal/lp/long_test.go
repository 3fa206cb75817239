package lp_test

import (
	"os"
	"strconv"
)

// rounds returns the full count, or a part of it, if property suites run at length (make test-long).
func rounds(short, full int) int {
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		return max(short, full/parts)
	}
	return short
}
