package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Options bound what Generate draws. The zero value is the usual property test.
type Options struct {
	// Pods is how many are pending, about; 60 if zero.
	Pods int
	// Limits lets pools have limits. Without, a pod is left out only for its own constraints.
	Limits bool
	// NoVolumes, NoPreferences and NoExisting leave a whole dimension out.
	NoVolumes, NoPreferences, NoExisting bool
}

// Labels and taints that scenarios use.
const (
	labelTier     = "tier"
	labelVersion  = "version"
	labelTeam     = "example.com/team"
	labelLane     = "example.com/lane"
	taintBatch    = "example.com/batch"
	taintGPU      = "example.com/gpu"
	taintSlow     = "example.com/slow"
	taintStartup  = "example.com/starting"
	storageDriver = "block.csi.example.com"
)

// generator draws one scenario. Everything comes from r in one fixed order.
type generator struct {
	r       *rand.Rand
	options Options
	s       Scenario
	apps    []app
	// free is what the nodes have left, and ports what they have given away.
	free  []corev1.ResourceList
	ports []map[int32]bool
}

// Generate draws a scenario over every constraint: several pools with weights, taints, labels and requirements, nodes that
// run with pods on them, daemonsets, volumes, and deployments with spreads, affinities, ports, priorities and preferences.
// All pods are such as an API server accepts. Not all can be placed.
//
// The same seed and options give the same scenario. It is a function of its arguments and safe for concurrent use.
func Generate(seed uint64, o Options) Scenario {
	if o.Pods == 0 {
		o.Pods = 60
	}
	g := &generator{r: rand.New(rand.NewPCG(seed, 0x6a6f696e)), options: o, s: Scenario{Seed: seed}}
	g.surroundings()
	g.pools()
	g.daemonSets()
	g.drawApps()
	if !o.NoExisting {
		g.nodes()
		g.running()
	}
	for i := range g.apps {
		for range g.apps[i].replicas {
			g.s.Pods = append(g.s.Pods, g.pod(&g.apps[i]))
		}
	}
	// Pods arrive in no order.
	g.r.Shuffle(len(g.s.Pods), func(i, j int) { g.s.Pods[i], g.s.Pods[j] = g.s.Pods[j], g.s.Pods[i] })
	return g.s
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

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
	priority := func(name string, value int32) {
		c := &schedulingv1.PriorityClass{Value: value}
		c.TypeMeta, c.ObjectMeta = meta("PriorityClass", "scheduling.k8s.io/v1", name)
		g.s.PriorityClasses = append(g.s.PriorityClasses, c)
	}
	priority("high", 1000)
	priority("low", -10)
	if g.options.NoVolumes {
		return
	}
	waits, atOnce := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	for _, name := range []string{"waits", "zone-b", "two-zones", "bound"} {
		c := &storagev1.StorageClass{Provisioner: storageDriver, VolumeBindingMode: &waits}
		c.TypeMeta, c.ObjectMeta = meta("StorageClass", "storage.k8s.io/v1", name)
		switch name {
		case "zone-b":
			c.AllowedTopologies = allowed(Zones()[1])
		case "two-zones":
			c.AllowedTopologies = allowed(Zones()[0], Zones()[2])
		case "bound":
			c.VolumeBindingMode = &atOnce
		}
		g.s.StorageClasses = append(g.s.StorageClasses, c)
	}
	d := &storagev1.CSIDriver{}
	d.TypeMeta, d.ObjectMeta = meta("CSIDriver", "storage.k8s.io/v1", storageDriver)
	g.s.CSIDrivers = append(g.s.CSIDrivers, d)
}

func allowed(zones ...string) []corev1.TopologySelectorTerm {
	return []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: corev1.LabelTopologyZone, Values: zones},
	}}}
}

func (g *generator) pools() {
	kinds := []string{"spot", "arm", "batch", "gpu", "zonal", "big", "lanes", "slow", "starting"}
	g.r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, kind := range append([]string{"general"}, kinds[:g.r.IntN(4)]...) {
		g.pool(kind)
	}
}

