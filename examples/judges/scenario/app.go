package scenario

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// app is a deployment: what its replicas have in common.
type app struct {
	name      string
	namespace string
	replicas  int
	made      int
	template  *corev1.Pod
	// hashes is how many revisions of the deployment there are at once; a replica has the hash of
	// its revision.
	hashes int
	// tracked apps have a label more, stable or canary, on some of their replicas.
	tracked bool
	// volumes are the storage classes of the claims that each replica brings; shared is one claim
	// for all.
	volumes []string
	shared  string
	// zone is where the volume of the shared claim is; empty until a running replica has it.
	zone string
}

func (g *generator) drawApps() {
	for left := g.options.Pods; left > 0; {
		g.denser = pick(g, 30, 100, 100, 170)
		n := 1 + g.r.IntN(1+g.r.IntN(max(g.options.Pods/5, 4)))
		a := app{
			name: fmt.Sprintf("app-%d", len(g.apps)), namespace: pick(g, "default", "default", "shop", "batch"),
			hashes: pick(g, 1, 1, 2, 3), tracked: g.chance(30),
		}
		a.template = newPod(a.name, map[string]string{"app": a.name, labelTier: pick(g, "front", "middle", "back")})
		a.template.Namespace = a.namespace
		g.size(a.template)
		g.sizeWithin(a.template)
		g.where(a.template)
		g.spreads(a.template)
		g.affinities(a.template)
		g.extras(&a)
		if ignored(a.template) {
			n = min(n, 2)
		}
		if (a.template.Spec.Affinity != nil && apartByDomain(a.template.Spec.Affinity.PodAntiAffinity) || a.shared != "") && g.chance(80) {
			n = min(n, 4) // a hundred replicas that want a domain each, or one disk, say no more than four do
		}
		if a.shared == classLocal || slices.Contains(a.volumes, classLocal) {
			n = min(n, 3) // there are few volumes that no driver makes
		}
		a.replicas = min(n, left)
		left -= a.replicas
		g.apps = append(g.apps, a)
	}
}

// ignored reports whether nobody plans the pod.
func ignored(p *corev1.Pod) bool {
	return p.Spec.SchedulingGates != nil || p.Spec.SchedulerName != "" || p.Spec.ResourceClaims != nil
}

// apartByDomain reports whether some pods must not share a zone, or anything else that is larger
// than a node.
func apartByDomain(a *corev1.PodAntiAffinity) bool {
	return a != nil && slices.ContainsFunc(a.RequiredDuringSchedulingIgnoredDuringExecution, func(t corev1.PodAffinityTerm) bool {
		return t.TopologyKey != corev1.LabelHostname
	})
}

// teams are the values of the team label that some pool offers, or all three now and then or where
// none does.
func (g *generator) teams() []string {
	byPool := map[string][]string{"arm": {"mobile"}, "batch": {"batch"}, "zonal": {"shop"}, "starting": {"shop", "batch"}}
	var teams []string
	for _, p := range g.s.NodePools {
		teams = append(teams, byPool[p.Name]...)
	}
	if len(teams) == 0 || g.chance(10) {
		return []string{"shop", "batch", "mobile"}
	}
	return teams
}

// replica is the next one without its claims.
func (g *generator) replica(a *app) *corev1.Pod {
	p := a.template.DeepCopy()
	p.Name = fmt.Sprintf("%s-%d", a.name, a.made)
	p.Labels[labelVersion] = []string{"1", "2"}[a.made%2]
	p.Labels[labelHash] = fmt.Sprintf("%s-%d", a.name, a.made%a.hashes)
	if a.tracked && a.made%3 < 2 {
		p.Labels[labelTrack] = []string{"stable", "canary"}[a.made%3]
	}
	return p
}

// pod makes the next replica, with its own claims, whose volumes are in the zone if it is not
// empty.
func (g *generator) pod(a *app, zone string) *corev1.Pod {
	p := g.replica(a)
	a.made++
	for i, class := range a.volumes {
		g.mount(p, fmt.Sprintf("data-%d-%s", i, p.Name), class, zone)
	}
	if a.shared != "" {
		g.mount(p, "shared-"+a.name, a.shared, zone)
		if a.zone == "" {
			a.zone = zone
		}
	}
	return p
}

