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
	// volumes are the storage classes of the claims that each replica brings; shared is one claim for all.
	volumes []string
	shared  string
}

func (a *app) claims() bool {
	return len(a.volumes) > 0 || a.shared != "" || len(a.template.Spec.Volumes) > 0
}

func (g *generator) drawApps() {
	for left := g.options.Pods; left > 0; {
		n := 1 + g.r.IntN(1+g.r.IntN(max(g.options.Pods/5, 4)))
		a := app{name: fmt.Sprintf("app-%d", len(g.apps)), namespace: pick(g, "default", "default", "shop", "batch")}
		a.template = newPod(a.name, map[string]string{"app": a.name, labelTier: pick(g, "front", "middle", "back")})
		a.template.Namespace = a.namespace
		g.size(a.template)
		g.where(a.template)
		g.domains(a.template)
		g.friends(a.template)
		g.extras(&a)
		if a.template.Spec.SchedulingGates != nil {
			n = min(n, 2)
		}
		if (a.template.Spec.Affinity != nil && apartByZone(a.template.Spec.Affinity.PodAntiAffinity) || a.shared != "") && g.chance(80) {
			n = min(n, 4) // a hundred replicas that want a zone each, or one disk, say no more than four do
		}
		a.replicas = min(n, left)
		left -= a.replicas
		g.apps = append(g.apps, a)
	}
}

func apartByZone(a *corev1.PodAntiAffinity) bool {
	return a != nil && slices.ContainsFunc(a.RequiredDuringSchedulingIgnoredDuringExecution, func(t corev1.PodAffinityTerm) bool {
		return t.TopologyKey == corev1.LabelTopologyZone
	})
}

// teams are the values of the team label that some pool offers, or all three now and then or where none does.
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

// pod makes the next replica, with its own claims.
func (g *generator) pod(a *app) *corev1.Pod {
	p := a.template.DeepCopy()
	p.Name = fmt.Sprintf("%s-%d", a.name, a.made)
	p.Labels[labelVersion] = []string{"1", "2"}[a.made%2]
	a.made++
	for i, class := range a.volumes {
		g.mount(p, fmt.Sprintf("data-%d-%s", i, p.Name), class)
	}
	if a.shared != "" {
		g.mount(p, "shared-"+a.name, a.shared)
	}
	return p
}

// size draws requests in the ways that they can be written.
func (g *generator) size(p *corev1.Pod) {
	request(p, pick(g, "50m", "100m", "250m", "500m", "1", "1500m", "2", "4"), pick(g, "64Mi", "256Mi", "512Mi", "1Gi", "2Gi", "6Gi"))
	main := &p.Spec.Containers[0]
	switch g.r.IntN(12) {
	case 0: // limits alone
		main.Resources = corev1.ResourceRequirements{Limits: main.Resources.Requests}
	case 1: // a heavy start
		p.Spec.InitContainers = []corev1.Container{initContainer("setup", "3", nil)}
	case 2: // a sidecar
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = []corev1.Container{initContainer("proxy", "200m", &always), initContainer("setup", "1", nil)}
	case 3: // nothing asked
		main.Resources = corev1.ResourceRequirements{}
	case 4: // two containers
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: "second", Image: "registry.example.com/second",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: quantity("150m")}},
		})
	case 5: // the pod as a whole
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: quantity("5")}}
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
	if g.chance(25) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, pick(g,
			corev1.Toleration{Key: taintBatch, Operator: corev1.TolerationOpExists},
			corev1.Toleration{Key: taintBatch, Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule},
			corev1.Toleration{Operator: corev1.TolerationOpExists},
		))
	}
	if g.chance(25) {
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
	expression := func() corev1.NodeSelectorRequirement {
		return pick(g,
			corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: g.some(Zones()...)},
			corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{pick(g, Zones()...)}},
			corev1.NodeSelectorRequirement{Key: LabelCPU, Operator: pick(g, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt), Values: []string{pick(g, "4", "8", "32")}},
			corev1.NodeSelectorRequirement{Key: LabelFamily, Operator: corev1.NodeSelectorOpIn, Values: g.some("c", "m", "r", "a")},
			corev1.NodeSelectorRequirement{Key: labelTeam, Operator: pick(g, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)},
			corev1.NodeSelectorRequirement{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpNotIn, Values: []string{karpv1.CapacityTypeSpot}},
		)
	}
	affinity := &corev1.NodeAffinity{}
	if g.chance(20) {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
		for range 1 + g.r.IntN(2) {
			term := corev1.NodeSelectorTerm{}
			for range 1 + g.r.IntN(2) {
				term.MatchExpressions = append(term.MatchExpressions, expression())
			}
			terms := &affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			*terms = append(*terms, term)
		}
	}
	if !g.options.NoPreferences && g.chance(15) {
		for range 1 + g.r.IntN(2) {
			affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
				Weight: int32(1 + g.r.IntN(100)), Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{expression()}},
			})
		}
	}
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution != nil || affinity.PreferredDuringSchedulingIgnoredDuringExecution != nil {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
	}
}

// selects draws whom a spread or an affinity counts: mostly the pods of the same deployment, else those of a tier or of
// another deployment, which may come before or after this one.
func (g *generator) selects(p *corev1.Pod) *metav1.LabelSelector {
	switch g.r.IntN(8) {
	case 0:
		return matching(labelTier, pick(g, "front", "middle", "back"))
	case 1:
		return matching(labelTier, p.Labels[labelTier])
	case 2:
		return matching("app", fmt.Sprintf("app-%d", g.r.IntN(len(g.apps)+2)))
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{p.Labels["app"], fmt.Sprintf("app-%d", g.r.IntN(len(g.apps)+2))}},
		}}
	}
	return matching("app", p.Labels["app"])
}

