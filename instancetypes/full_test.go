package instancetypes_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// An offering is full if only its count is used up. Nothing makes it available again, and what is
// withheld for another reason is full no more.
func TestFull(t *testing.T) {
	left := instancetypes.Offer("z", instancetypes.CapacityTypeOnDemand, 1).Stock("x", 1)
	assert.True(t, left.Available && !left.Full)
	full := left.Stock("x", 0)
	assert.True(t, !full.Available && full.Full)
	types := []instancetypes.InstanceType{instancetypes.New("a", nil, corev1.ResourceList{"cpu": resource.MustParse("1")}, full)}
	require.NoError(t, instancetypes.Validate(types))

	free := full
	free.Price = 0
	types[0].Offerings = []instancetypes.Offering{full, free}
	for _, o := range instancetypes.Reprice(types, nil)[0].Offerings {
		assert.True(t, !o.Available && o.Full, "a price is no machine")
	}
	types[0].Retired = true
	all := requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, "a"))
	for _, o := range instancetypes.Revive(types, all, requirements.KeysOf(corev1.LabelInstanceTypeStable))[0].Offerings {
		assert.True(t, !o.Available && o.Full, "nor is a name")
	}
	for _, o := range instancetypes.Withhold(types, requirements.MustOf(requirements.In(corev1.LabelTopologyZone, "z")))[0].Offerings {
		assert.True(t, !o.Available && !o.Full, "the cloud gives a free machine to anyone")
	}
	types[0].Offerings[0].Available = true
	require.ErrorContains(t, instancetypes.Validate(types), "[0].offerings[0].full (a): true, with a count of 0: want it only if nothing is left to buy")
}
