package plan_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// seat is a machine of four CPUs that a brute force puts pods on.
type seat struct {
	free   int64
	labels map[string]string // nil for one that is not bought yet
}

// needs is what a group needs of a brute force: so many pods of so many CPUs, in so many values of a key, where some are taken already.
type needs struct {
	count  int
	cpu    int64
	key    string
	values int
	held   []string
}

// brute finds out by trying everything whether groups have places together. It knows nothing of how plans are made.
type brute struct {
	known map[string]bool // what failed
}

// fits reports whether groups have places on seats, of which so many may still be bought in zone a.
func (b *brute) fits(groups []needs, seats []seat, cheap int) bool {
	if len(groups) == 0 {
		return true
	}
	var texts []string
	for _, s := range seats {
		texts = append(texts, fmt.Sprint(s.free, s.labels))
	}
	slices.Sort(texts)
	state := fmt.Sprint(len(groups), cheap, texts)
	if b.known[state] {
		return false
	}
	if b.put(groups, groups[0].count, 0, groups[0].held, seats, cheap) {
		return true
	}
	b.known[state] = true
	return false
}

// put places so many more pods of the first group on the seats from a position on, and then the other groups.
func (b *brute) put(groups []needs, count, at int, used []string, seats []seat, cheap int) bool {
	g := &groups[0]
	if count == 0 {
		return b.fits(groups[1:], seats, cheap)
	}
	if at == len(seats) {
		return false
	}
	if b.put(groups, count, at+1, used, seats, cheap) {
		return true
	}
	choices := []map[string]string{seats[at].labels}
	if seats[at].labels == nil {
		if at > 0 && seats[at-1].labels == nil { // it is like the one before, which is not bought
			return false
		}
		name := fmt.Sprint("new-", at)
		choices = []map[string]string{{corev1.LabelTopologyZone: "b", corev1.LabelHostname: name}}
		if cheap != 0 {
			choices = append(choices, map[string]string{corev1.LabelTopologyZone: "a", corev1.LabelHostname: name})
		}
	}
	for _, labels := range choices {
		now, left := used, cheap
		if g.key != "" {
			v, ok := labels[g.key]
			if !ok {
				continue
			}
			if !slices.Contains(used, v) {
				if now = append(slices.Clip(used), v); len(now) > max(g.values, len(g.held)) {
					continue
				}
			}
		}
		if seats[at].labels == nil && labels[corev1.LabelTopologyZone] == "a" {
			left--
		}
		for n := 1; n <= count && int64(n)*g.cpu <= seats[at].free; n++ {
			next := slices.Clone(seats)
			next[at] = seat{seats[at].free - int64(n)*g.cpu, labels}
			if b.put(groups, count-n, at+1, now, next, left) {
				return true
			}
		}
	}
	return false
}

// bestOf is the best that groups can come to, as whole groups and their needed pods by priority, the highest first: of all sets of groups that have
// places together the best one.
func bestOf(s scheduling.Snapshot, groups []gang.Group) (best []int) {
	pool := &s.Pools[0]
	var seats []seat
	for _, n := range s.Nodes {
		free := n.Status.Allocatable.Cpu().Value()
		for _, p := range s.Pods {
			if p.Spec.NodeName == n.Name {
				free -= p.Spec.Containers[0].Resources.Requests.Cpu().Value()
			}
		}
		seats = append(seats, seat{free, n.Labels})
	}
	for range pool.Limits.Cpu().Value() / 4 {
		seats = append(seats, seat{free: 4})
	}
	cheap := -1
	if n := pool.Types[0].Offerings[0].ReservationCount; n > 0 {
		cheap = n
	}
	all, priorities := make([]needs, len(groups)), make([]int32, len(groups))
	for i, g := range groups {
		x := &all[i]
		x.key, x.values, x.count = g.Key, max(1, g.Values), g.Minimum
		for _, p := range s.Pods {
			if !g.Member(p) {
				continue
			}
			priorities[i], x.cpu = *p.Spec.Priority, p.Spec.Containers[0].Resources.Requests.Cpu().Value()
			if g.Minimum == 0 {
				x.count++
			}
			if p.Spec.NodeName == "" {
				continue
			}
			x.count--
			at := slices.IndexFunc(s.Nodes, func(n *corev1.Node) bool { return n.Name == p.Spec.NodeName })
			if v, ok := s.Nodes[at].Labels[g.Key]; ok && !slices.Contains(x.held, v) {
				x.held = append(x.held, v)
			}
		}
	}
	for set := range 1 << len(groups) {
		value, chosen := make([]int, 6), []needs(nil)
		for i := range all {
			if set>>i&1 == 1 {
				value[4-2*priorities[i]]++
				value[5-2*priorities[i]] += all[i].count
				chosen = append(chosen, all[i])
			}
		}
		if slices.ContainsFunc(chosen, func(x needs) bool { return x.count <= 0 }) || slices.Compare(value, best) <= 0 {
			continue
		}
		slices.SortStableFunc(chosen, func(x, y needs) int { return int(y.cpu - x.cpu) })
		if (&brute{map[string]bool{}}).fits(chosen, seats, cheap) {
			best = value
		}
	}
	return best
}

// priorityOf is that of the pods of a group.
func priorityOf(s scheduling.Snapshot, g *gang.Group) int32 {
	return *s.Pods[slices.IndexFunc(s.Pods, g.Member)].Spec.Priority
}

// On small random clusters every group that a brute force places is placed, or another one of its priority that is as good: no set of groups that
// has places is better. Spare pods of a priority come before groups of a lower one, so lower priorities are not compared where there are any.
func TestGangsAgainstBruteForce(t *testing.T) {
	number := 100
	if testing.Short() {
		number = 40
	}
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		number = max(number, 1_000/parts)
	}
	from, n := seedsOf("JOINERY_GANGS_BRUTE", number)
	whole, incomplete := 0, 0
	var worse []string
	for seed := from; seed < from+uint64(n); seed++ {
		s, groups := drawnGangs(seed)
		want := bestOf(s, groups)
		p, err := plan.Make(t.Context(), s, &plan.Options{Groups: groups})
		require.NoError(t, err)
		if len(p.Notes()) > 0 {
			incomplete++
		}
		value, got := worth(t, seed, s, groups, p), []int(nil)
		for priority := range 3 {
			got = append(got, value[3*priority], value[3*priority+1])
			whole += value[3*priority]
		}
		for priority := range 3 { // spare pods of this priority come before groups of lower ones
			if slices.ContainsFunc(groups, func(g gang.Group) bool { return g.Minimum > 0 && priorityOf(s, &g) == int32(2-priority) }) {
				got = got[:2*priority+2]
				want = want[:min(len(want), 2*priority+2)]
				break
			}
		}
		if slices.Compare(got, want) < 0 {
			worse = append(worse, fmt.Sprintf("seed %d: %v instead of %v, %v", seed, got, want, p.Notes()))
		}
	}
	fmt.Printf("%d clusters, %d groups whole, %d searches not complete, %d worse than the brute force\n", n, whole, incomplete, len(worse))
	assert.Empty(t, worse, strings.Join(worse, "\n"))
	assert.Greater(t, whole, n/2)
}