func (g *generator) pool(kind string) {
	p := &karpv1.NodePool{}
	p.TypeMeta, p.ObjectMeta = meta("NodePool", "karpenter.sh/v1", kind)
	spec := &p.Spec.Template.Spec
	spec.NodeClassRef = &karpv1.NodeClassReference{Group: "cloud.example.com", Kind: "NodeClass", Name: "default"}
	require := func(key string, op corev1.NodeSelectorOperator, values ...string) {
		spec.Requirements = append(spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: op, Values: values})
	}
	label := func(key, value string) {
		if p.Spec.Template.Labels == nil {
			p.Spec.Template.Labels = map[string]string{}
		}
		p.Spec.Template.Labels[key] = value
	}
	taint := func(key string, effect corev1.TaintEffect) {
		spec.Taints = append(spec.Taints, corev1.Taint{Key: key, Value: "true", Effect: effect})
	}
	switch kind {
	case "general":
		if g.chance(40) {
			require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeOnDemand)
		}
		if g.chance(40) {
			require(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64")
		}
	case "spot":
		require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeSpot)
	case "arm":
		require(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "arm64")
		label(labelTeam, "mobile")
	case "batch":
		taint(taintBatch, pick(g, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute))
		label(labelTeam, "batch")
	case "gpu":
		require(LabelFamily, corev1.NodeSelectorOpIn, "g")
		taint(taintGPU, corev1.TaintEffectNoSchedule)
	case "zonal":
		require(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, g.some(Zones()[:2]...)...)
		label(labelTeam, "shop")
	case "big":
		require(LabelCPU, corev1.NodeSelectorOpGt, "8")
		require(LabelFamily, corev1.NodeSelectorOpNotIn, "g")
	case "lanes":
		// The way to a ratio that users write by hand: two pools share the lanes of one label.
		require(labelLane, corev1.NodeSelectorOpIn, "on-demand-1", "on-demand-2")
		require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeOnDemand)
	case "lanes-spot":
		require(labelLane, corev1.NodeSelectorOpIn, "spot-1", "spot-2", "spot-3")
		require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeSpot)
	case "slow":
		taint(taintSlow, corev1.TaintEffectPreferNoSchedule)
	case "starting":
		spec.StartupTaints = []corev1.Taint{{Key: taintStartup, Effect: corev1.TaintEffectNoSchedule}}
		require(labelTeam, corev1.NodeSelectorOpIn, "shop", "batch")
	}
	if g.chance(60) {
		weight := int32(1 + g.r.IntN(100))
		p.Spec.Weight = &weight
	}
	if g.options.Limits && g.chance(50) {
		p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: quantity("%d", 8<<g.r.IntN(5))}
	}
	g.s.NodePools = append(g.s.NodePools, p)
	if kind == "lanes" {
		g.pool("lanes-spot")
	}
}

func (g *generator) daemonSets() {
	for i := range g.r.IntN(4) {
		name := fmt.Sprintf("daemon-%d", i)
		d := &appsv1.DaemonSet{}
		d.TypeMeta, d.ObjectMeta = meta("DaemonSet", "apps/v1", name)
		d.Namespace = metav1.NamespaceDefault
		labels := map[string]string{"app": name}
		p := newPod(name, labels)
		request(p, pick(g, "10m", "50m", "100m"), pick(g, "16Mi", "64Mi", "128Mi"))
		switch g.r.IntN(4) {
		case 0:
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		case 1:
			p.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "amd64"}
		case 2:
			port := int32(9100 + i) // one of its own: two daemons on one port would fit no node
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
		}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: p.Spec}
		g.s.DaemonSets = append(g.s.DaemonSets, d)
	}
}

