package scenario

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// The zone as a CSI driver's volumes ask for it, and as old manifests do.
const (
	labelDriverZone = "topology.ebs.csi.aws.com/zone"
	labelBetaZone   = corev1.LabelFailureDomainBetaZone
)

// agents draws labels that kubelets, cloud controllers, CSI drivers and Karpenter set, and what asks for them. Nodes that are on their way
// will have all of them; of the others most have them.
func (g *generator) agents() {
	for _, n := range g.s.Nodes {
		if g.chance(70) {
			g.setBy(n)
		}
	}
	for _, n := range g.s.Ready {
		g.setBy(n)
	}
	for i := range g.s.PVs {
		if a := g.s.PVs[i].Spec.NodeAffinity; a != nil && g.chance(40) {
			for k := range a.Required.NodeSelectorTerms[0].MatchExpressions {
				if e := &a.Required.NodeSelectorTerms[0].MatchExpressions[k]; e.Key == corev1.LabelTopologyZone {
					e.Key = labelDriverZone
				}
			}
		}
	}
	for _, c := range g.s.StorageClasses {
		for i := range c.AllowedTopologies {
			if g.chance(40) {
				c.AllowedTopologies[i].MatchLabelExpressions[0].Key = labelDriverZone
			}
		}
	}
	for i := range g.apps {
		if g.chance(8) {
			ask := g.asksAgents()
			for _, list := range [][]*corev1.Pod{g.s.Running, g.s.Pods} {
				for _, p := range list {
					if p.Labels["app"] == g.apps[i].name {
						ask(&p.Spec)
					}
				}
			}
		}
	}
	for _, d := range g.s.DaemonSets {
		if g.chance(25) {
			g.asksAgents()(&d.Spec.Template.Spec)
		}
	}
}

// setBy gives a node the labels of its agents.
func (g *generator) setBy(n *corev1.Node) {
	for key, value := range requirements.AgentAliases().Both(requirements.FromLabels(n.Labels)).Labels() {
		n.Labels[key] = value
	}
	for _, p := range g.s.NodePools {
		if class := p.Spec.Template.Spec.NodeClassRef; p.Name == n.Labels[karpv1.NodePoolLabelKey] {
			n.Labels[class.Group+"/"+strings.ToLower(class.Kind)] = class.Name
		}
	}
}

// asksAgents draws what a pod asks of labels that agents set.
func (g *generator) asksAgents() func(*corev1.PodSpec) {
	zone := pick(g, Zones()...)
	class := g.s.NodePools[0].Spec.Template.Spec.NodeClassRef
	expression := pick(g,
		in(labelDriverZone, zone), in(labelBetaZone, zone), in("beta.kubernetes.io/arch", "amd64"), in(karpv1.NodeRegisteredLabelKey, "true"),
		in(class.Group+"/"+strings.ToLower(class.Kind), class.Name),
		corev1.NodeSelectorRequirement{Key: karpv1.NodeInitializedLabelKey, Operator: corev1.NodeSelectorOpExists},
		corev1.NodeSelectorRequirement{Key: karpv1.NodeRegisteredLabelKey, Operator: corev1.NodeSelectorOpDoesNotExist},
		corev1.NodeSelectorRequirement{Key: labelDriverZone, Operator: corev1.NodeSelectorOpDoesNotExist},
	)
	spread := g.chance(20)
	return func(s *corev1.PodSpec) {
		if spread {
			for i := range s.TopologySpreadConstraints {
				if t := &s.TopologySpreadConstraints[i]; t.TopologyKey == corev1.LabelTopologyZone {
					t.TopologyKey = labelDriverZone
				}
			}
		}
		if s.Affinity == nil {
			s.Affinity = &corev1.Affinity{}
		}
		if s.Affinity.NodeAffinity == nil {
			s.Affinity.NodeAffinity = &corev1.NodeAffinity{}
		}
		required := &s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if *required == nil {
			*required = &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}
		}
		for i := range (*required).NodeSelectorTerms {
			t := &(*required).NodeSelectorTerms[i]
			t.MatchExpressions = append(t.MatchExpressions, expression)
		}
	}
}