// domains draws topology spread constraints.
func (g *generator) domains(p *corev1.Pod) {
	if !g.chance(40) {
		return
	}
	seen := map[string]bool{}
	for range 1 + g.r.IntN(2) {
		c := corev1.TopologySpreadConstraint{
			MaxSkew:           int32(1 + g.r.IntN(3)),
			TopologyKey:       pick(g, corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelHostname, karpv1.CapacityTypeLabelKey, labelLane),
			WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector:     g.selects(p),
		}
		if lanes := slices.ContainsFunc(g.s.NodePools, func(p *karpv1.NodePool) bool { return p.Name == "lanes" }); c.TopologyKey == labelLane && !lanes && g.chance(90) {
			c.TopologyKey = corev1.LabelTopologyZone
		}
		if !g.options.NoPreferences && g.chance(25) {
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		} else if c.TopologyKey == corev1.LabelTopologyZone && g.chance(20) {
			n := int32(2 + g.r.IntN(3))
			c.MinDomains = &n
		}
		if g.chance(20) {
			policy := pick(g, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
			c.NodeAffinityPolicy = &policy
		}
		if g.chance(20) {
			policy := pick(g, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
			c.NodeTaintsPolicy = &policy
		}
		if g.chance(15) {
			c.MatchLabelKeys = []string{labelVersion}
		}
		// An API server takes each pair of key and action once.
		if pair := c.TopologyKey + string(c.WhenUnsatisfiable); !seen[pair] {
			seen[pair] = true
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
		}
	}
}

// friends draws pod affinity and anti-affinity.
func (g *generator) friends(p *corev1.Pod) {
	term := func(keys ...string) corev1.PodAffinityTerm {
		t := corev1.PodAffinityTerm{TopologyKey: pick(g, keys...), LabelSelector: g.selects(p)}
		switch g.r.IntN(10) {
		case 0:
			t.Namespaces = []string{p.Namespace, "shop"}
		case 1:
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{labelTeam: pick(g, "shop", "batch")}}
		case 2:
			t.NamespaceSelector = &metav1.LabelSelector{}
		case 3:
			t.MatchLabelKeys = []string{labelVersion}
		case 4:
			t.MismatchLabelKeys = []string{labelVersion}
		}
		return t
	}
	var required, requiredNot []corev1.PodAffinityTerm
	var preferred, preferredNot []corev1.WeightedPodAffinityTerm
	if g.chance(12) {
		required = append(required, term(corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelHostname, karpv1.CapacityTypeLabelKey))
	}
	if g.chance(18) {
		requiredNot = append(requiredNot, term(corev1.LabelHostname, corev1.LabelHostname, corev1.LabelHostname, corev1.LabelTopologyZone))
	}
	if !g.options.NoPreferences && g.chance(10) {
		preferred = append(preferred, corev1.WeightedPodAffinityTerm{Weight: int32(1 + g.r.IntN(100)), PodAffinityTerm: term(corev1.LabelTopologyZone, corev1.LabelHostname)})
	}
	if !g.options.NoPreferences && g.chance(10) {
		preferredNot = append(preferredNot, corev1.WeightedPodAffinityTerm{Weight: int32(1 + g.r.IntN(100)), PodAffinityTerm: term(corev1.LabelTopologyZone, corev1.LabelHostname)})
	}
	if p.Spec.Affinity == nil && (required != nil || requiredNot != nil || preferred != nil || preferredNot != nil) {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if required != nil || preferred != nil {
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred,
		}
	}
	if requiredNot != nil || preferredNot != nil {
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: requiredNot, PreferredDuringSchedulingIgnoredDuringExecution: preferredNot,
		}
	}
}

// extras draws ports, priorities, gates and volumes.
func (g *generator) extras(a *app) {
	p := a.template
	switch g.r.IntN(20) {
	case 0:
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: pick[int32](g, 8080, 8443, 9100), Protocol: pick(g, corev1.ProtocolTCP, corev1.ProtocolUDP)}}
	case 1:
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080, HostIP: pick(g, "10.0.0.1", "10.0.0.2")}}
	case 2:
		p.Spec.HostNetwork = true
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
	}
	if g.chance(15) {
		p.Spec.PriorityClassName = pick(g, "high", "low")
	}
	if g.chance(2) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
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
	}
}

func claimSpec(class string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}},
	}
}

// mount adds a volume to the pod, and its claim unless it exists. Claims of class "bound" are bound already, to a volume
// in some zone.
func (g *generator) mount(p *corev1.Pod, claim, class string) {
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
	if class == "bound" {
		v := &corev1.PersistentVolume{}
		v.TypeMeta, v.ObjectMeta = meta("PersistentVolume", "v1", "pv-"+p.Namespace+"-"+claim)
		v.Spec.AccessModes, v.Spec.Capacity, v.Spec.StorageClassName = c.Spec.AccessModes, c.Spec.Resources.Requests, class
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: storageDriver, VolumeHandle: v.Name}
		v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name}
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{in(corev1.LabelTopologyZone, pick(g, Zones()...))}},
		}}}
		c.Spec.VolumeName = v.Name
		g.s.PVs = append(g.s.PVs, v)
	}
	g.s.PVCs = append(g.s.PVCs, c)
}