// size draws requests in the ways that they can be written.
func (g *generator) size(p *corev1.Pod) {
	request(p, pick(g, "50m", "100m", "33300u", "250m", "500m", "1", "1500m", "2", "4"), pick(g, "64Mi", "256Mi", "512Mi", "1Gi", "2Gi", "6Gi"))
	main := &p.Spec.Containers[0]
	switch g.r.IntN(12) {
	case 0: // limits alone
		main.Resources = corev1.ResourceRequirements{Limits: main.Resources.Requests}
	case 1: // nothing asked
		main.Resources = corev1.ResourceRequirements{}
	}
	switch g.r.IntN(12) {
	case 0: // a heavy start
		p.Spec.InitContainers = []corev1.Container{initContainer("setup", "3", nil)}
	case 1: // a sidecar
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = []corev1.Container{initContainer("proxy", "200m", &always), initContainer("setup", "1", nil)}
	}
	if g.chance(8) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: "second", Image: "registry.example.com/second",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: quantity("150m")}},
		})
		main = &p.Spec.Containers[0]
	}
	if g.chance(8) { // the pod as a whole, which must ask for no less than its containers
		p.Spec.Resources = pick(g,
			&corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: quantity("5")}},
			&corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: quantity("6"), corev1.ResourceMemory: quantity("8Gi")}},
		)
	}
	if g.chance(6) {
		one := corev1.ResourceList{ResourceGPU: quantity("1")}
		maps.Copy(one, main.Resources.Requests)
		main.Resources = corev1.ResourceRequirements{Requests: one, Limits: corev1.ResourceList{ResourceGPU: quantity("1")}}
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: taintGPU, Operator: corev1.TolerationOpExists})
	}
}

func initContainer(name, cpu string, policy *corev1.ContainerRestartPolicy) corev1.Container {
	return corev1.Container{
		Name: name, Image: "registry.example.com/" + name, RestartPolicy: policy,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
	}
}

// where draws tolerations, node selectors and node affinity.
func (g *generator) where(p *corev1.Pod) {
	if g.often(25) {
		for range g.several(3) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, pick(g,
				corev1.Toleration{Key: taintBatch, Operator: corev1.TolerationOpExists},
				corev1.Toleration{Key: taintBatch, Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule},
				corev1.Toleration{Key: taintSlow, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectPreferNoSchedule},
				corev1.Toleration{Operator: corev1.TolerationOpExists},
			))
		}
	}
	if g.often(25) {
		key, value := corev1.LabelTopologyZone, pick(g, Zones()...)
		switch g.r.IntN(5) {
		case 0:
			key, value = corev1.LabelArchStable, pick(g, "amd64", "arm64")
		case 1:
			key, value = karpv1.CapacityTypeLabelKey, pick(g, karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand)
		case 2:
			key, value = labelTeam, pick(g, g.teams()...)
		case 3:
			key, value = LabelFamily, pick(g, "c", "m", "r")
		}
		p.Spec.NodeSelector = map[string]string{key: value}
	}
	affinity := &corev1.NodeAffinity{}
	if g.often(20) {
		n := g.several(3)
		if g.chance(g.terms / 2) {
			n = 3 + g.r.IntN(10)
		}
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
		terms := &affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for range n {
			*terms = append(*terms, g.nodeTerm())
		}
	}
	if !g.options.NoPreferences && g.often(15) {
		for range g.several(4) {
			affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: g.weight(), Preference: g.nodeTerm()})
		}
	}
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution != nil || affinity.PreferredDuringSchedulingIgnoredDuringExecution != nil {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
	}
}

// weight is that of a preference.
func (g *generator) weight() int32 { return pick[int32](g, 1, 10, 50, 100, int32(1+g.r.IntN(100))) }

// nodeTerm asks something of one label or of a few, or now and then for nodes by name.
func (g *generator) nodeTerm() corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	if len(g.s.Nodes) > 0 && g.chance(8) {
		term.MatchFields = []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: pick(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{pick(g, g.s.Nodes...).Name},
		}}
		if g.chance(50) {
			return term
		}
	}
	for range g.several(4) {
		expression := pick(g,
			in(corev1.LabelTopologyZone, g.some(Zones()...)...),
			corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{pick(g, Zones()...)}},
			corev1.NodeSelectorRequirement{Key: LabelCPU, Operator: pick(g, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt), Values: []string{pick(g, "4", "8", "32")}},
			in(LabelFamily, g.some("c", "m", "r", "a")...),
			in(corev1.LabelArchStable, pick(g, "amd64", "arm64")),
			corev1.NodeSelectorRequirement{Key: labelTeam, Operator: pick(g, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)},
			corev1.NodeSelectorRequirement{Key: labelTeam, Operator: corev1.NodeSelectorOpNotIn, Values: g.some("shop", "batch", "mobile")},
			in(karpv1.CapacityTypeLabelKey, g.some(karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand)...),
			corev1.NodeSelectorRequirement{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpNotIn, Values: []string{karpv1.CapacityTypeSpot}},
		)
		// Two demands on one label would contradict each other more often than not.
		if !slices.ContainsFunc(term.MatchExpressions, func(have corev1.NodeSelectorRequirement) bool { return have.Key == expression.Key }) {
			term.MatchExpressions = append(term.MatchExpressions, expression)
		}
	}
	return term
}

