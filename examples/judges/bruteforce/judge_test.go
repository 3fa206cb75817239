package bruteforce_test

import "flag"

var (
	problems = flag.Int("problems", 100, "how many problems to judge")
	from     = flag.Uint64("from", 1, "the seed of the first problem; the others follow")
)
