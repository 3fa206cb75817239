package instancetypes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// Two halls of a company's own machines: a type in three lines. The halls have a stock, and one is sold out.
func ExampleNew() {
	t := instancetypes.New("blade", map[string]string{"example.com/generation": "4"}, quantities("cpu", "32", "memory", "128Gi"),
		instancetypes.Offer("hall-1", instancetypes.CapacityTypeOnDemand, 0.40).Stock("blades in hall-1", 12),
		instancetypes.Offer("hall-2", instancetypes.CapacityTypeOnDemand, 0.38).Stock("blades in hall-2", 0))
	fmt.Println(instancetypes.Validate([]instancetypes.InstanceType{t}), t.Capacity.Pods())
	for _, o := range t.Offerings {
		fmt.Println(o.Requirements, o.Price, o.Available)
	}
	// Output:
	// <nil> 110
	// karpenter.sh/capacity-type in (on-demand), topology.kubernetes.io/zone in (hall-1) 0.4 true
	// karpenter.sh/capacity-type in (on-demand), topology.kubernetes.io/zone in (hall-2) 0.38 false
}

// An offer is for sale until it is said otherwise.
func ExampleOffer() {
	o := instancetypes.Offer("hall-1", instancetypes.CapacityTypeSpot, 0.1)
	fmt.Println(o.CapacityType(), o.Price, o.Available)
	// Output: spot 0.1 true
}

// Machines that are counted: those of one id share a stock.
func ExampleOffering_Stock() {
	o := instancetypes.Offer("hall-1", instancetypes.CapacityTypeOnDemand, 0.4)
	fmt.Println(o.Stock("hall-1", 3).Available, o.Stock("hall-1", 0).Available)
	// Output: true false
}

// A node for a test, as one that was bought looks.
func ExampleInstanceType_Node() {
	t := instancetypes.New("blade", nil, quantities("cpu", "32"), instancetypes.Offer("hall-1", instancetypes.CapacityTypeOnDemand, 0.4))
	n := t.Node("n1", t.Offerings[0], map[string]string{"karpenter.sh/nodepool": "web"})
	fmt.Println(n.Name, n.Labels[corev1.LabelInstanceTypeStable], n.Labels[corev1.LabelTopologyZone], n.Labels["karpenter.sh/nodepool"], n.Status.Allocatable.Cpu())
	// Output: n1 blade hall-1 web 32
}

// What is given is neither kept nor changed, and labels of the caller's come first.
func TestNewCopies(t *testing.T) {
	labels, capacity := map[string]string{corev1.LabelArchStable: "arm64"}, quantities("cpu", "4")
	it := instancetypes.New("a", labels, capacity)
	assert.Len(t, labels, 1)
	assert.Len(t, capacity, 1)
	assert.Equal(t, "arm64", it.Requirements.Labels()[corev1.LabelArchStable])
	capacity["memory"] = capacity["cpu"]
	assert.NotContains(t, it.Capacity, corev1.ResourceMemory)
	require.NotPanics(t, func() { instancetypes.New("a", nil, nil).Node("n", instancetypes.Offering{}, nil) })
}

// A pod that asks for linux or for the type by name finds it, and one that asks for another system does not.
func TestNewHasTheLabelsThatPodsAskFor(t *testing.T) {
	it := instancetypes.New("blade", nil, quantities("cpu", "4"), instancetypes.Offer("a", "spot", 1))
	for ask, want := range map[string]bool{
		"kubernetes.io/os=linux": true, "kubernetes.io/arch=amd64": true, "node.kubernetes.io/instance-type=blade": true, "kubernetes.io/os=windows": false,
	} {
		assert.Equal(t, want, len(instancetypes.Compatible([]instancetypes.InstanceType{it}, requirements.MustParse(ask), requirements.Keys{})) == 1, ask)
	}
}
