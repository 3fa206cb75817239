package replay_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// missed is a pod that a plan leaves out and that kube-scheduler would bind.
type missed struct {
	name types.NamespacedName
	node string
	why  string // what the plan says
}

func (m missed) String() string { return m.name.String() + " fits " + m.node + ": " + m.why }

// left is one pod of each class that the plan leaves out, with the reason that it gives.
func left(p *plan.Plan) map[types.NamespacedName]string {
	out := map[types.NamespacedName]string{}
	for _, u := range p.Unplaced() {
		why := ""
		if r := u.Reasons(); len(r) > 0 {
			why = fmt.Sprint(r[0].Stage, ": ", r[0])
		}
		out[nameOf(u.Pods[0])] = why
	}
	return out
}

// onThePlan are the pods left out that fit a node of the plan, or one that exists.
func onThePlan(ctx context.Context, s scenario.Scenario, p *plan.Plan, more ...*corev1.Node) ([]missed, error) {
	why := left(p)
	var pods []types.NamespacedName
	for pod := range why {
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, func(a, b types.NamespacedName) int { return scheduling.ComparePods(podOf(a), podOf(b)) })
	nodes, order := replay.Plan(p)
	// With minValues a node may still become one of several types. That it has the labels of one of them here does not make it a place for pods
	// that ask for them.
	undecided := map[string]bool{}
	for _, n := range p.NewNodes() {
		undecided[n.Name] = len(n.Pool.MinValues) > 0
	}
	zones := map[string]string{}
	for _, n := range slices.Concat(s.Cluster().Nodes, nodes, onTheirWay(s, p), more) {
		zones[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	cluster, order, err := s.Planned(ctx, slices.Concat(nodes, onTheirWay(s, p), more), nil, order)
	if err != nil {
		return nil, err
	}
	fits, err := kubejudge.Fits(ctx, cluster, order, pods)
	if err != nil || len(fits) == 0 {
		return nil, err
	}
	if cluster, err = withLateDaemons(ctx, s, cluster); err != nil {
		return nil, err
	}
	sure, err := kubejudge.Fits(ctx, cluster, order, pods)
	var out []missed
	for _, b := range fits {
		if undecided[b.Node] || madeElsewhere(s, p, zones, b) || !slices.ContainsFunc(sure, func(x kubejudge.Binding) bool { return x.Pod == b.Pod }) {
			continue
		}
		if len(more) == 0 || slices.ContainsFunc(more, func(n *corev1.Node) bool { return n.Name == b.Node }) {
			out = append(out, missed{b.Pod, b.Node, why[b.Pod]})
		}
	}
	return out, err
}

// madeElsewhere reports whether a claim of the pod, which the judge leaves without a volume, gets its volume in another zone than that of the node:
// with the first of the pods that share it and that the plan places.
func madeElsewhere(s scenario.Scenario, p *plan.Plan, zones map[string]string, b kubejudge.Binding) bool {
	uses := func(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
		return pod.Namespace == claim.Namespace && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
		})
	}
	at := slices.IndexFunc(s.Pods, func(pod *corev1.Pod) bool { return nameOf(pod) == b.Pod })
	return slices.ContainsFunc(s.PVCs, func(c *corev1.PersistentVolumeClaim) bool {
		shared := slices.Contains(c.Spec.AccessModes, corev1.ReadWriteMany) || slices.Contains(c.Spec.AccessModes, corev1.ReadOnlyMany)
		return c.Spec.VolumeName == "" && !shared && uses(s.Pods[at], c) && slices.ContainsFunc(p.Bindings(), func(other scheduling.Binding) bool {
			return uses(other.Pod, c) && zones[other.Node] != zones[b.Node]
		})
	})
}

