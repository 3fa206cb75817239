package scenario

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// taintDisrupted is on a node that Karpenter is about to delete.
func taintDisrupted() corev1.Taint {
	return corev1.Taint{Key: karpv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}
}

// asked is when every deletion was asked for. There is no clock here.
func asked() *metav1.Time {
	t := metav1.NewTime(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC))
	return &t
}

// deleted marks an object as one that a server was asked to delete, and that a finalizer keeps.
func deleted(o metav1.Object, finalizer string) {
	o.SetDeletionTimestamp(asked())
	o.SetFinalizers([]string{finalizer})
}

// show draws how far a node of a pool is in its life. n is the node when it is ready for pods; the
// result is what the cluster shows of it, nil where the node has not joined yet. What it does not
// show is in NodeClaims, Ready and Leaving.
func (g *generator) show(n *corev1.Node) *corev1.Node {
	stage := g.r.IntN(14)
	if stage > 7 {
		return n
	}
	pool := g.buyer(n)
	claim := g.claim(n, pool)
	initialized := func(shown *corev1.Node) {
		shown.Labels[karpv1.NodeRegisteredLabelKey], shown.Labels[karpv1.NodeInitializedLabelKey] = "true", "true"
	}
	switch stage {
	case 0: // it is being deleted
		initialized(n)
		g.leaves(n, claim)
		return n
	case 1, 2: // it has not joined
		n.Name = claim.Name
		n.Labels[corev1.LabelHostname] = n.Name
		claim.Status.NodeName = ""
		g.promise(n, claim)
		return nil
	case 3: // its kubelet runs, and nothing has been done to the node yet
		shown := g.partly(n, true)
		shown.Spec.Taints = []corev1.Taint{{Key: karpv1.UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}, {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		g.promise(n, claim)
		return shown
	case 4: // it is registered, and not ready for pods
		shown := g.partly(n, false)
		shown.Labels[karpv1.NodeRegisteredLabelKey] = "true"
		shown.Spec.Taints = slices.Concat(n.Spec.Taints, claim.Spec.StartupTaints)
		if g.chance(50) {
			shown.Spec.Taints = append(shown.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
		}
		g.promise(n, claim)
		return shown
	case 5: // it is ready, and its claim promised more, and other taints
		initialized(n)
		more := n.Status.Allocatable.DeepCopy()
		for name, q := range more {
			q.Add(q)
			more[name] = q
		}
		more[ResourceGPU] = quantity("4")
		claim.Status.Allocatable = more
		claim.Spec.Taints = append(claim.Spec.Taints, corev1.Taint{Key: "example.com/once", Effect: corev1.TaintEffectNoSchedule})
		g.condition(claim, karpv1.ConditionTypeInitialized)
		g.s.NodeClaims = append(g.s.NodeClaims, claim)
		return n
	case 6: // it was there and is gone, or is deleted before it joined
		if g.chance(50) {
			g.condition(claim, karpv1.ConditionTypeInitialized)
		} else {
			claim.Status.NodeName = ""
			deleted(claim, karpv1.TerminationFinalizer)
		}
		g.s.NodeClaims = append(g.s.NodeClaims, claim)
		return nil
	}
	// It is not launched, so nothing is known of it.
	claim.Status = karpv1.NodeClaimStatus{}
	g.s.NodeClaims = append(g.s.NodeClaims, claim)
	return nil
}

// buyer draws the pool that the node was bought for, among those that any type suits, and labels
// and taints the node as the pool says.
func (g *generator) buyer(n *corev1.Node) *karpv1.NodePool {
	var pools []*karpv1.NodePool
	for _, p := range g.s.NodePools {
		if slices.Contains([]string{"general", "batch", "slow", "starting"}, p.Name) {
			pools = append(pools, p)
		}
	}
	pool := pick(g, pools...)
	delete(n.Labels, labelTeam)
	n.Labels[karpv1.NodePoolLabelKey] = pool.Name
	maps.Copy(n.Labels, pool.Spec.Template.Labels)
	if pool.Name == "starting" {
		n.Labels[labelTeam] = pick(g, "shop", "batch")
	}
	n.Labels[corev1.LabelHostname] = n.Name
	n.Spec.Unschedulable = false
	n.Spec.Taints = slices.Clone(pool.Spec.Template.Spec.Taints)
	return pool
}

// claim is that of the node, as Karpenter writes it when it is launched.
func (g *generator) claim(n *corev1.Node, pool *karpv1.NodePool) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{}
	c.TypeMeta, c.ObjectMeta = meta("NodeClaim", "karpenter.sh/v1", pool.Name+"-"+n.Name)
	spec := pool.Spec.Template.Spec
	c.Spec.NodeClassRef, c.Spec.Taints, c.Spec.StartupTaints = spec.NodeClassRef, slices.Clone(spec.Taints), slices.Clone(spec.StartupTaints)
	if g.chance(30) { // people add some of their own
		c.Spec.StartupTaints = append(c.Spec.StartupTaints, corev1.Taint{Key: "example.com/agent", Effect: corev1.TaintEffectNoSchedule})
	}
	c.Labels = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		if key == corev1.LabelHostname {
			continue
		}
		c.Spec.Requirements = append(c.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{n.Labels[key]}})
		if key == karpv1.NodePoolLabelKey || g.chance(80) {
			c.Labels[key] = n.Labels[key]
		}
	}
	c.Status.ProviderID, c.Status.NodeName = n.Spec.ProviderID, n.Name
	c.Status.Capacity, c.Status.Allocatable = n.Status.Capacity.DeepCopy(), n.Status.Allocatable.DeepCopy()
	g.condition(c, karpv1.ConditionTypeLaunched)
	return c
}

