package instancetypes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// Label keys that planning depends on, of Karpenter and AWS. Those of kubernetes.io are constants
// of k8s.io/api/core/v1.
const (
	// LabelCapacityType says how a node is paid for: one of the CapacityType constants, or a value of
	// your own. [Validate] takes a value that resembles a constant for a misspelt one.
	LabelCapacityType = "karpenter.sh/capacity-type"
	// LabelNodePool names the pool that a node belongs to.
	LabelNodePool = "karpenter.sh/nodepool"
	// LabelReservationID names the reservation that an offering or a node draws on.
	LabelReservationID = "karpenter.k8s.aws/capacity-reservation-id"
	// LabelZoneID is the zone's name that all accounts share.
	LabelZoneID = "topology.k8s.aws/zone-id"
)

// Capacity types: values of [LabelCapacityType].
const (
	CapacityTypeOnDemand = "on-demand"
	CapacityTypeSpot     = "spot"
	CapacityTypeReserved = "reserved"
)

// WellKnown returns the keys that are undecided for a node that is not bought yet, with any
// provider: its pool, zone, region, instance type, architecture, operating system, Windows build
// and capacity type. Providers add their own keys.
func WellKnown() requirements.Keys {
	return requirements.KeysOf(
		LabelCapacityType, LabelNodePool,
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
		corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelWindowsBuild,
	)
}
