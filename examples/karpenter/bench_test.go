package karpenter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/karpenter"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
)

// What a look of Karpenter's costs at most: the catalogue is converted once for each pool every Options.Refresh.
func BenchmarkGetInstanceTypes(b *testing.B) {
	types, err := ec2.Catalogue("us-east-1")
	require.NoError(b, err)
	c, err := karpenter.AsKarpenter(b.Context(), market{types: types}, karpenter.Options{Refresh: 1})
	require.NoError(b, err)
	for b.Loop() {
		list, err := c.GetInstanceTypes(b.Context(), nil)
		if err != nil || len(list) != len(types) {
			b.Fatal(len(list), err)
		}
	}
	b.ReportMetric(float64(len(types)), "types")
}