func (g *generator) condition(c *karpv1.NodeClaim, kind string) {
	c.Status.Conditions = append(c.Status.Conditions, status.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: *asked()})
}

// promise adds a claim, and the node that it stands for as it will be.
func (g *generator) promise(n *corev1.Node, c *karpv1.NodeClaim) {
	n.Labels[karpv1.NodeRegisteredLabelKey], n.Labels[karpv1.NodeInitializedLabelKey] = "true", "true"
	g.s.NodeClaims, g.s.Ready = append(g.s.NodeClaims, c), append(g.s.Ready, n)
}

// partly is the node with a part of its labels and resources; early is before the node is
// registered.
func (g *generator) partly(n *corev1.Node, early bool) *corev1.Node {
	shown := n.DeepCopy()
	if early {
		for key := range n.Labels {
			if key != corev1.LabelHostname && key != corev1.LabelArchStable && key != corev1.LabelOSStable {
				delete(shown.Labels, key)
			}
		}
	}
	for _, list := range []corev1.ResourceList{shown.Status.Capacity, shown.Status.Allocatable} {
		for name := range list {
			if name == ResourceGPU || early && name != corev1.ResourcePods {
				list[name] = quantity("0") // its device plugin is not there yet, or its kubelet has just begun
			}
		}
	}
	if early && g.chance(30) {
		shown.Status.Capacity, shown.Status.Allocatable = nil, nil
	}
	return shown
}

// leaves marks a node that will not be there any more, in one of the ways in which a cluster says
// so.
func (g *generator) leaves(n *corev1.Node, c *karpv1.NodeClaim) {
	g.s.Leaving = append(g.s.Leaving, n.Name)
	listed := false
	switch g.r.IntN(3) {
	case 0:
		deleted(n, karpv1.TerminationFinalizer)
		listed = g.chance(50)
	case 1:
		n.Spec.Taints = append(n.Spec.Taints, taintDisrupted())
		listed = g.chance(50)
	case 2: // the claim is deleted first
		deleted(c, karpv1.TerminationFinalizer)
		listed = true
	}
	if listed {
		g.condition(c, karpv1.ConditionTypeInitialized)
		g.s.NodeClaims = append(g.s.NodeClaims, c)
	}
}