// extras draws ports, priorities, runtime classes, volumes, and what makes a pod another's to plan.
func (g *generator) extras(a *app) {
	p := a.template
	switch g.r.IntN(20) {
	case 0:
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: pick[int32](g, 8080, 8443, 9100), Protocol: pick(g, corev1.ProtocolTCP, corev1.ProtocolUDP)}}
	case 1:
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080, HostIP: pick(g, "10.0.0.1", "10.0.0.2")}}
	case 2:
		p.Spec.HostNetwork = true
		if g.options.Changing && g.chance(60) {
			p.Spec.HostUsers = new(false) // which needs a feature of the node
		}
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
	}
	if g.often(20) {
		p.Spec.PriorityClassName = pick(g, priorities()...)
		if g.chance(40) { // as a server hands it out
			value := priorityValue(p.Spec.PriorityClassName)
			p.Spec.Priority = &value
		}
	}
	if g.often(6) {
		name := pick(g, runtimeSandbox, runtimePlain)
		p.Spec.RuntimeClassName = &name
		if overhead := g.s.RuntimeClasses[0].Overhead; name == runtimeSandbox && g.chance(50) {
			p.Spec.Overhead = overhead.DeepCopy().PodFixed
		}
	}
	if g.options.Changing && g.often(5) { // so does this
		never, c := corev1.ContainerRestartPolicyNever, &p.Spec.Containers[0]
		c.RestartPolicy, c.RestartPolicyRules = &never, []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
		}}
	}
	if g.often(2) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	}
	if g.often(2) {
		p.Spec.SchedulerName = "other-scheduler"
	}
	if g.often(2) {
		device := "device"
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: device, ResourceClaimName: &device}}
	}
	if g.options.NoVolumes {
		return
	}
	switch g.r.IntN(14) {
	case 0:
		a.volumes = []string{pick(g, "waits", "zone-b", "two-zones", "bound")}
	case 1:
		a.volumes = []string{"waits", pick(g, "waits", "two-zones")}
	case 2:
		a.shared = pick(g, "waits", "bound")
	case 3:
		p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec("waits")},
		}}}}
	case 4:
		if g.options.Changing {
			a.volumes = []string{classLocal, classLocal}[:1+g.r.IntN(2)]
		}
	case 5:
		if g.options.Changing {
			a.shared = classLocal
		}
	}
}

func claimSpec(class string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}},
	}
}

// mount adds a volume to the pod, and its claim unless it exists. The claim is bound already if the
// zone is not empty, and if its class is "bound", then to a volume in some zone.
func (g *generator) mount(p *corev1.Pod, claim, class, zone string) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
		Name:         fmt.Sprintf("volume-%d", len(p.Spec.Volumes)),
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}},
	})
	for _, have := range g.s.PVCs {
		if have.Name == claim && have.Namespace == p.Namespace {
			return
		}
	}
	c := &corev1.PersistentVolumeClaim{Spec: claimSpec(class)}
	c.TypeMeta, c.ObjectMeta = meta("PersistentVolumeClaim", "v1", claim)
	c.Namespace = p.Namespace
	if class == classLocal {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = quantity("%s", pick(g, "1Gi", "1Gi", "2Gi"))
	}
	if class == "bound" && zone == "" {
		zone = pick(g, Zones()...)
	}
	if zone != "" {
		v := &corev1.PersistentVolume{}
		v.TypeMeta, v.ObjectMeta = meta("PersistentVolume", "v1", "pv-"+p.Namespace+"-"+claim)
		v.Spec.AccessModes, v.Spec.Capacity, v.Spec.StorageClassName = c.Spec.AccessModes, c.Spec.Resources.Requests, class
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: storageDriver, VolumeHandle: v.Name}
		v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name}
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{in(corev1.LabelTopologyZone, zone)}},
		}}}
		if !g.chance(10) { // the others are bound by the volume, as after a restore
			c.Spec.VolumeName = v.Name
		}
		g.s.PVs = append(g.s.PVs, v)
	}
	g.s.PVCs = append(g.s.PVCs, c)
}
