package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

const (
	offeringsAnswer = `{"InstanceTypeOfferings":[{"InstanceType":"m8i.large","LocationType":"availability-zone","Location":"eu-west-1a"},
		{"InstanceType":"m5.large","LocationType":"availability-zone","Location":"eu-west-1z"}]}`
	spotAnswer = `{"SpotPriceHistory":[{"AvailabilityZone":"eu-west-1a","InstanceType":"m8i.large","ProductDescription":"Linux/UNIX","SpotPrice":"0.03","Timestamp":"2026-11-26T10:00:00+00:00"},
		{"AvailabilityZone":"eu-west-1a","InstanceType":"m8i.large","ProductDescription":"Linux/UNIX","SpotPrice":"odd","Timestamp":"2026-11-26T10:00:00+00:00"}]}`
	pricesAnswer = `{"PriceList":["{\"product\":{\"attributes\":{\"instanceType\":\"m8i.large\"}},\"publicationDate\":\"2026-11-02\",\"terms\":{\"OnDemand\":{\"t\":{\"priceDimensions\":{\"d\":{\"unit\":\"Hrs\",\"pricePerUnit\":{\"USD\":\"0.5\"}}}}}}}"]}`
)

// pricesOf are the offerings of a type as a plain pool sees them: zone, capacity type, price, and whether that is an estimate.
func pricesOf(t *testing.T, m *pipeline.Market, name string) []string {
	t.Helper()
	pool := nodepool.NodePool{Name: "default", Kind: "NodePool", NodeClass: nodepool.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}}
	pools, _, err := m.Pools(&manifests.Snapshot{NodePools: []nodepool.NodePool{pool}})
	require.NoError(t, err)
	var out []string
	for _, it := range pools[0].Types {
		for _, o := range it.Offerings {
			if it.Name == name && o.Available {
				out = append(out, fmt.Sprintf("%s %s %g %t", (instancetypes.PriceQuery{Offering: o}).Zone(), o.CapacityType(), o.Price, o.List.Estimated))
			}
		}
	}
	slices.Sort(out)
	return out
}

// What AWS says today holds, whatever else is there, and a market is never changed.
func TestAnswersOfAWS(t *testing.T) {
	m, err := pipeline.EC2Market("eu-west-1")
	require.NoError(t, err)
	before := pricesOf(t, m, "m8i.large")
	require.Len(t, before, 6)
	assert.Contains(t, before[0], "true", "an estimate")
	today := m
	for _, answer := range []string{offeringsAnswer, spotAnswer, pricesAnswer} {
		today, err = today.WithAnswer([]byte(answer))
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"eu-west-1a on-demand 0.5 false", "eu-west-1a spot 0.03 false"}, pricesOf(t, today, "m8i.large"))
	assert.Len(t, pricesOf(t, today, "m5.large"), 2, "in a zone that the catalogue does not know")
	assert.Equal(t, 2, today.Len())
	assert.Equal(t, "2026-11-02", today.Date)
	assert.Len(t, today.Notes, 1, "the odd price")
	assert.Equal(t, before, pricesOf(t, m, "m8i.large"))

	gov, err := pipeline.EC2Market("us-gov-west-1")
	require.NoError(t, err)
	require.Len(t, gov.Notes, 2, "no spot prices, and zones that are not known")
	zoned, err := gov.WithAnswer([]byte(strings.ReplaceAll(offeringsAnswer, "eu-west-1", "us-gov-west-1")))
	require.NoError(t, err)
	assert.Equal(t, gov.Notes[:1], zoned.Notes)
	priced, err := zoned.WithAnswer([]byte(strings.ReplaceAll(strings.Replace(spotAnswer, "odd", "0.04", 1), "eu-west-1", "us-gov-west-1")))
	require.NoError(t, err)
	assert.Empty(t, priced.Notes)
	assert.Len(t, gov.Notes, 2)

	for _, text := range []string{"", "[]", "{}", `{"InstanceTypes":[]}{`, `{"PriceList":1}`} {
		_, err := m.WithAnswer([]byte(text))
		require.Error(t, err, text)
	}
	other, err := pipeline.KWOKMarket("x", []byte(`[]`))
	require.NoError(t, err)
	_, err = other.WithAnswer([]byte(spotAnswer))
	require.Error(t, err)
}
