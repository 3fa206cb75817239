package ec2_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// What every type leaves for pods, one a line. The figures were compared with those of the AWS provider's own code (see
// catalogue/CATALOGUE.md): a difference here is a new source or a mistake, and the diff shows which types it concerns.
func TestEveryTypesAllocatable(t *testing.T) {
	types, err := catalogue.Types()
	require.NoError(t, err)
	region := catalogue.Region{Name: "r", Zones: []catalogue.Zone{{Name: "ra"}}}
	for _, d := range types {
		region.Offers = append(region.Offers, catalogue.Offer{Description: d, Zones: region.Zones})
	}
	all, err := ec2.Types(region, ec2.Settings{})
	require.NoError(t, err)
	require.Len(t, all, len(types))
	var b strings.Builder
	for _, it := range all {
		b.WriteString(it.Name)
		left := it.Allocatable()
		for _, name := range resources.Names(left) {
			text := resources.Humane(name, resources.Capacity(name, left[name]))
			if name == corev1.ResourceEphemeralStorage && text == "17Gi" {
				continue // all of them
			}
			short := string(name)
			fmt.Fprintf(&b, " %s=%s", short, text)
		}
		b.WriteString("\n")
	}
	const path = "testdata/allocatable.txt"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	wanted, got := strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")
	for i := range min(len(wanted), len(got)) {
		if !assert.Equal(t, wanted[i], got[i], "line %d", i+1) {
			break // one line tells as much as a thousand
		}
	}
	assert.Len(t, got, len(wanted))
}
