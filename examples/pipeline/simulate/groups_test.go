package simulate_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// domains are the values of the group's label on the nodes of its pods.
func domains(s scheduling.Snapshot, g *gang.Group) map[string]bool {
	out := map[string]bool{}
	for _, pod := range s.Pods {
		at := slices.IndexFunc(s.Nodes, func(n *corev1.Node) bool { return n.Name == pod.Spec.NodeName })
		if g.Member(pod) && at >= 0 {
			out[s.Nodes[at].Labels[g.Key]] = true
		}
	}
	return out
}

// checkGroups demands that a command takes no group below its minimum unless it says so and moves all of it, and that no group is split over
// domains.
func checkGroups(t *testing.T, before, after scheduling.Snapshot, c *giveback.Command, groups []gang.Group) {
	t.Helper()
	goes := c.Method == eligibility.Interruption || c.Method == eligibility.Expiration
	for i := range groups {
		g := &groups[i]
		runs, moves := 0, 0
		for _, pod := range before.Pods {
			if g.Member(pod) && pod.Spec.NodeName != "" {
				runs++
			}
		}
		for _, pod := range slices.Concat(c.Pods(), c.Stranded) {
			if g.Member(pod) {
				moves++
			}
		}
		least := runs
		if g.Minimum > 0 && !g.Whole {
			least = min(runs, g.Minimum)
		}
		below := moves > 0 && runs-moves < least
		assert.Equal(t, below, slices.Contains(c.Groups, g.Name), "%s: %d of %d pods move, and the minimum is %d", g.Name, moves, runs, g.Minimum)
		if below {
			assert.True(t, moves == runs || goes, "%s: %d of %d pods move, and the minimum is %d", g.Name, moves, runs, g.Minimum)
			assert.True(t, len(c.Waves) == 0 || goes || slices.ContainsFunc(c.Waves, func(wave []string) bool {
				return !slices.ContainsFunc(before.Pods, func(p *corev1.Pod) bool { return g.Member(p) && !slices.Contains(wave, p.Spec.NodeName) })
			}), "%s moves in several waves", g.Name)
		}
		if g.Key != "" {
			assert.LessOrEqual(t, len(domains(after, g)), max(1, len(domains(before, g))), "%s is split", g.Name)
		}
	}
}

// checkReserved demands that pods that are pending or on leaving nodes have places only where their group is whole with them. It returns how many have.
func checkReserved(t *testing.T, sim *simulate.Simulator, snapshot scheduling.Snapshot, groups []gang.Group) (all int) {
	t.Helper()
	leaving := pipeline.Leaving(snapshot)
	for i := range groups {
		g, runs, reserved := &groups[i], 0, 0
		for _, pod := range snapshot.Pods {
			if g.Member(pod) && pod.Spec.NodeName != "" && !leaving[pod.Spec.NodeName] {
				runs++
			}
		}
		for _, p := range sim.Reserved() {
			if g.Member(p.Pod) {
				reserved++
			}
		}
		all += reserved
		assert.True(t, reserved == 0 || runs+reserved >= g.Minimum, "%s: %d pods have places, and %d run", g.Name, reserved, runs)
	}
	return all
}

// Where nodes leave, the pods of a job there have places only if the job is whole with them.
func TestReservedPlacesOfGroups(t *testing.T) {
	reserved, without, draws := 0, 0, 60
	if testing.Short() {
		draws = 20
	}
	for draw := range uint64(draws) {
		r := rand.New(rand.NewPCG(draw, 0x6c656176))
		c, err := fragment.Generate(fragment.Options{Nodes: 6 + r.IntN(10), Seed: r.Uint64(), Gangs: 1 + r.IntN(5), PodsPerNode: 4 + r.IntN(9)})
		require.NoError(t, err)
		for _, n := range c.Snapshot.Nodes {
			if r.IntN(3) == 0 {
				n.DeletionTimestamp = &metav1.Time{Time: fragment.Now()}
			}
		}
		groups := pipeline.Groups(c.Manifests, c.Snapshot.Pods)
		sim, _, err := simulate.NewFor(c.Snapshot, &plan.Options{Groups: groups})
		require.NoError(t, err)
		n := checkReserved(t, sim, c.Snapshot, groups)
		if reserved += n; n == 0 {
			without++
		}
	}
	assert.Positive(t, reserved)
	assert.Positive(t, without)
}

