package nodeclass_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

func withReservations(list string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "c"},
		"spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "r", "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]},
		"status": {"instanceProfile": "p", "capacityReservations": %s}}`, list))
}

// Karpenter writes no count, and leaves defaults out.
func TestReservationsOfTheStatus(t *testing.T) {
	c, err := nodeclass.Decode(withReservations(`[{"id": "cr-1", "instanceType": "m5.large", "availabilityZone": "us-east-1a", "ownerID": "123456789012", "instanceMatchCriteria": "open"},
		{"id": "cr-2", "instanceType": "p5.48xlarge", "availabilityZone": "us-east-1b", "availableInstanceCount": 0, "endTime": "2026-05-01T00:00:00Z", "state": "expiring", "reservationType": "capacity-block", "interruptible": true, "later": 1}]`))
	require.NoError(t, err)
	none := 0
	assert.Equal(t, []nodeclass.Reservation{
		{ID: "cr-1", InstanceType: "m5.large", Zone: "us-east-1a", State: "active", Type: "default"},
		{ID: "cr-2", InstanceType: "p5.48xlarge", Zone: "us-east-1b", Free: &none, End: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), State: "expiring", Type: "capacity-block", Interruptible: true},
	}, c.Status.Reservations)
	const one = `{"id": "cr-1", "instanceType": "m5.large", "availabilityZone": "us-east-1a"}`
	for list, want := range map[string]string{
		`[` + one + `, ` + one + `]`:                   `status.capacityReservations[1].id: "cr-1" is given twice`,
		`[{"id": "cr-1", "instanceType": "m5.large"}]`: "status.capacityReservations[0]: want id, instanceType and availabilityZone",
		`[{"id": 1}]`: "status.capacityReservations: ",
		`[` + one[:len(one)-1] + `, "availableInstanceCount": -1}]`: "status.capacityReservations[0].availableInstanceCount: -1: want no negative number",
		`[` + one[:len(one)-1] + `, "endTime": "tomorrow"}]`:        "status.capacityReservations: ",
	} {
		_, err := nodeclass.Decode(withReservations(list))
		assert.ErrorContains(t, err, want)
	}
}
