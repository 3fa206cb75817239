package scenario

import (
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// limitNodes is the limit of a pool's number of nodes.
const limitNodes corev1.ResourceName = "nodes"

func (g *generator) pools() {
	kinds := []string{"spot", "arm", "batch", "gpu", "zonal", "big", "lanes", "any-lane", "slow", "starting", "choice", "static"}
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
	// least asks that so many values of the requirement that was drawn last are left to choose
	// from.
	least := func(n int) { spec.Requirements[len(spec.Requirements)-1].MinValues = &n }
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
		require(LabelCPU, pick(g, corev1.NodeSelectorOpGt, karpv1.NodeSelectorOpGte), "8")
		if g.chance(50) {
			require(LabelCPU, pick(g, corev1.NodeSelectorOpLt, karpv1.NodeSelectorOpLte), "64")
		}
		require(LabelFamily, corev1.NodeSelectorOpNotIn, "g")
	case "lanes":
		// The way to a ratio that users write by hand: two pools share the lanes of one label.
		require(labelLane, corev1.NodeSelectorOpIn, "on-demand-1", "on-demand-2")
		require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeOnDemand)
	case "lanes-spot":
		require(labelLane, corev1.NodeSelectorOpIn, "spot-1", "spot-2", "spot-3")
		require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeSpot)
	case "any-lane":
		require(labelLane, pick(g, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpNotIn), "spot-1")
		if r := &spec.Requirements[0]; r.Operator == corev1.NodeSelectorOpExists {
			r.Values = nil
		}
	case "slow":
		taint(taintSlow, corev1.TaintEffectPreferNoSchedule)
	case "starting":
		spec.StartupTaints = []corev1.Taint{{Key: taintStartup, Effect: corev1.TaintEffectNoSchedule}}
		require(labelTeam, corev1.NodeSelectorOpIn, "shop", "batch")
	case "choice":
		require(LabelFamily, corev1.NodeSelectorOpIn, "c", "m", "r")
		least(1 + g.r.IntN(3))
		require(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpExists)
		least(1 + g.r.IntN(5))
	case "static":
		replicas := int64(1 + g.r.IntN(3))
		p.Spec.Replicas = &replicas
	}
	// An API server takes no weight of a static pool, and no limit but that of nodes.
	static := p.Spec.Replicas != nil
	if !static && g.chance(60) {
		weight := int32(1 + g.r.IntN(100))
		p.Spec.Weight = &weight
	}
	if g.options.Limits && g.chance(50) {
		p.Spec.Limits = karpv1.Limits{}
		limit := g.r.IntN(4)
		if static || limit == 0 {
			p.Spec.Limits[limitNodes] = quantity("%d", 2+g.r.IntN(10))
		}
		if !static && limit != 0 {
			p.Spec.Limits[corev1.ResourceCPU] = quantity("%d", 8<<g.r.IntN(5))
		}
		if !static && limit == 1 {
			p.Spec.Limits[corev1.ResourceMemory] = quantity("%dGi", 32<<g.r.IntN(5))
		}
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
		switch g.r.IntN(5) {
		case 0:
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		case 1:
			p.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "amd64"}
		case 2:
			port := int32(9100 + i) // one of its own: two daemons on one port would fit no node
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
		case 3: // everywhere, in a namespace that nothing else names
			d.Namespace = "system"
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists}}}},
			}}}
		}
		if g.options.Changing && g.chance(12) { // it keeps away from noise
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, NamespaceSelector: &metav1.LabelSelector{},
				LabelSelector: matching(pick(g, labelTier, labelTrack), pick(g, "back", "canary")),
			}}}}
		}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: p.Spec}
		g.s.DaemonSets = append(g.s.DaemonSets, d)
	}
}

// quotas draws CapacityQuotas that overlap. Some are used up, or exceeded, from the start. They
// have numbers of their own, so that a scenario is the same without them.
func (g *generator) quotas() {
	own := &generator{r: rand.New(rand.NewPCG(g.s.Seed, 0x71756f7461)), options: g.options, s: g.s}
	var pools []string
	for _, p := range g.s.NodePools {
		pools = append(pools, p.Name)
	}
	for i := range 1 + own.r.IntN(4) {
		spec := map[string]any{}
		if own.chance(80) {
			selector := map[string]any{}
			var exprs []any
			for range 1 + own.r.IntN(2) {
				exprs = append(exprs, own.expression(pools))
			}
			selector["matchExpressions"] = exprs
			if own.chance(30) {
				selector["matchLabels"] = map[string]any{karpv1.NodePoolLabelKey: pick(own, pools...)}
			}
			spec["selector"] = selector
		}
		limits := map[string]any{}
		kind := own.r.IntN(4)
		if kind < 2 {
			limits["nodes"] = fmt.Sprint(own.r.IntN(9))
		}
		if kind > 0 {
			limits["cpu"] = fmt.Sprint(2 << own.r.IntN(6))
		}
		if own.chance(20) {
			limits["memory"] = fmt.Sprintf("%dGi", 8<<own.r.IntN(6))
		}
		if own.chance(10) {
			limits["example.com/gpu"] = fmt.Sprint(own.r.IntN(4))
		}
		spec["limits"] = map[string]any{"resources": limits}
		g.s.Quotas = append(g.s.Quotas, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityQuota", "metadata": map[string]any{"name": fmt.Sprintf("quota-%d", i)}, "spec": spec,
		}})
	}
}

// expression draws what a selector asks of a label: of a pool, type or offering, or one that pools
// leave open.
func (g *generator) expression(pools []string) map[string]any {
	key, values := corev1.LabelArchStable, []string{"amd64", "arm64"}
	switch g.r.IntN(8) {
	case 0:
		key, values = karpv1.NodePoolLabelKey, pools
	case 1:
		key, values = corev1.LabelTopologyZone, Zones()
	case 2:
		key, values = karpv1.CapacityTypeLabelKey, []string{karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand}
	case 3:
		key, values = LabelFamily, []string{"c", "m", "r", "g", "a"}
	case 4:
		key, values = labelTeam, []string{"shop", "batch", "mobile"}
	case 5:
		key, values = labelLane, []string{"on-demand-1", "spot-1", "spot-2"}
	}
	out := map[string]any{"key": key, "operator": pick(g, "In", "In", "In", "NotIn", "Exists", "DoesNotExist")}
	if op := out["operator"]; op == "In" || op == "NotIn" {
		var list []any
		for _, v := range g.some(values...) {
			list = append(list, v)
		}
		out["values"] = list
	}
	return out
}