// On random clusters with jobs that run only together, whatever the method and the budgets, no command takes a job below its minimum unless
// it moves all of it.
func TestGroupsMoveWholeOrNotAtAll(t *testing.T) {
	draws, sizes := 60, 25
	if testing.Short() {
		draws, sizes = 8, 8
	}
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		draws = max(draws, 300/parts)
	}
	whole, held, inPart := map[eligibility.Method]int{}, 0, 0
	for draw := range uint64(draws) {
		r := rand.New(rand.NewPCG(draw, 0x67616e67))
		pool := fragment.Pool
		switch r.IntN(5) {
		case 0:
			pool = strings.Replace(pool, `{nodes: "100%"}`, `{nodes: "1"}`, 1)
		case 4:
			pool = strings.Replace(pool, `{nodes: "100%"}`, `{nodes: "2"}`, 1)
		case 1:
			pool = strings.Replace(pool, "expireAfter: Never", "expireAfter: 48h", 1)
		}
		c, err := fragment.Generate(fragment.Options{Nodes: 8 + r.IntN(sizes), Seed: r.Uint64(), Constrained: r.IntN(2) == 0, Gangs: 1 + r.IntN(5), Pool: pool, PodsPerNode: 4 + r.IntN(9)})
		require.NoError(t, err)
		expires := draw%8 == 3 && pool != fragment.Pool
		if !expires { // the nodes are young
			for _, n := range c.Snapshot.Nodes {
				n.CreationTimestamp.Time = n.CreationTimestamp.Add(24 * time.Hour)
			}
		}
		for _, pod := range c.Snapshot.Pods {
			if r.IntN(40) == 0 {
				pod.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
			}
			if draw%4 == 2 && strings.HasPrefix(pod.Name, "train-") && r.IntN(8) == 0 { // it was evicted
				pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
			}
		}
		groups := pipeline.Groups(c.Manifests, c.Snapshot.Pods)
		sim, nominated, err := simulate.NewFor(c.Snapshot, &plan.Options{Groups: groups})
		require.NoError(t, err)
		checkReserved(t, sim, c.Snapshot, groups)
		cluster := simulate.Cluster(c.Manifests, c.Snapshot, nominated, fragment.Now())
		for i := range cluster.Nodes {
			if n := &cluster.Nodes[i]; r.IntN(30) == 0 {
				cluster.Interruptions = append(cluster.Interruptions, deprovision.Interruption{Node: n.Name()})
			} else if draw%3 == 1 && r.IntN(3) > 0 {
				n.Drifted = []string{"its image is another"}
			}
		}
		plan, err := giveback.Make(t.Context(), cluster, sim, nil)
		require.NoError(t, err)
		s := c.Snapshot
		for i := range plan.Commands {
			cmd := &plan.Commands[i]
			after, err := simulate.Apply(s, cmd, fragment.Now())
			require.NoError(t, err)
			checkGroups(t, s, after, cmd, groups)
			whole[cmd.Method] += len(cmd.Groups)
			if len(cmd.Groups) == 0 && slices.ContainsFunc(cmd.Pods(), func(p *corev1.Pod) bool { return strings.HasPrefix(p.Name, "train-") }) {
				inPart++
			}
			s = after
		}
		for _, v := range plan.Verdicts {
			if v.Outcome != giveback.Chosen && strings.Contains(v.Detail, "default/train-") {
				held++
			}
		}
		require.False(t, t.Failed(), "draw %d", draw)
	}
	t.Logf("groups fell below their minimum: %v; %d commands moved spare pods, %d nodes stayed for a group", whole, inPart, held)
	assert.Positive(t, whole[eligibility.Consolidation])
	assert.Positive(t, whole[eligibility.Interruption])
	assert.True(t, whole[eligibility.Drift] > 0 || testing.Short())
	assert.True(t, inPart > 0 || testing.Short())
	assert.Positive(t, held)
}