// owned says who made a running pod, and who makes another one when its node goes.
func (g *generator) owned(p *corev1.Pod) {
	yes := true
	kind := pick(g, "", "ReplicaSet", "ReplicaSet", "StatefulSet", "Node")
	switch kind {
	case "":
		return
	case "Node": // a static pod of the node, as its kubelet mirrors it
		if len(p.Spec.Volumes)+len(p.Spec.ResourceClaims) > 0 { // which these must not have
			return
		}
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "static"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: p.Spec.NodeName, UID: types.UID(p.Spec.NodeName), Controller: &yes}}
		return
	}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: p.Labels["app"], UID: types.UID(p.Labels["app"]), Controller: &yes}}
}

// sizeWithin takes the pod's own limits away where a LimitRange gives its containers more: defaults
// of the pod's requests come before those of LimitRanges, so that a server refuses the pod.
func (g *generator) sizeWithin(p *corev1.Pod) {
	limited := slices.ContainsFunc(g.s.LimitRanges, func(l *corev1.LimitRange) bool { return l.Namespace == p.Namespace })
	silent := slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
		return len(c.Resources.Requests)+len(c.Resources.Limits) < 2
	})
	if limited && silent && p.Spec.Resources != nil && p.Spec.Resources.Limits != nil {
		p.Spec.Resources = nil
	}
}

// freeVolumes draws volumes that no claim has yet, whose reaches overlap: of nodes, of zones, and
// of all.
func (g *generator) freeVolumes() {
	for i := range g.r.IntN(8) {
		v := &corev1.PersistentVolume{}
		v.TypeMeta, v.ObjectMeta = meta("PersistentVolume", "v1", fmt.Sprintf("free-%d", i))
		v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: quantity("%s", pick(g, "1Gi", "1Gi", "2Gi", "5Gi"))}
		v.Spec.StorageClassName = pick(g, classLocal, classLocal, classLocal, "waits")
		v.Spec.Local = &corev1.LocalVolumeSource{Path: "/mnt/" + v.Name}
		reach := in(corev1.LabelTopologyZone, g.some(Zones()...)...)
		if len(g.s.Nodes) > 0 && g.chance(50) {
			reach = in(corev1.LabelHostname, g.some(pick(g, g.s.Nodes...).Name, pick(g, g.s.Nodes...).Name)...)
		}
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{reach}},
		}}}
		if g.chance(15) { // a share of the network, which every node reaches
			v.Spec.Local, v.Spec.NodeAffinity = nil, nil
			v.Spec.NFS = &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/" + v.Name}
		}
		g.s.PVs = append(g.s.PVs, v)
	}
}

// limitRanges draws defaults and bounds of namespaces, such that an API server takes every pod that
// Generate draws.
func (g *generator) limitRanges() {
	for _, ns := range []string{metav1.NamespaceDefault, "shop", "batch", "system"} {
		for i := range pick(g, 0, 0, 1, 1, 2) {
			l := &corev1.LimitRange{}
			l.TypeMeta, l.ObjectMeta = meta("LimitRange", "v1", fmt.Sprintf("usual-%d", i))
			l.Namespace = ns
			item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer}
			if g.chance(60) {
				item.Default = corev1.ResourceList{corev1.ResourceCPU: quantity("%s", pick(g, "4", "5")), corev1.ResourceMemory: quantity("%s", pick(g, "6Gi", "8Gi"))}
			}
			if g.chance(70) {
				item.DefaultRequest = corev1.ResourceList{corev1.ResourceCPU: quantity("%s", pick(g, "70m", "200m", "400m")), corev1.ResourceMemory: quantity("%s", pick(g, "100Mi", "300Mi"))}
			}
			if item.DefaultRequest == nil || g.chance(30) {
				item.Min = corev1.ResourceList{corev1.ResourceCPU: quantity("10m")}
			}
			l.Spec.Limits = []corev1.LimitRangeItem{item}
			if g.chance(30) { // bounds of other things give nothing to containers
				l.Spec.Limits = append(l.Spec.Limits,
					corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: corev1.ResourceList{corev1.ResourceStorage: quantity("100Gi")}},
				)
			}
			g.s.LimitRanges = append(g.s.LimitRanges, l)
		}
	}
}