// withLateDaemons is the cluster with the daemonset pods for which old nodes have no room. They may start whenever a pod ends, so a plan keeps
// room for them and lets nothing in that such a pod keeps away.
func withLateDaemons(ctx context.Context, s scenario.Scenario, c kubejudge.Scenario) (kubejudge.Scenario, error) {
	before := s.Cluster()
	daemons, first := kubejudge.Daemons(s.DaemonSets, before.Nodes, before.Running)
	before.Pods = daemons
	held, err := kubejudge.Judge(ctx, before, first)
	if err != nil {
		return c, err
	}
	late := map[types.NamespacedName]string{}
	for _, r := range held.Refused {
		if r.Plugin == "NodeResourcesFit" {
			late[r.Pod] = r.Node
		}
	}
	c.Running, c.Pods = slices.Clip(c.Running), slices.DeleteFunc(slices.Clone(c.Pods), func(p *corev1.Pod) bool { return late[nameOf(p)] != "" })
	for _, p := range daemons {
		node := late[nameOf(p)]
		if node == "" {
			continue
		}
		p = p.DeepCopy()
		p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
		p.UID = types.UID(p.Name)
		c.Running = append(c.Running, p)
	}
	return c, nil
}

// onTheirWay are the nodes of claims that do not say what they will have. The scenario cannot tell the judge of them, and nothing fits there,
// but they will be domains as other nodes are that have not joined.
func onTheirWay(s scenario.Scenario, p *plan.Plan) []*corev1.Node {
	there := map[string]bool{}
	for _, n := range s.Cluster().Nodes {
		there[n.Name] = true
	}
	var out []*corev1.Node
	for i := range p.Problem.Existing {
		if e := &p.Problem.Existing[i]; e.InFlight && !there[e.Node.Name] {
			out = append(out, e.Node)
		}
	}
	return out
}

func podOf(name types.NamespacedName) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name = name.Namespace, name.Name
	return p
}

// affordable reports whether the limits of a shape's pool allow one more node beside the plan.
func affordable(p *plan.Plan, shape *scheduling.Shape) bool {
	pool := &p.Problem.Pools[shape.Pool]
	nodes, left := pool.NodesLeft, slices.Clone(pool.Left)
	for _, n := range p.NewNodes() {
		if n.Pool.Name != pool.Name {
			continue
		}
		nodes--
		for i, name := range pool.Limited {
			if q, ok := n.InstanceType.Capacity[name]; ok {
				left[i] -= resources.Request(name, q)
			}
		}
	}
	if pool.NodesLeft >= 0 && nodes < 1 {
		return false
	}
	for i, q := range shape.Usage {
		if q > left[i] {
			return false
		}
	}
	return true
}

// another is nodes that the pools of the plan may still buy, one more each time: of each pool, zone and capacity type the one with the most cores.
func another(p *plan.Plan) []*corev1.Node {
	return anotherOf(p, func(*corev1.Node) bool { return true })
}

// anotherOf is [another] of the nodes that are allowed.
func anotherOf(p *plan.Plan, allowed func(*corev1.Node) bool) []*corev1.Node {
	largest := map[string]int{}
	var out []*corev1.Node
	var cores []int64
	for i := range p.Problem.Shapes {
		s := &p.Problem.Shapes[i]
		pool := &p.Problem.Pools[s.Pool]
		if len(pool.MinValues) > 0 || !affordable(p, s) {
			continue // which values are left is not this test's to work out
		}
		for j, o := range s.Offerings {
			if o.Count > 0 {
				continue
			}
			labels, err := p.Problem.NodeLabels(i, j)
			if err != nil {
				continue
			}
			n := scheduling.NewNode{Name: "another", Pool: pool, InstanceType: p.Problem.InstanceType(i), Labels: p.Problem.ChosenLabels(labels)}
			node := n.Node()
			if !allowed(node) {
				continue
			}
			key := pool.Name + " " + n.Labels[corev1.LabelTopologyZone] + " " + n.Labels[instancetypes.LabelCapacityType] + " " + n.Labels[corev1.LabelArchStable]
			at, known := largest[key]
			switch {
			case !known:
				largest[key] = len(out)
				out, cores = append(out, node), append(cores, s.Free[0])
			case s.Free[0] > cores[at]:
				out[at], cores[at] = node, s.Free[0]
			}
		}
	}
	return out
}

// suits reports whether some class that the plan leaves out may go to the node by its labels.
func suits(p *plan.Plan, n *corev1.Node) bool {
	labels := requirements.FromLabels(n.Labels)
	return slices.ContainsFunc(p.Unplaced(), func(u scheduling.Unplaced) bool {
		c := p.Problem.Classes[u.Class]
		return c.Refusal == nil && c.Required.Compatible(labels, requirements.Keys{})
	})
}

