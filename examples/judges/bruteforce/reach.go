package bruteforce

import "slices"

// reach binds pods in every order to every node, at most want of each kind. It returns the best
// that can be reached, by priority, and ends at once if that is everything.
func (x *Search) reach(bought, want []int) []int {
	w := walk{x: x, st: x.Model.Start(bought...), want: want, done: make([]int, len(want)), seen: map[string]bool{}}
	w.best = slices.Clone(w.done)
	w.visit()
	return w.best
}

type walk struct {
	x          *Search
	st         *State
	want, done []int
	best       []int
	seen       map[string]bool
}

// visit returns true if the walk is over.
func (w *walk) visit() bool {
	if w.x.compare(w.done, w.best) > 0 {
		w.best = slices.Clone(w.done)
	}
	if slices.Equal(w.done, w.want) {
		w.best = slices.Clone(w.done)
		return true
	}
	key := w.name()
	if w.seen[key] {
		return false
	}
	w.seen[key] = true
	for i, kind := range w.x.kinds {
		if w.done[i] == w.want[i] {
			continue
		}
		for n := range w.st.sites {
			if n > 0 && w.st.sites[n] == w.st.sites[n-1] && slices.Equal(w.st.pods[n], w.st.pods[n-1]) {
				continue // equal to the node before
			}
			if w.x.Left--; w.x.Left < 0 {
				return true
			}
			if w.st.Refuses(kind, n) != "" {
				continue
			}
			w.st.pods[n][kind]++
			w.done[i]++
			over := w.visit()
			w.st.pods[n][kind]--
			w.done[i]--
			if over {
				return true
			}
		}
	}
	return false
}

// name identifies the state. Nodes of one offer may be exchanged.
func (w *walk) name() string {
	rows := make([][]byte, len(w.st.sites))
	for n := range w.st.sites {
		for _, kind := range w.x.kinds {
			rows[n] = append(rows[n], byte(w.st.pods[n][kind]))
		}
	}
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && w.st.sites[to] == w.st.sites[from] {
			to++
		}
		slices.SortFunc(rows[from:to], slices.Compare)
		from = to
	}
	return string(slices.Concat(rows...))
}
