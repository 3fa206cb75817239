// Package fragment generates clusters in the state that they reach after a while: nodes were bought
// for deployments that were since scaled down at random. Benchmarks, property tests and replays
// consolidate them.
package fragment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// Options say what to generate. The zero value generates nothing.
type Options struct {
	// Nodes is the number of nodes. PodsPerNode is about how many pods run on each node on average
	// after the scaling down; the more pods, the smaller they are. 0 means 12.
	Nodes, PodsPerNode int
	// Seed is the seed of the random choices.
	Seed uint64
	// Constrained gives a third of the deployments a spread over zones, and a tenth anti-affinity
	// by node.
	Constrained bool
	// Gangs is how many jobs there are whose pods run only together. A quarter of them are in one
	// zone, and a quarter in two. They are not scaled down, but some have fewer pods than their
	// PodGroups require.
	Gangs int
	// Pool is the manifest of the pool. Empty means [Pool].
	Pool string
}

// Pool is the pool of the nodes: on-demand machines of three families of up to 64 vCPU, without
// budgets.
const Pool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      expireAfter: Never
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.k8s.aws/instance-family, operator: In, values: [c5, m5, r5]}
      - {key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: ["65"]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b, us-east-1c]}
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 0s
    budgets: [{nodes: "100%"}]
