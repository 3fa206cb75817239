package regret_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
)

// renamed returns the history with other names of nodes: each machine gets the first name that no
// other machine of that moment has. It also returns how many names are used again. With identified,
// machines have UIDs instead of creation times.
func renamed(t *testing.T, x drawn, identified bool) (*history.History, int) {
	t.Helper()
	names, holders, copies, again := map[string]string{}, map[string]string{}, map[*corev1.Node]*corev1.Node{}, 0
	seen := map[string]bool{}
	var list []history.Observation
	for _, o := range x.history.Observations {
		present := map[string]bool{}
		for _, n := range o.Nodes {
			present[n.Name] = true
		}
		for name, holder := range holders {
			if !present[holder] {
				delete(holders, name)
			}
		}
		out := history.Observation{At: o.At}
		for _, n := range o.Nodes {
			if names[n.Name] == "" {
				i := 0
				for holders[fmt.Sprintf("m-%02d", i)] != "" {
					i++
				}
				name := fmt.Sprintf("m-%02d", i)
				if seen[name] {
					again++
				}
				names[n.Name], holders[name], seen[name] = name, n.Name, true
			}
			if copies[n] == nil {
				c := n.DeepCopy()
				c.Name = names[n.Name]
				c.Labels[corev1.LabelHostname] = c.Name
				if identified {
					c.UID, c.CreationTimestamp = types.UID(n.Name), metav1.Time{}
				}
				copies[n] = c
			}
			out.Nodes = append(out.Nodes, copies[n])
		}
		for _, p := range o.Pods {
			out.Pods = append(out.Pods, on(p, cmp.Or(names[p.Spec.NodeName], p.Spec.NodeName)))
		}
		for _, name := range o.TakenBack {
			if names[name] != "" { // the others came and went between two observations
				out.TakenBack = append(out.TakenBack, names[name])
			}
		}
		list = append(list, out)
	}
	h, err := history.New(pools(t), list, x.history.Until)
	require.NoError(t, err)
	return h, again
}

// A decision is one machine, whatever others had its name before and after: a history in which
// names are used again has the report of one in which each machine has a name of its own.
func TestNamesThatAreUsedAgain(t *testing.T) {
	reused := 0
	for seed := range draws(t, 30, 150) {
		x := draw(t, uint64(seed), 14, 7)
		h, again := renamed(t, x, seed%2 == 1)
		reused += again
		sale, err := h.Sale(market(t, x.sizes))
		require.NoError(t, err)
		o := &regret.Options{Startup: -1, Verify: -1, Deprovision: &giveback.Options{Objective: policy.AnySaving()}}
		want, err := regret.Audit(t.Context(), x.history, x.sale, o)
		require.NoError(t, err)
		got, err := regret.Audit(t.Context(), h, sale, o)
		require.NoError(t, err)
		assert.Equal(t, want.Hours, got.Hours, "seed %d", seed)
		assert.Equal(t, []int{want.Launches, want.Evictions, want.MostWaiting}, []int{got.Launches, got.Evictions, got.MostWaiting}, "seed %d", seed)
		assert.Equal(t, rows(want), rows(got), "seed %d", seed)
		assert.Equal(t, got.Bill, parts(got), "seed %d", seed)
	}
	assert.Greater(t, reused, draws(t, 30, 150)/2)
}

// rows are the decisions without names, and without the bounds, whose last digit depends on the
// order of names.
func rows(r *regret.Report) []string {
	var out []string
	for _, d := range r.Decisions {
		out = append(out, fmt.Sprintf("%s %s %s to %s: paid %d, ours %d, idle %d, used %.9f", d.InstanceType, d.Zone, d.From.Format(time.TimeOnly), d.To.Format(time.TimeOnly), d.Paid, d.Policy, d.Idle, d.Used))
	}
	slices.Sort(out)
	return out
}

// What the cloud takes back after a machine of the policy has gone from the history is another one
// of that name. A pod of a name that another pod had is one that comes.
func TestAnotherMachineIsTakenBack(t *testing.T) {
	sizes := []size{{4, 16, 0.2}}
	at := func(minutes int) time.Time { return start().Add(time.Duration(minutes) * time.Minute) }
	first, other := node("n", 0, sizes[0], "zone-a", at(0)), node("n", 0, sizes[0], "zone-a", at(5))
	small, large := pod("web", "web", 1, 4), pod("web", "web", 4, 4)
	small.UID, large.UID = "1", "2"
	beside := pod("beside", "beside", 2, 4)
	h, err := history.New(pools(t), []history.Observation{
		{At: at(0), Nodes: []*corev1.Node{first}, Pods: []*corev1.Pod{on(small, "n"), on(beside, "n")}},
		{At: at(5), Nodes: []*corev1.Node{other}, Pods: []*corev1.Pod{on(small, "n"), on(beside, "n")}},
		{At: at(10), Pods: []*corev1.Pod{on(large, ""), on(beside, "")}, TakenBack: []string{"n"}},
	}, at(15))
	require.NoError(t, err)
	sale, err := h.Sale(market(t, sizes))
	require.NoError(t, err)
	r, err := regret.Audit(t.Context(), h, sale, &regret.Options{Startup: -1})
	require.NoError(t, err)
	assert.Equal(t, 1, r.Launches, "the second pod of the name has no room on the machine, which the policy keeps")
	last := r.Ours.Observations[len(r.Ours.Observations)-1]
	require.Len(t, last.Nodes, 2)
	assert.Empty(t, last.TakenBack)
	assert.Equal(t, r.Bill, parts(r))
}
