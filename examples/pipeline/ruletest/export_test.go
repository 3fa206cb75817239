package ruletest

// Glob is the matching of patterns, for its fuzz target.
func Glob(pattern, text string) bool { return glob(pattern, text) }
