package gang

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling"
)

// explain returns, by group, the reason why it waits. Each waiting group is tried beside the groups
// of an attempt, and its reason is what keeps it out there. So a reason depends on what is finally
// planned, and not on earlier attempts. Groups of one kind are tried once. If there are more kinds
// than drafts, the last ones are tried together. If a group fits after all, the attempt with it is
// returned.
func (a *admission) explain(at *attempt) (*attempt, []*scheduling.Reason, error) {
	type tried struct {
		at    *attempt
		group int
	}
	for {
		out, byKind, fits := slices.Clone(a.reasons), map[int]tried{}, false
		for i := range a.groups {
			if at.set[i] || out[i] != nil {
				continue
			}
			kind := a.groups[i].kind
			t, known := byKind[kind]
			if !known {
				t.group = i
				set, last := with(at.set, i), i
				if len(byKind) >= a.mostDrafts() {
					set, last = a.whole(), noGroup
				}
				var err error
				if t.at, err = a.attempt(trial{set: set, last: last}); err != nil {
					return nil, nil, err
				}
				if a.holds(t.at) && a.better(t.at, at) {
					at, fits = t.at, true
					break
				}
				byKind[kind] = t
			}
			out[i] = a.reason(i, t.group, t.at)
		}
		if !fits {
			return at, out, nil
		}
	}
}

// reason says what the group lacks in an attempt with another group of its kind. It is the reason
// of the pool that comes nearest to holding one of the unplaced pods.
func (a *admission) reason(g, tried int, at *attempt) *scheduling.Reason {
	var out scheduling.Reason
	for _, u := range at.result.Unplaced() {
		if !slices.ContainsFunc(u.Pods, func(pod *corev1.Pod) bool { i, ok := a.of[nameOf(pod)]; return ok && i == tried }) {
			continue
		}
		for _, r := range u.Reasons() {
			if out.Detail == "" || r.Pool != "" && r.Stage.Depth() > out.Stage.Depth() {
				out = r
			}
		}
	}
	name, need, placed := a.groups[g].Name, a.groups[g].need, at.placed[tried]
	if most := max(1, a.groups[g].Values); placed >= need && a.isSpread(tried, at) {
		return &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s needs %d of its pods at once on nodes with at most %d values of %s, but they have places only on nodes with %d",
			name, need, most, a.groups[g].Key, len(a.used(tried, at)))}
	}
	if placed >= need {
		return &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s needs %d of its pods at once, but they would take the place of pods that come first", name, need)}
	}
	out.Detail = fmt.Sprintf("group %s needs %d of its pods at once, but only %d of them can be placed; for the others: %s", name, need, placed, cmp.Or(out.Detail, "they are not planned"))
	out.Stage = cmp.Or(out.Stage, scheduling.StageGroup)
	return &out
}