// waits reports whether a pod has a claim for which kube-scheduler may choose between free volumes when it binds the pod. Of several of one
// size it takes any, so whether another pod finds one is luck, and a plan counts on none. Likewise, a claim whose volume is being made for one
// node can be used elsewhere only after a first pod is bound there, and where that is, its provisioner decides.
func waits(s scenario.Scenario, pod types.NamespacedName) bool {
	at := slices.IndexFunc(s.Pods, func(p *corev1.Pod) bool { return nameOf(p) == pod })
	chosen := func(c *corev1.PersistentVolumeClaim) bool {
		if c.Annotations["volume.kubernetes.io/selected-node"] != "" {
			return true
		}
		sizes := map[string]int{}
		for _, pv := range s.PVs {
			if pv.Spec.ClaimRef == nil && storagehelpers.GetPersistentVolumeClass(pv) == classOf(s, c) {
				sizes[pv.Spec.Capacity.Storage().String()]++
			}
		}
		return slices.ContainsFunc(slices.Collect(maps.Values(sizes)), func(n int) bool { return n > 1 })
	}
	return slices.ContainsFunc(s.Pods[at].Spec.Volumes, func(v corev1.Volume) bool {
		if v.Ephemeral != nil {
			return chosen(&corev1.PersistentVolumeClaim{ObjectMeta: v.Ephemeral.VolumeClaimTemplate.ObjectMeta, Spec: v.Ephemeral.VolumeClaimTemplate.Spec})
		}
		return v.PersistentVolumeClaim != nil && slices.ContainsFunc(s.PVCs, func(c *corev1.PersistentVolumeClaim) bool {
			return c.Namespace == s.Pods[at].Namespace && c.Name == v.PersistentVolumeClaim.ClaimName && c.Spec.VolumeName == "" && chosen(c)
		})
	})
}

// classOf is the storage class of a claim: its own, or the youngest default, then the first by name.
func classOf(s scenario.Scenario, c *corev1.PersistentVolumeClaim) string {
	if storagehelpers.PersistentVolumeClaimHasClass(c) {
		return storagehelpers.GetPersistentVolumeClaimClass(c)
	}
	var defaults []*storagev1.StorageClass
	for _, class := range s.StorageClasses {
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			defaults = append(defaults, class)
		}
	}
	if len(defaults) == 0 {
		return ""
	}
	return slices.MinFunc(defaults, func(a, b *storagev1.StorageClass) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}).Name
}

// What a plan leaves out has no place: no node that is there, that the plan buys or that a pool may buy beside takes it, by kube-scheduler's
// word, unless a volume is a matter of luck.
func TestNothingIsMissed(t *testing.T) {
	n := *scenarios * 3 / 5
	found, errs, out := make([][]missed, n), make([]error, n), make([]int, n)
	inParallel(n, func(i int) {
		s := counted(drawn(*from + uint64(i)))
		p, err := planned(t.Context(), s)
		if err != nil {
			errs[i] = err
			return
		}
		out[i] = len(p.Unplaced())
		found[i], errs[i] = onThePlan(t.Context(), s, p)
		for _, more := range another(p) {
			if errs[i] == nil && suits(p, more) {
				var beside []missed
				beside, errs[i] = onThePlan(t.Context(), s, p, more)
				found[i] = append(found[i], beside...)
			}
		}
	})
	classes, count, luck := 0, map[string]bool{}, map[string]bool{}
	for i := range found {
		require.NoError(t, errs[i], "seed %d", *from+uint64(i))
		classes += out[i]
		for _, m := range found[i] {
			to := count
			if waits(drawn(*from+uint64(i)), m.name) {
				to = luck
			}
			if key := fmt.Sprint(*from+uint64(i), m.name); !to[key] {
				to[key] = true
				t.Logf("seed %d: %s", *from+uint64(i), m)
			}
		}
	}
	fmt.Printf("%d scenarios, %d classes left out, %d of them missed, and %d by luck\n", n, classes, len(count), len(luck))
	require.Empty(t, count)
}
