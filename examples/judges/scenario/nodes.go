package scenario

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	k8sresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelpers "k8s.io/component-helpers/resource"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

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
			if !g.options.Changing || g.chance(50) { // its controller adds it within moments
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
			}
		}
		n.Spec.ProviderID = "cloud:///" + n.Name
		n.Status.Capacity = t.Resources.DeepCopy()
		n.Status.Allocatable = t.Resources.DeepCopy()
		for name, q := range t.Overhead {
			left := n.Status.Allocatable[name]
			left.Sub(q)
			n.Status.Allocatable[name] = left
		}
		if g.chance(4) { // no kubelet leaves it out, but people do
			delete(n.Labels, corev1.LabelHostname)
		}
		shown := n
		if g.options.Changing {
			if shown = g.show(n); shown == nil {
				continue
			}
		}
		g.s.Nodes = append(g.s.Nodes, shown)
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

// running puts a few replicas of each deployment on nodes that have the room, and keeps some of it
// for daemons. Some of them are being deleted. Their other constraints may be broken, as in a
// cluster whose labels have changed since.
func (g *generator) running() {
	if len(g.s.Nodes) == 0 {
		return
	}
	for i := range g.apps {
		a := &g.apps[i]
		if len(a.template.Spec.Volumes) > 0 || !g.chance(40) {
			continue // a claim made for a pod alone would have to be bound, too
		}
		terminating := pick(g, 0, 0, 30, 100) // a deployment that is being rolled out, or removed
		for range 1 + g.r.IntN(4) {
			at := g.r.IntN(len(g.s.Nodes))
			zone := g.s.Nodes[at].Labels[corev1.LabelTopologyZone]
			if a.shared != "" && (a.zone != "" && a.zone != zone || zone == "") {
				continue // the claim's volume is in the zone of the first
			}
			p := g.replica(a)
			if !g.takes(at, p) {
				continue
			}
			p = g.pod(a, zone)
			p.Name = strings.Replace(p.Name, a.name, a.name+"-old", 1)
			p.Spec.NodeName = g.s.Nodes[at].Name
			p.Spec.SchedulingGates = nil
			p.Status.Phase = corev1.PodRunning
			if g.options.Changing {
				g.owned(p)
			}
			if g.chance(10) { // it was made smaller in place, and its kubelet has not done so yet
				p.Status.ContainerStatuses = granted(p.Spec.Containers)
				p.Status.InitContainerStatuses = granted(p.Spec.InitContainers)
			}
			if g.options.Changing && p.Spec.Resources != nil && g.chance(50) { // the same of the pod as a whole
				held := corev1.ResourceList{corev1.ResourceCPU: quantity("%s", pick(g, "7", "8"))}
				p.Status.Resources, p.Status.AllocatedResources = &corev1.ResourceRequirements{Requests: held}, held
				if g.chance(50) { // its kubelet has done so already
					p.Status.Resources = &corev1.ResourceRequirements{Requests: p.Spec.Resources.Requests}
				}
			}
			if g.chance(terminating) {
				grace := int64(30) // a server writes both into a pod that it was asked to delete
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = asked(), &grace
			}
			g.s.Running = append(g.s.Running, p)
		}
	}
}

// full draws pods that use nodes up: a large one, and more small ones than fit beside it. They can
// go nowhere else, so a plan that counts too much of anything on the node leaves out one that fits,
// and a plan that counts too little has one too many. Now and then a running pod of the node is
// being deleted to make room for the large one, which is nominated to the node.
func (g *generator) full() {
	if len(g.s.Nodes) == 0 {
		return
	}
	for i := range pick(g, 0, 1, 1, 2) {
		if n := pick(g, g.s.Nodes...); !slices.Contains(g.s.Leaving, n.Name) {
			g.fill(n, fmt.Sprintf("fill-%d", i))
		}
	}
}

// fill is [generator.full] of one node.
func (g *generator) fill(n *corev1.Node, app string) {
	resource, step := corev1.ResourceCPU, quantity("100m")
	if g.chance(40) {
		resource, step = corev1.ResourceMemory, quantity("64Mi")
	}
	namespace := pick(g, metav1.NamespaceDefault, "shop", "batch")
	tier := pick(g, "front", "middle", "back")
	one := func(name string, q k8sresource.Quantity, priority string) *corev1.Pod {
		p := newPod(name, map[string]string{"app": app, labelTier: tier})
		p.Namespace, p.Spec.PriorityClassName = namespace, priority
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{resource: q}
		g.s.Pods = append(g.s.Pods, p)
		return p
	}
	size := g.remaining(n, resource)
	beside := step.DeepCopy()
	beside.Mul(int64(2 + g.r.IntN(5)))
	nominated := g.chance(50)
	for _, p := range g.s.Running {
		if nominated && p.Spec.NodeName == n.Name && p.DeletionTimestamp == nil && g.chance(30) {
			size.Add(requests(p)[resource])
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = asked(), new(int64(30))
		}
	}
	size.Sub(beside)
	if size.Cmp(step) > 0 {
		large := one(app+"-large", size, pick(g, "raised", "usual"))
		large.Spec.Containers[0].Resources.Limits = corev1.ResourceList{resource: size} // or a LimitRange says less
		if nominated {
			g.nominate(large, n)
		}
		if !nominated || g.chance(50) {
			g.pin(large, n)
		}
	}
	if g.chance(60) {
		for i := range 1 + g.r.IntN(2) {
			above := beside.DeepCopy()
			above.Add(step)
			g.pin(one(fmt.Sprintf("%s-above-%d", app, i), above, pick(g, "high", "high", "raised")), n)
		}
	}
	kind, driver := pick(g, "silent", "sandboxed", newVolume, oldVolume, oldVolume, ownDisk, "", ""), pick(g, append(migratedPlugins(), migratedPlugins()[0])...)
	if (kind == oldVolume || kind == ownDisk) && !g.options.NoVolumes {
		g.attaches(n, driver)
	}
	for i := range 6 + g.r.IntN(4) {
		p := one(fmt.Sprintf("%s-%d", app, i), step, "low")
		g.pin(p, n)
		switch kind {
		case "silent": // a LimitRange may say what it asks
			p.Spec.Containers[0].Resources.Requests = nil
		case "sandboxed":
			p.Spec.RuntimeClassName = new(runtimeSandbox)
		case newVolume, oldVolume, ownDisk:
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantity("10m")}
			if !g.options.NoVolumes {
				g.disk(p, kind, driver, n.Labels[corev1.LabelTopologyZone])
			}
		}
	}
}