// nodeFeatures are what kubelets of today declare; pods may need the first two.
func nodeFeatures() []string {
	return []string{"RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "InPlacePodLevelResourcesVerticalScaling"}
}

// kubelets gives each node a kubelet of some age and the features that it declares. A pool buys
// nodes with the kubelet of its newest node; one without a node that shows it buys the newest
// kubelet.
func (g *generator) kubelets() {
	g.s.Declared = map[string][]string{}
	pools, newest := map[string]string{}, map[string]metav1.Time{} // by node, by pool
	for _, n := range slices.Concat(g.s.Nodes, g.s.Ready) {
		pools[n.Name] = n.Labels[karpv1.NodePoolLabelKey]
	}
	shown := map[string]*corev1.Node{}
	for i, n := range g.s.Nodes {
		n.CreationTimestamp = metav1.NewTime(asked().Add(time.Duration(g.r.IntN(5)*100-i) * time.Minute))
		if g.chance(85) { // people leave it out
			n.Status.NodeInfo.KubeletVersion = fmt.Sprintf("v1.36.%d", g.r.IntN(3))
			n.Status.DeclaredFeatures = slices.DeleteFunc(nodeFeatures(), func(string) bool { return g.chance(25) })
			if pool, known := pools[n.Name], newest[pools[n.Name]]; known.IsZero() || n.CreationTimestamp.After(known.Time) {
				newest[pool], g.s.Declared[pool] = n.CreationTimestamp, n.Status.DeclaredFeatures
			}
		}
		shown[n.Name] = n
	}
	for i, n := range g.s.Ready {
		if there := shown[n.Name]; there != nil {
			n.CreationTimestamp, n.Status.NodeInfo, n.Status.DeclaredFeatures = there.CreationTimestamp, there.Status.NodeInfo, there.Status.DeclaredFeatures
			continue
		}
		g.s.Ready[i] = g.s.withKubelet(n)
	}
}

// withKubelet is a copy of a node to come, with the features that its kubelet will declare.
func (s Scenario) withKubelet(n *corev1.Node) *corev1.Node {
	n = n.DeepCopy()
	features, ok := s.Declared[n.Labels[karpv1.NodePoolLabelKey]]
	if !ok {
		features = nodeFeatures()
	}
	n.Status.DeclaredFeatures = features
	return n
}

// drains draws what keeps pods from being evicted, for good or for now, and notes which of them
// stay where they are for good.
func (g *generator) drains() {
	g.s.Kept = map[types.NamespacedName]bool{}
	keep := func(p *corev1.Pod) {
		if p.DeletionTimestamp == nil {
			g.s.Kept[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = true
		}
	}
	for _, p := range g.s.Running {
		if g.chance(10) {
			p.Annotations = maps.Clone(p.Annotations)
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, karpv1.DoNotDisruptAnnotationKey, pick(g, "true", "true", "soon", "1h"))
		}
		if p.Annotations[karpv1.DoNotDisruptAnnotationKey] == "true" {
			keep(p)
		}
	}
	for i := range g.apps {
		if a := &g.apps[i]; g.chance(12) {
			most := pick(g, intstr.FromInt32(0), intstr.FromString("0%"), intstr.FromInt32(1)) // the last allows none today
			b := &policyv1.PodDisruptionBudget{}
			b.TypeMeta, b.ObjectMeta = meta("PodDisruptionBudget", "policy/v1", a.name)
			b.Namespace = a.template.Namespace
			b.Spec.Selector, b.Spec.MaxUnavailable = &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.name}}, &most
			selector := labels.SelectorFromSet(b.Spec.Selector.MatchLabels)
			for _, p := range g.s.Running {
				if most.IntValue() == 0 && p.Namespace == b.Namespace && selector.Matches(labels.Set(p.Labels)) {
					keep(p)
				}
			}
			g.s.PodDisruptionBudgets = append(g.s.PodDisruptionBudgets, b)
		}
	}
}
