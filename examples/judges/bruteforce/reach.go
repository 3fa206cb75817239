package bruteforce

import "slices"

// step is one bind.
type step struct{ kind, node int }

// reach binds pods in every order to every node, at most want of each kind. It returns the best
// that can be reached, by priority, with the binds, and ends at once if that is everything.
func (x *Search) reach(bought, want []int) (best []int, path []step) {
	w := walk{x: x, st: x.Model.Start(bought...), want: want, done: make([]int, len(want)), seen: map[string]bool{}}
	w.best = slices.Clone(w.done)
	w.visit()
	return w.best, w.bestPath
}

type walk struct {
	x          *Search
	st         *State
	want, done []int
	best       []int
	path       []step
	bestPath   []step
	seen       map[string]bool
}

// visit returns true if the walk is over.
func (w *walk) visit() bool {
	complete := slices.Equal(w.done, w.want)
	if complete || w.x.compare(w.done, w.best) > 0 {
		w.best, w.bestPath = slices.Clone(w.done), slices.Clone(w.path)
	}
	if complete {
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
			w.path = append(w.path, step{kind, n})
			over := w.visit()
			w.path = w.path[:len(w.path)-1]
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
