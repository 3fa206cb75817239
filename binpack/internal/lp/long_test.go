package lp_test

import "os"

// rounds returns the full count if property suites run at full length (make test-long).
func rounds(short, full int) int {
	if os.Getenv("JOINERY_LONG") == "1" {
		return full
	}
	return short
}
