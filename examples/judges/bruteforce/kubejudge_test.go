package bruteforce_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/bruteforce"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/scheduling"
)

// cluster is a drawn problem after some nodes were bought.
type cluster struct {
	snapshot         scheduling.Snapshot
	nodes            []*corev1.Node
	running, pending []*corev1.Pod
}

func clusterOf(s scheduling.Snapshot) cluster {
	c := cluster{snapshot: s, nodes: slices.Clone(s.Nodes)}
	for _, p := range s.Pods {
		if p.Spec.NodeName == "" {
			c.pending = append(c.pending, p)
		} else {
			c.running = append(c.running, p)
		}
	}
	return c
}

// bought buys nodes at random, with their daemons.
func bought(s scheduling.Snapshot, r *rand.Rand) cluster {
	c := clusterOf(s)
	offers := bruteforce.Offers(s)
	for i := range r.IntN(5) {
		if len(offers) > 0 {
			n := offers[r.IntN(len(offers))].Node.DeepCopy()
			n.Name = string(rune('p'+i)) + "-new"
			n.Labels[corev1.LabelHostname] = n.Name
			c.add(n)
		}
	}
	return c
}

func (c *cluster) add(n *corev1.Node) {
	c.nodes = append(c.nodes, n)
	for _, set := range c.snapshot.DaemonSets {
		if p := bruteforce.DaemonPod(set, n); p != nil {
			c.running = append(c.running, p)
		}
	}
}

func (c *cluster) scenario() kubejudge.Scenario {
	return kubejudge.Scenario{Nodes: c.nodes, Running: c.running, Pods: c.pending, PriorityClasses: c.snapshot.PriorityClasses}
}

// verdicts binds each pending pod once, to the node that choose names, and returns which binds the
// model accepts. A refused bind changes nothing.
func (c *cluster) verdicts(off bruteforce.Filter, order []*corev1.Pod, choose func(accepted []int) int) (plan []kubejudge.Binding, filters []bruteforce.Filter) {
	m := bruteforce.New(c.nodes, nil, slices.Concat(c.running, c.pending), nil)
	m.Off = off
	st := m.Start()
	for _, p := range order {
		kind := m.Kind(p.Namespace + "/" + p.Name)
		var accepted []int
		for n := range c.nodes {
			if st.Refuses(kind, n) == "" {
				accepted = append(accepted, n)
			}
		}
		n := choose(accepted)
		plan = append(plan, kubejudge.Binding{Pod: types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, Node: c.nodes[n].Name})
		filters = append(filters, st.Refuses(kind, n))
		if st.Refuses(kind, n) == "" {
			st.Bind(kind, n)
		}
	}
	return plan, filters
}

// compare judges random binds of drawn problems with both, and returns how many kube-scheduler
// accepts and refuses, by plugin, and the seeds where the two differ.
func compare(t *testing.T, off bruteforce.Filter, problems int) (verdicts map[string]int, differ []uint64) {
	t.Helper()
	verdicts = map[string]int{}
	for i := range problems {
		seed := *from + uint64(i)
		r := rand.New(rand.NewPCG(seed, 5))
		s := draw(seed)
		for range 4 {
			c := bought(s, r)
			if len(c.nodes) == 0 {
				continue
			}
			order := slices.Clone(c.pending)
			r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			plan, filters := c.verdicts(off, order, func(accepted []int) int {
				if len(accepted) > 0 && r.IntN(3) > 0 {
					return accepted[r.IntN(len(accepted))]
				}
				return r.IntN(len(c.nodes))
			})
			got, err := kubejudge.Judge(t.Context(), c.scenario(), plan)
			require.NoError(t, err, "seed %d", seed)
			refused := map[int]string{}
			for _, x := range got.Refused {
				refused[x.Position] = x.Plugin
			}
			for i := range plan {
				verdicts[refused[i]]++
				if (refused[i] == "") != (filters[i] == "") {
					if off == "" {
						t.Errorf("seed %d: %s: kube-scheduler's %q, the model's %q\n%s", seed, plan[i], refused[i], filters[i], got)
					}
					differ = append(differ, seed)
					break // from here on the states differ
				}
			}
		}
	}
	return verdicts, differ
}

// The model accepts the same binds as kube-scheduler's own plugins, and daemons run on the same
// nodes as with their controller.
func TestModelIsKubeScheduler(t *testing.T) {
	verdicts, differ := compare(t, "", *problems)
	require.Empty(t, differ)
	t.Logf("binds that kube-scheduler accepts and refuses, by plugin: %v", verdicts)
	for i := range *problems {
		s := draw(*from + uint64(i))
		var nodes []*corev1.Node
		for _, o := range bruteforce.Offers(s) {
			n := o.Node.DeepCopy()
			n.Name = string(rune('a' + len(nodes)))
			nodes = append(nodes, n)
		}
		want, _ := kubejudge.Daemons(s.DaemonSets, nodes, nil)
		var got []string
		for _, set := range s.DaemonSets {
			for _, n := range nodes {
				if p := bruteforce.DaemonPod(set, n); p != nil {
					got = append(got, p.Name)
				}
			}
		}
		require.Len(t, got, len(want), "seed %d", *from+uint64(i))
	}
}

// A model without one of its filters is noticed. So the comparison can fail.
func TestEveryFilterIsCompared(t *testing.T) {
	for _, off := range []bruteforce.Filter{
		bruteforce.NodeAffinity, bruteforce.TaintToleration, bruteforce.NodeResourcesFit, bruteforce.NodePorts, bruteforce.PodTopologySpread, bruteforce.InterPodAffinity,
	} {
		_, differ := compare(t, off, 100)
		require.NotEmpty(t, differ, off)
	}
}
