package requirements

import "slices"

// words is a set of label values that are not integers: those in list or, if but is set, all except
// those in list. The list is sorted and has no duplicates.
type words struct {
	but  bool
	list []string
}

func (w words) contains(s string) bool {
	_, found := slices.BinarySearch(w.list, s)
	return found != w.but
}

func (w words) empty() bool { return !w.but && len(w.list) == 0 }

func (w words) all() bool { return w.but && len(w.list) == 0 }

func (w words) complement() words { return words{!w.but, w.list} }

func (w words) equal(v words) bool { return w.but == v.but && slices.Equal(w.list, v.list) }

func (w words) intersect(v words) words {
	switch {
	case w.but && v.but:
		return words{true, mergeLists(w.list, v.list)}
	case w.but:
		return words{false, filterList(v.list, w)}
	default:
		return words{false, filterList(w.list, v)}
	}
}

func (w words) union(v words) words {
	return w.complement().intersect(v.complement()).complement()
}

// overlaps reports whether the intersection is not empty, without building it.
func (w words) overlaps(v words) bool {
	if w.but && v.but {
		return true // a finite list never excludes all words
	}
	if w.but {
		w, v = v, w
	}
	return slices.ContainsFunc(w.list, v.contains)
}

func (w words) subset(v words) bool { return !w.overlaps(v.complement()) }

func mergeLists(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	out := make([]string, 0, len(a)+len(b))
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] < b[j]:
			out = append(out, a[i])
			i++
		case a[i] > b[j]:
			out = append(out, b[j])
			j++
		default:
			out = append(out, a[i])
			i, j = i+1, j+1
		}
	}
	return append(append(out, a[i:]...), b[j:]...)
}

func filterList(list []string, keep words) []string {
	var out []string
	for _, s := range list {
		if keep.contains(s) {
			out = append(out, s)
		}
	}
	return out
}
