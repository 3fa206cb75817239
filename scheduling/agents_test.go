package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// An existing node has only the labels that it shows. A node to buy also has those that its agents
// set.
func TestLabelsOfAgents(t *testing.T) {
	class := func(p *nodepool.NodePool) {
		p.NodeClass = nodepool.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "base"}
	}
	for name, c := range map[string]struct {
		ask             corev1.NodeSelectorRequirement
		existing, comes bool
	}{
		"the zone of today":      {corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: "In", Values: []string{"zone-a"}}, true, true},
		"the beta zone":          {corev1.NodeSelectorRequirement{Key: corev1.LabelFailureDomainBetaZone, Operator: "In", Values: []string{"zone-a"}}, false, true},
		"another beta zone":      {corev1.NodeSelectorRequirement{Key: corev1.LabelFailureDomainBetaZone, Operator: "In", Values: []string{"zone-z"}}, false, false},
		"a driver's zone":        {corev1.NodeSelectorRequirement{Key: "topology.ebs.csi.aws.com/zone", Operator: "In", Values: []string{"zone-b"}}, false, true},
		"no driver":              {corev1.NodeSelectorRequirement{Key: "topology.ebs.csi.aws.com/zone", Operator: "DoesNotExist"}, true, false},
		"registered":             {corev1.NodeSelectorRequirement{Key: "karpenter.sh/registered", Operator: "In", Values: []string{"true"}}, false, true},
		"not registered":         {corev1.NodeSelectorRequirement{Key: "karpenter.sh/registered", Operator: "DoesNotExist"}, true, false},
		"initialized":            {corev1.NodeSelectorRequirement{Key: "karpenter.sh/initialized", Operator: "Exists"}, false, true},
		"its class":              {corev1.NodeSelectorRequirement{Key: "karpenter.k8s.aws/ec2nodeclass", Operator: "In", Values: []string{"base"}}, false, true},
		"another class":          {corev1.NodeSelectorRequirement{Key: "karpenter.k8s.aws/ec2nodeclass", Operator: "In", Values: []string{"other"}}, false, false},
		"the pool's name of old": {corev1.NodeSelectorRequirement{Key: nodepool.ProvisionerLabelKey, Operator: "In", Values: []string{"default"}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := compile(t, scheduling.Snapshot{
				Pods: []*corev1.Pod{pod("web-0", requires(c.ask))}, Nodes: []*corev1.Node{node("n1")}, Pools: []scheduling.Pool{pool("default", class)},
			})
			required := p.Classes[0].Required
			assert.Equal(t, c.existing, required.Compatible(p.Existing[0].Labels, requirements.Keys{}), "existing")
			comes := false
			for _, s := range p.Shapes {
				for _, o := range s.Offerings {
					labels, err := s.Labels.Intersect(o.Labels)
					require.NoError(t, err)
					comes = comes || required.Compatible(labels, requirements.Keys{})
				}
			}
			assert.Equal(t, c.comes, comes, "to buy")
		})
	}
}

// A caller may know that its nodes get no such labels.
func TestNoAliases(t *testing.T) {
	ask := requires(corev1.NodeSelectorRequirement{Key: corev1.LabelFailureDomainBetaZone, Operator: "In", Values: []string{"zone-a"}})
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0", ask)}, Pools: []scheduling.Pool{pool("default")}}
	p, err := scheduling.Compile(s, &scheduling.Options{Aliases: &requirements.Aliases{}})
	require.NoError(t, err)
	assert.False(t, p.Shapes[0].Labels.Has(corev1.LabelFailureDomainBetaZone))
}