`

// Now returns the moment of the clusters. Their nodes were bought two days earlier.
func Now() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }

// Cluster is a generated cluster.
type Cluster struct {
	Manifests *manifests.Snapshot
	Snapshot  scheduling.Snapshot
}

// Generate returns a cluster. The same options give the same cluster.
func Generate(o Options) (*Cluster, error) {
	if o.PodsPerNode == 0 {
		o.PodsPerNode = 12
	}
	if o.Pool == "" {
		o.Pool = Pool
	}
	m, err := manifests.Parse([]manifests.File{{Name: "pool.yaml", Data: []byte(o.Pool)}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	if err != nil {
		return nil, err
	}
	market, err := pipeline.EC2Market("us-east-1")
	if err != nil {
		return nil, err
	}
	s, _, err := pipeline.Snapshot(m, market)
	if err != nil {
		return nil, err
	}
	g := generator{r: rand.New(rand.NewPCG(o.Seed, 0x667261)), o: o, s: &s}
	g.nodes()
	g.jobs(m)
	g.deployments()
	g.scaleDown()
	m.Nodes, m.Pods = s.Nodes, s.Pods
	return &Cluster{m, s}, nil
}

type generator struct {
	r    *rand.Rand
	o    Options
	s    *scheduling.Snapshot
	free [][3]int64 // by node: milli-CPU, bytes, pods
	zone []string
	apps [][]*corev1.Pod
	gang []*corev1.Pod
}

var zones = [...]string{"us-east-1a", "us-east-1b", "us-east-1c"}

func (g *generator) nodes() {
	type buy struct {
		t instancetypes.InstanceType
		o instancetypes.Offering
	}
	var market []buy
	pool := g.s.Pools[0]
	ask := pool.NodeRequirements()
	for _, t := range pool.Types {
		if !t.Requirements.Overlaps(ask) || t.Capacity.Cpu().Value() < 4 {
			continue
		}
		for _, o := range t.Offerings {
			if o.Available && o.Requirements.Overlaps(ask) {
				market = append(market, buy{t, o})
			}
		}
	}
	for i := range g.o.Nodes {
		x := market[g.r.IntN(len(market))]
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i), Labels: map[string]string{}, CreationTimestamp: metav1.NewTime(Now().Add(-48 * time.Hour))}}
		for _, set := range []requirements.Set{x.t.Requirements, x.o.Requirements, requirements.FromLabels(pool.PoolLabels())} {
			for r := range set.All() {
				if v, ok := r.Single(); ok {
					n.Labels[r.Key()] = v
				}
			}
		}
		n.Labels[corev1.LabelHostname] = n.Name
		n.Labels["karpenter.sh/registered"], n.Labels["karpenter.sh/initialized"] = "true", "true"
		n.Status.Capacity, n.Status.Allocatable = x.t.Capacity, x.t.Allocatable()
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		g.s.Nodes = append(g.s.Nodes, n)
		a := n.Status.Allocatable
		g.free = append(g.free, [3]int64{a.Cpu().MilliValue(), a.Memory().Value(), a.Pods().Value()})
		g.zone = append(g.zone, n.Labels[corev1.LabelTopologyZone])
	}
}

// jobs adds jobs on a few nodes each, and their PodGroups to the manifests. Some need all of their
// pods, some have spare ones, and some have lost pods.
func (g *generator) jobs(m *manifests.Snapshot) {
	for i := range g.o.Gangs {
		name, size, cpu := fmt.Sprintf("train-%d", i), 2+g.r.IntN(7), int64(500*(1+g.r.IntN(6)))
		yes, zone, group := true, "", gang.PodGroup{API: gang.Coscheduling, Namespace: "default", Name: name, Minimum: max(1, size-2+g.r.IntN(4))}
		if i%2 == 0 {
			zone, group.Key = zones[g.r.IntN(len(zones))], corev1.LabelTopologyZone
		}
		other := zone
		if i%4 == 2 {
			other, group.Values = zones[(slices.Index(zones[:], zone)+1)%len(zones)], 2
		}
		group.Whole = g.r.IntN(4) == 0
		m.PodGroups = append(m.PodGroups, group)
		for k := range size {
			at := g.find(cpu, cpu<<30/500, func(n int) bool { return zone == "" || g.zone[n] == zone || g.zone[n] == other })
			if at < 0 {
				break
			}
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprintf("%s-%d", name, k), Labels: map[string]string{"scheduling.x-k8s.io/pod-group": name},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: "2", Controller: &yes}},
			}}
			p.Spec = corev1.PodSpec{NodeName: g.s.Nodes[at].Name, Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/train", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(cpu<<30/500, resource.BinarySI)},
			}}}}
			p.Status.Phase = corev1.PodRunning
			g.free[at] = [3]int64{g.free[at][0] - cpu, g.free[at][1] - cpu<<30/500, g.free[at][2] - 1}
			g.gang = append(g.gang, p)
		}
	}
}

// deployments fills the nodes until new deployments hardly fit.
func (g *generator) deployments() {
	cpus := []int64{100, 250, 250, 500, 500, 1000, 1000, 2000, 2000, 4000}
	perCPU := []int64{1, 2, 2, 4, 4, 8}
	for i, misses := 0, 0; misses < 20; i++ {
		cpu := max(50, cpus[g.r.IntN(len(cpus))]*12/int64(g.o.PodsPerNode))
		memory := cpu * perCPU[g.r.IntN(len(perCPU))] << 30 / 1000
		replicas := 5 + g.r.IntN(46)
		app := fmt.Sprintf("app-%d", i)
		owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: "1", Controller: new(bool)}}
		*owner[0].Controller = true
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI)},
		}}}}
		labels := map[string]string{"app": app}
		kind := g.r.IntN(30)
		spread, apart := g.o.Constrained && kind < 10, g.o.Constrained && kind >= 27
		own := &metav1.LabelSelector{MatchLabels: labels}
		if spread {
			spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own}}
		}
		if apart {
			spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: own}}}}
		}
		var mine []*corev1.Pod
		taken := map[int]bool{}
		for k := range replicas {
			at := g.find(cpu, memory, func(n int) bool { return (!spread || g.zone[n] == zones[k%3]) && (!apart || !taken[n]) })
			if at < 0 {
				break
			}
			taken[at] = true
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", app, k), Labels: labels, OwnerReferences: owner}, Spec: spec}
			p.Spec.NodeName = g.s.Nodes[at].Name
			p.Status.Phase = corev1.PodRunning
			g.free[at][0] -= cpu
			g.free[at][1] -= memory
			g.free[at][2]--
			mine = append(mine, p)
		}
		if len(mine) < replicas/2 {
			misses++
		}
		if len(mine) > 0 {
			g.apps = append(g.apps, mine)
		}
	}
}

// find examines some nodes at random and returns the fullest that is suitable.
func (g *generator) find(cpu, memory int64, ok func(int) bool) int {
	best := -1
	for range 60 {
		n := g.r.IntN(len(g.free))
		if f := g.free[n]; f[0] < cpu || f[1] < memory || f[2] < 1 || !ok(n) {
			continue
		}
		if best < 0 || g.free[n][0] < g.free[best][0] {
			best = n
		}
	}
	return best
}

// scaleDown keeps a random part of each deployment.
func (g *generator) scaleDown() {
	kept := g.gang
	for _, app := range g.apps {
		g.r.Shuffle(len(app), func(i, j int) { app[i], app[j] = app[j], app[i] })
		kept = append(kept, app[:max(1, len(app)*(10+g.r.IntN(81))/100)]...)
	}
	slices.SortFunc(kept, func(a, b *corev1.Pod) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	g.s.Pods = kept
}
