package capacity

// IsQuick reports whether the answer needed no plan of the whole state.
func IsQuick(a *Answer) bool { return !a.stands }
