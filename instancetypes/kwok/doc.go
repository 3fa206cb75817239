// Package kwok reads and writes catalogues as JSON in the format of Karpenter's KWOK provider,
// which is a list of
//
//	{"name": "c-4x", "architecture": "amd64", "operatingSystems": ["linux"],
//	 "resources": {"cpu": "4", "memory": "8Gi", "pods": "110"},
//	 "offerings": [{"Price": 0.1, "Available": true, "Requirements": [{"key": ..., "operator": "In", "values": [...]}]}]}
//
// It adds optional fields: "requirements" (more labels of the type), "overhead" (a resource list
// that is subtracted from resources; without it, pods can use all resources), and "retired". An
// offering may also have "ReservationCapacity", "Commitment", "CommittedPerHour" and
// "CommitmentRate". As in Karpenter v1.15, an offering of capacity type "reserved" with a
// "ReservationCapacity" of 0 is a full reservation: it cannot be bought now. If the field is
// missing, any number can be bought.
//
// A stock of machines is a "ReservationCapacity" plus a "Commitment", which is the id of the stock:
//
//	{"Price": 0.2, "Available": true, "ReservationCapacity": 2, "Commitment": "old blades", "Requirements": [...]}
//
// It says that two more can be bought, and that all offerings with this id share the two. [Write]
// writes [instancetypes.Offering.Stock] like this. For a stock that is sold out, "Available" is
// false and "ReservationCapacity" is left out.
package kwok
