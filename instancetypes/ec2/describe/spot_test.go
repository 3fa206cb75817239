package describe_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

func TestReadSpotPrices(t *testing.T) {
	got, err := describe.ReadSpotPrices([]byte(`{"SpotPriceHistory": [
	  {"AvailabilityZone": "us-east-1a", "InstanceType": "m5.large", "ProductDescription": "Linux/UNIX", "SpotPrice": "0.030000", "Timestamp": "2026-08-01T10:00:00+00:00"},
	  {"AvailabilityZone": "us-east-1a", "InstanceType": "m5.large", "ProductDescription": "Linux/UNIX", "SpotPrice": "0.040000", "Timestamp": "2026-08-02T10:00:00+00:00"},
	  {"AvailabilityZone": "us-east-1a", "InstanceType": "m5.large", "ProductDescription": "Linux/UNIX", "SpotPrice": "0.050000", "Timestamp": "2026-07-31T10:00:00+00:00"},
	  {"AvailabilityZone": "us-east-1a", "InstanceType": "m5.large", "ProductDescription": "Windows", "SpotPrice": "0.130000", "Timestamp": "2026-08-03T10:00:00+00:00"}]}
	  {"SpotPriceHistory": [{"AvailabilityZone": "us-east-1b", "InstanceType": "m5.large", "SpotPrice": "0.035"}]}`))
	require.NoError(t, err)
	assert.Equal(t, describe.SpotPrices{Date: "2026-08-02", Zones: map[string]map[string]float64{"m5.large": {"us-east-1a": 0.04, "us-east-1b": 0.035}}}, got)
}

func TestReadSpotPricesRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":   "empty input",
		"{":  "describe: ",
		"{}": `no list "SpotPriceHistory"`,
		`{"SpotPriceHistory": [{"InstanceType": "a", "AvailabilityZone": "b", "SpotPrice": "NaN"}]}`:  `price "NaN"`,
		`{"SpotPriceHistory": [{"InstanceType": "a", "AvailabilityZone": "b", "SpotPrice": "-1"}]}`:   `price "-1"`,
		`{"SpotPriceHistory": [{"InstanceType": "a", "AvailabilityZone": "b", "SpotPrice": "+Inf"}]}`: `price "+Inf"`,
		`{"SpotPriceHistory": [{"InstanceType": "a", "SpotPrice": "1"}]}`:                             "want type, zone",
		`{"SpotPriceHistory": [{"InstanceType": 1}]}`:                                                 "describe: ",
	} {
		_, err := describe.ReadSpotPrices([]byte(in))
		assert.ErrorContains(t, err, want, in)
	}
}

func FuzzReadSpotPrices(f *testing.F) {
	f.Add([]byte(`{"SpotPriceHistory": [{"AvailabilityZone": "a", "InstanceType": "b", "SpotPrice": "1e-3", "Timestamp": "2026-08-01"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := describe.ReadSpotPrices(data)
		if err != nil {
			return
		}
		for _, zones := range got.Zones {
			for _, price := range zones {
				require.Positive(t, price)
			}
		}
	})
}

func ExampleReadSpotPrices() {
	prices, err := describe.ReadSpotPrices([]byte(`{"SpotPriceHistory": [{"AvailabilityZone": "us-east-1a", "InstanceType": "m5.large", "SpotPrice": "0.0312", "Timestamp": "2026-08-01T10:00:00Z"}]}`))
	fmt.Println(prices.Zones["m5.large"]["us-east-1a"], prices.Date, err)
	// Output: 0.0312 2026-08-01 <nil>
}
