package lp_test

import "os"

// rounds is the full count where property suites run at length (make test-long).
func rounds(short, full int) int {
	if os.Getenv("JOINERY_LONG") == "1" {
		return full
	}
	return short
}
