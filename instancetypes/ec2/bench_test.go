package ec2_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
)

func BenchmarkCatalogue(b *testing.B) {
	for b.Loop() {
		types, err := ec2.Catalogue("us-east-1")
		require.NoError(b, err)
		require.Greater(b, len(types), 1300)
	}
}
