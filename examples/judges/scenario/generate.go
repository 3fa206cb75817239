package scenario

import (
	"math/rand/v2"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Options limit what Generate draws. The zero value is the usual property test.
type Options struct {
	// Pods is about how many pods are pending; 0 means 60.
	Pods int
	// Density is how often a pod has a constraint, in percent of the usual. 0 draws 40, 100 or 200
	// from the seed.
	Density int
	// Terms is the chance in percent that a constraint gets a further term of its kind. A pod
	// affinity has at most 3 terms, a node affinity at most 12. 0 draws 20 or 50 from the seed.
	Terms int
	// Limits lets pools have limits. Without limits, a pod can be unplaced only because of its own
	// constraints.
	Limits bool
	// Quotas adds CapacityQuotas that overlap, and changes nothing else.
	Quotas bool
	// NoVolumes, NoPreferences and NoExisting leave a whole dimension out.
	NoVolumes, NoPreferences, NoExisting bool
	// Changing adds states that the other options leave out: nodes and pending pods that are being
	// deleted, claims whose nodes have not joined, cordons without their taint, LimitRanges, free
	// volumes without a driver, daemons with anti-affinity, fields that controllers write into
	// storage objects and nodes, pods that are older than their priority classes, and nodes that
	// are full of pods made for them, some of which are only nominated.
	Changing bool
	// Nominated lets Changing nominate pods of any priority to nodes that may be gone. If it is
	// false, nominated pods have the highest or the lowest priority, and no selector of other pods
	// matches them.
	Nominated bool
}

// Labels and taints that scenarios use.
const (
	labelTier     = "tier"
	labelVersion  = "version"
	labelHash     = "pod-template-hash"
	labelTrack    = "track"
	labelTeam     = "example.com/team"
	labelLane     = "example.com/lane"
	taintBatch    = "example.com/batch"
	taintGPU      = "example.com/gpu"
	taintSlow     = "example.com/slow"
	taintStartup  = "example.com/starting"
	storageDriver = "block.csi.example.com"
	classLocal    = "local" // of volumes that no driver makes
)

// Names that pods refer to.
const (
	runtimeSandbox = "sandbox"
	runtimePlain   = "plain"
)

// generator draws one scenario. Everything comes from r in one fixed order.
type generator struct {
	r       *rand.Rand
	options Options
	s       Scenario
	apps    []app
	// density and terms are those of the options, or what was drawn for them; denser is the density
	// of the app that is being drawn, in percent of the scenario's.
	density, terms, denser int
	// free is what the nodes have left, and ports what they have given away.
	free  []corev1.ResourceList
	ports []map[int32]bool
}

// Generate draws a scenario over every constraint: several pools with weights, taints, labels and
// requirements, nodes that run with pods on them, some of which are being deleted, daemonsets,
// volumes, and deployments with spreads, affinities, ports, priorities and preferences, several of
// a kind at once. All pods are such as an API server accepts. Not all can be placed.
//
// The same seed and options give the same scenario. It is a function of its arguments and safe for
// concurrent use.
func Generate(seed uint64, o Options) Scenario {
	if o.Pods == 0 {
		o.Pods = 60
	}
	g := &generator{r: rand.New(rand.NewPCG(seed, 0x6a6f696e)), options: o, s: Scenario{Seed: seed}, density: o.Density, terms: o.Terms}
	if g.density == 0 {
		g.density = pick(g, 40, 100, 200)
	}
	if g.terms == 0 {
		g.terms = pick(g, 20, 20, 50)
	}
	g.surroundings()
	g.pools()
	g.daemonSets()
	if !o.NoExisting {
		g.nodes()
	}
	if o.Changing {
		g.limitRanges()
		if !o.NoVolumes {
			g.freeVolumes()
		}
	}
	g.drawApps()
	g.running()
	for i := range g.apps {
		for range g.apps[i].replicas {
			p := g.pod(&g.apps[i], "")
			if o.Changing && g.chance(3) {
				deleted(p, batchv1.JobTrackingFinalizer)
			}
			g.s.Pods = append(g.s.Pods, p)
		}
	}
	if o.Changing {
		g.full()
	}
	// Pods arrive in no order.
	g.r.Shuffle(len(g.s.Pods), func(i, j int) { g.s.Pods[i], g.s.Pods[j] = g.s.Pods[j], g.s.Pods[i] })
	if o.Changing {
		g.stored()
		if !o.NoVolumes {
			g.storage()
		}
		g.agents()
		g.kubelets()
		g.drains()
	}
	if o.Quotas {
		g.quotas()
	}
	return g.s
}

// stored draws which pods have been through an API server already, and which of them have been
// nominated to a node since. LimitRanges and classes of the scenario may be younger than these.
func (g *generator) stored() {
	sandbox := g.s.RuntimeClasses[0]
	if g.chance(40) {
		sandbox.Scheduling.Tolerations = append(sandbox.Scheduling.Tolerations, corev1.Toleration{Key: taintBatch, Operator: corev1.TolerationOpExists})
	}
	if g.chance(30) {
		sandbox.Scheduling.NodeSelector[corev1.LabelArchStable] = "amd64"
	}
	for _, p := range slices.Concat(g.s.Running, g.s.Pods) {
		inSandbox := p.Spec.RuntimeClassName != nil && *p.Spec.RuntimeClassName == runtimeSandbox
		if arch, ok := sandbox.Scheduling.NodeSelector[corev1.LabelArchStable]; inSandbox && ok && p.Spec.NodeSelector[corev1.LabelArchStable] != arch {
			delete(p.Spec.NodeSelector, corev1.LabelArchStable) // a server refuses a pod that contradicts its class
		}
		if g.options.Nominated && g.chance(3) && p.Spec.NodeName == "" && len(g.s.Nodes) > 0 {
			p.Status.NominatedNodeName = pick(g, pick(g, g.s.Nodes...).Name, pick(g, g.s.Nodes...).Name, "gone")
		}
		if p.Status.NominatedNodeName == "" && !g.chance(40) {
			continue
		}
		p.UID = types.UID(p.Namespace + "/" + p.Name)
		if name := p.Spec.PriorityClassName; name != "" && (g.options.Nominated || p.Status.NominatedNodeName == "") && g.chance(30) {
			p.Spec.Priority = new(pick(g, priorityValue(name), int32(50)))
		}
		if inSandbox {
			p.Spec.Overhead = pick(g, nil, corev1.ResourceList{corev1.ResourceCPU: quantity("20m")},
				corev1.ResourceList{corev1.ResourceCPU: quantity("300m"), corev1.ResourceMemory: quantity("256Mi")})
		}
	}
}

// Tangled draws 120 pods whose constraints depend on each other more than they do in most clusters:
// several terms of every kind a pod, among them empty selectors, up to a dozen node-affinity terms,
// and pods that are being deleted.
func Tangled(seed uint64) Scenario {
	return Generate(seed, Options{Pods: 120, Density: 130, Terms: 65, Changing: true})
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

// often is chance at the density of the app that is being drawn. Nothing gets surer than 90%.
func (g *generator) often(percent int) bool {
	return g.chance(min(percent*g.density*g.denser/10_000, 90))
}

// several returns 1, or more up to most.
func (g *generator) several(most int) int {
	n := 1
	for n < most && g.chance(g.terms) {
		n++
	}
	return n
}

func pick[T any](g *generator, from ...T) T { return from[g.r.IntN(len(from))] }

// some returns one or more of the values, in order.
func (g *generator) some(from ...string) []string {
	var out []string
	for _, v := range from {
		if g.chance(50) {
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		out = append(out, pick(g, from...))
	}
	return out
}

func meta(kind, apiVersion, name string) (metav1.TypeMeta, metav1.ObjectMeta) {
	return metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}, metav1.ObjectMeta{Name: name}
}

// surroundings are the objects that every scenario has.
func (g *generator) surroundings() {
	g.s.Catalogue = Cloud()
	for _, name := range []string{metav1.NamespaceDefault, "shop", "batch"} {
		ns := &corev1.Namespace{}
		ns.TypeMeta, ns.ObjectMeta = meta("Namespace", "v1", name)
		if name != metav1.NamespaceDefault {
			ns.Labels = map[string]string{labelTeam: name}
		}
		g.s.Namespaces = append(g.s.Namespaces, ns)
	}
	for _, name := range append(priorities(), lowest) {
		c := &schedulingv1.PriorityClass{Value: priorityValue(name)}
		c.TypeMeta, c.ObjectMeta = meta("PriorityClass", "scheduling.k8s.io/v1", name)
		c.GlobalDefault = name == "usual" && g.chance(20)
		g.s.PriorityClasses = append(g.s.PriorityClasses, c)
	}
	for _, name := range []string{runtimeSandbox, runtimePlain} {
		c := &nodev1.RuntimeClass{Handler: name}
		c.TypeMeta, c.ObjectMeta = meta("RuntimeClass", "node.k8s.io/v1", name)
		if name == runtimeSandbox {
			c.Overhead = &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: quantity("100m"), corev1.ResourceMemory: quantity("96Mi")}}
			c.Scheduling = &nodev1.Scheduling{
				NodeSelector: map[string]string{corev1.LabelOSStable: "linux"},
				Tolerations:  []corev1.Toleration{{Key: taintSlow, Operator: corev1.TolerationOpExists}},
			}
		}
		g.s.RuntimeClasses = append(g.s.RuntimeClasses, c)
	}
	if g.options.NoVolumes {
		return
	}
	waits, atOnce := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	names := []string{"waits", "zone-b", "two-zones", "bound"}
	if g.options.Changing {
		names = append(names, classLocal)
	}
	for _, name := range names {
		c := &storagev1.StorageClass{Provisioner: storageDriver, VolumeBindingMode: &waits}
		c.TypeMeta, c.ObjectMeta = meta("StorageClass", "storage.k8s.io/v1", name)
		switch name {
		case "zone-b":
			c.AllowedTopologies = allowed(Zones()[1])
		case "two-zones":
			c.AllowedTopologies = allowed(Zones()[0], Zones()[2])
		case "bound":
			c.VolumeBindingMode = &atOnce
		case classLocal:
			c.Provisioner = "kubernetes.io/no-provisioner"
		}
		g.s.StorageClasses = append(g.s.StorageClasses, c)
	}
	d := &storagev1.CSIDriver{}
	d.TypeMeta, d.ObjectMeta = meta("CSIDriver", "storage.k8s.io/v1", storageDriver)
	g.s.CSIDrivers = append(g.s.CSIDrivers, d)
}

// priorities are the names of the priority classes, the highest first.
func priorities() []string { return []string{"high", "raised", "usual", "low"} }

// lowest is the class of nominated pods that give way to all others.
const lowest = "lowest"

func priorityValue(class string) int32 {
	return map[string]int32{"high": 1000, "raised": 100, "usual": 10, "low": -10, lowest: -100}[class]
}

func allowed(zones ...string) []corev1.TopologySelectorTerm {
	return []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: corev1.LabelTopologyZone, Values: zones},
	}}}
}
