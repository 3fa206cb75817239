package describe_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

// Only active reservations have anything left, whatever their count says.
func TestReadReservations(t *testing.T) {
	got, err := describe.ReadReservations([]byte(`{"CapacityReservations":[{"CapacityReservationId":"cr-1","State":"active","AvailableInstanceCount":3,"TotalInstanceCount":5},
		{"CapacityReservationId":"cr-2","State":"cancelled","AvailableInstanceCount":4}]} {"CapacityReservations":[{"CapacityReservationId":"cr-3","State":"active","AvailableInstanceCount":0}]}`))
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"cr-1": 3, "cr-2": 0, "cr-3": 0}, got)
	for text, want := range map[string]string{
		``:   "empty input",
		`{}`: `no list "CapacityReservations"`,
		`{"CapacityReservations":[{"State":"active","AvailableInstanceCount":3}]}`:                                 "CapacityReservations[0] ()",
		`{"CapacityReservations":[{"CapacityReservationId":"cr-1","State":"active"}]}`:                             "CapacityReservations[0] (cr-1)",
		`{"CapacityReservations":[{"CapacityReservationId":"cr-1","State":"active","AvailableInstanceCount":-1}]}`: "0 or more",
		`{"CapacityReservations":"cr-1"}`: "describe: ",
	} {
		_, err := describe.ReadReservations([]byte(text))
		assert.ErrorContains(t, err, want)
	}
}