// nodes are bought from the catalogue under some pool, or come from elsewhere.
func (g *generator) nodes() {
	for i := range g.r.IntN(2 + g.options.Pods/15) {
		t := pick(g, g.s.Catalogue...)
		o := pick(g, t.Offerings...)
		n := &corev1.Node{}
		n.TypeMeta, n.ObjectMeta = meta("Node", "v1", fmt.Sprintf("node-%d", i))
		n.Labels = map[string]string{
			corev1.LabelHostname: n.Name, corev1.LabelArchStable: t.Architecture, corev1.LabelOSStable: "linux",
			corev1.LabelInstanceTypeStable: t.Name,
		}
		for _, list := range [][]corev1.NodeSelectorRequirement{t.Requirements, o.Requirements} {
			for _, r := range list {
				n.Labels[r.Key] = r.Values[0]
			}
		}
		if g.chance(70) {
			p := g.s.NodePools[0] // the one that every type may come from
			n.Labels[karpv1.NodePoolLabelKey] = p.Name
		} else if g.chance(40) {
			n.Labels[labelTeam] = pick(g, "shop", "batch")
			n.Spec.Taints = []corev1.Taint{{Key: taintBatch, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
		}
		if g.chance(8) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
		}
		n.Spec.ProviderID = "cloud:///" + n.Name
		n.Status.Capacity = t.Resources.DeepCopy()
		n.Status.Allocatable = t.Resources.DeepCopy()
		for name, q := range t.Overhead {
			left := n.Status.Allocatable[name]
			left.Sub(q)
			n.Status.Allocatable[name] = left
		}
		g.s.Nodes = append(g.s.Nodes, n)
		g.free = append(g.free, n.Status.Allocatable.DeepCopy())
		g.ports = append(g.ports, map[int32]bool{})
		if !g.options.NoVolumes && g.chance(60) {
			limit := int32(1 + g.r.IntN(8))
			c := &storagev1.CSINode{}
			c.TypeMeta, c.ObjectMeta = meta("CSINode", "storage.k8s.io/v1", n.Name)
			c.Spec.Drivers = []storagev1.CSINodeDriver{{Name: storageDriver, NodeID: n.Name, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}}}
			g.s.CSINodes = append(g.s.CSINodes, c)
		}
	}
}

// running puts a few replicas of each deployment on nodes that have the room, and keeps some of it for daemons. Their
// other constraints may be broken, as in a cluster whose labels have changed since.
func (g *generator) running() {
	for i := range g.apps {
		a := &g.apps[i]
		if a.claims() || !g.chance(40) || len(g.s.Nodes) == 0 {
			continue // a running pod's volume would have to be bound where it runs
		}
		for range 1 + g.r.IntN(4) {
			at := g.r.IntN(len(g.s.Nodes))
			p := g.pod(a)
			if !g.takes(at, p) {
				continue
			}
			p.Name = strings.Replace(p.Name, a.name, a.name+"-old", 1)
			p.Spec.NodeName = g.s.Nodes[at].Name
			p.Spec.SchedulingGates = nil
			p.Status.Phase = corev1.PodRunning
			g.s.Running = append(g.s.Running, p)
		}
	}
}

// takes reserves room for the pod on a node, counting every container and limit, which is more than Kubernetes does.
func (g *generator) takes(at int, p *corev1.Pod) bool {
	left := g.free[at].DeepCopy()
	pods := left[corev1.ResourcePods]
	pods.Sub(quantity("1"))
	left[corev1.ResourcePods] = pods
	for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
			for name, q := range list {
				have := left[name]
				have.Sub(q)
				left[name] = have
			}
		}
		for _, port := range c.Ports {
			if port.HostPort != 0 && g.ports[at][port.HostPort] {
				return false
			}
		}
	}
	reserve := corev1.ResourceList{corev1.ResourceCPU: quantity("500m"), corev1.ResourceMemory: quantity("512Mi"), corev1.ResourcePods: quantity("4")}
	for name, q := range left {
		if r, ok := reserve[name]; ok {
			q.Sub(r)
		}
		if q.Sign() < 0 {
			return false
		}
	}
	g.free[at] = left
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			g.ports[at][port.HostPort] = true
		}
	}
	return true
}
