// Package kwok reads and writes catalogues as JSON in the shape of Karpenter's KWOK provider: a list of
//
//	{"name": "c-4x", "architecture": "amd64", "operatingSystems": ["linux"],
//	 "resources": {"cpu": "4", "memory": "8Gi", "pods": "110"},
//	 "offerings": [{"Price": 0.1, "Available": true, "Requirements": [{"key": ..., "operator": "In", "values": [...]}]}]}
//
// with optional fields of our own: "requirements" (more labels of the type), "overhead" (a resource list taken off
// resources; none means that resources are what pods can use), "retired", and "ReservationCapacity",
// "Commitment", "CommittedPerHour" and "CommitmentRate" of an offering.
package kwok