// nominate says that room on a node is being made for a pod.
func (g *generator) nominate(p *corev1.Pod, n *corev1.Node) {
	p.Status.NominatedNodeName = n.Name
	if !g.options.Nominated {
		p.Namespace, p.Spec.PriorityClassName = "system", pick(g, "high", lowest)
		delete(p.Labels, labelTier)
	}
}

// Volumes of the pods that fill a node: one to be made, an old one that is bound, and one that the
// pod names itself.
const (
	newVolume = "new volume"
	oldVolume = "old volume"
	ownDisk   = "own disk"
)

// disk gives a pod of [generator.full] a volume of its own.
func (g *generator) disk(p *corev1.Pod, kind, driver, zone string) {
	switch {
	case kind == newVolume:
		class := "two-zones" // no free volume has it, so that each claim attaches one
		if zone == Zones()[1] {
			class = "zone-b"
		}
		g.mount(p, "data-"+p.Name, class, "")
	case kind == oldVolume && zone != "":
		g.mount(p, "data-"+p.Name, "waits", zone)
		inTree(&g.s.PVs[len(g.s.PVs)-1].Spec, driver)
	default:
		v := corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeHandle: "disk-of-" + p.Name}}}
		inTree(&v, driver)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{
			AWSElasticBlockStore: v.AWSElasticBlockStore, GCEPersistentDisk: v.GCEPersistentDisk, AzureDisk: v.AzureDisk,
		}})
	}
}

// attaches lets a driver run on a node, with a small limit.
func (g *generator) attaches(n *corev1.Node, driver string) {
	at := slices.IndexFunc(g.s.CSINodes, func(c *storagev1.CSINode) bool { return c.Name == n.Name })
	if at < 0 {
		c := &storagev1.CSINode{}
		c.TypeMeta, c.ObjectMeta = meta("CSINode", "storage.k8s.io/v1", n.Name)
		at, g.s.CSINodes = len(g.s.CSINodes), append(g.s.CSINodes, c)
	}
	limit, spec := int32(1+g.r.IntN(4)), &g.s.CSINodes[at].Spec
	if !slices.ContainsFunc(spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver }) {
		spec.Drivers = append(spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: n.Name, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}})
	}
}

// pin lets a pod go to one node only.
func (g *generator) pin(p *corev1.Pod, n *corev1.Node) {
	if host, ok := n.Labels[corev1.LabelHostname]; ok && g.chance(50) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: host}
		return
	}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{in(metav1.ObjectNameField, n.Name)}}},
	}}}
}

// remaining is about what the pods of a node and the daemons leave of a resource.
func (g *generator) remaining(n *corev1.Node, of corev1.ResourceName) k8sresource.Quantity {
	for _, ready := range g.s.Ready {
		if ready.Name == n.Name {
			n = ready
		}
	}
	out := n.Status.Allocatable[of].DeepCopy()
	for _, p := range g.s.Running {
		if p.Spec.NodeName == n.Name {
			out.Sub(requests(p)[of])
		}
	}
	for _, d := range g.s.DaemonSets {
		out.Sub(requests(&corev1.Pod{Spec: d.Spec.Template.Spec})[of])
	}
	return out
}

// requests are what a pod that an API server has stored holds.
func requests(p *corev1.Pod) corev1.ResourceList {
	p = p.DeepCopy()
	coredefaults.SetObjectDefaults_Pod(p)
	return resourcehelpers.PodRequests(p, resourcehelpers.PodResourcesOptions{UseStatusResources: true})
}

// granted is what a kubelet says of containers that run with a core more than they ask for.
func granted(containers []corev1.Container) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range containers {
		held := containers[i].Resources.Requests.DeepCopy()
		cpu := held.Cpu().DeepCopy()
		cpu.Add(quantity("1"))
		if held == nil {
			held = corev1.ResourceList{}
		}
		held[corev1.ResourceCPU] = cpu
		out = append(out, corev1.ContainerStatus{Name: containers[i].Name, Resources: &corev1.ResourceRequirements{Requests: held}, AllocatedResources: held})
	}
	return out
}

// takes reserves room for the pod on a node, counting every container and limit, the overhead and
// the requests of the pod as a whole, which is more than Kubernetes does.
func (g *generator) takes(at int, p *corev1.Pod) bool {
	left := g.free[at].DeepCopy()
	pods := left[corev1.ResourcePods]
	pods.Sub(quantity("1"))
	left[corev1.ResourcePods] = pods
	lists := []corev1.ResourceList{p.Spec.Overhead}
	if p.Spec.Resources != nil {
		lists = append(lists, p.Spec.Resources.Requests)
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		lists = append(lists, c.Resources.Requests, c.Resources.Limits)
		for _, port := range c.Ports {
			if port.HostPort != 0 && g.ports[at][port.HostPort] {
				return false
			}
		}
	}
	for _, list := range lists {
		for name, q := range list {
			have := left[name]
			have.Sub(q)
			left[name] = have
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
