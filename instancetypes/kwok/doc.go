// Package kwok reads and writes catalogues as JSON in the shape of Karpenter's KWOK provider: a list of
//
//	{"name": "c-4x", "architecture": "amd64", "operatingSystems": ["linux"],
//	 "resources": {"cpu": "4", "memory": "8Gi", "pods": "110"},
//	 "offerings": [{"Price": 0.1, "Available": true, "Requirements": [{"key": ..., "operator": "In", "values": [...]}]}]}
//
// with optional fields of our own: "requirements" (more labels of the type), "overhead" (a resource list taken off
// resources; none means that resources are what pods can use), "retired", and "ReservationCapacity",
// "Commitment", "CommittedPerHour" and "CommitmentRate" of an offering. As in Karpenter v1.15, an offering of capacity type
// "reserved" with a "ReservationCapacity" of 0 is a full reservation: it cannot be had now. Left out, it means any number.
package kwok
