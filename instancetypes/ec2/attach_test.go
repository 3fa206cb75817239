package ec2_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
)

// The slots are EC2's: 28 on Nitro for disks, interfaces and local disks together; more where the limit is the disks' own.
func TestVolumesOfPods(t *testing.T) {
	count := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name     string
		settings ec2.Settings
		want     int64
		why      string
	}{
		{"m5.large", ec2.Settings{}, 24, "28 less the root disk and all 3 interfaces, of 9 pods each"},
		{"m5.metal", ec2.Settings{}, 25, "28 less the root disk and 2 interfaces, for one has addresses for 49 pods"},
		{"m6gd.large", ec2.Settings{}, 23, "one local disk less"},
		{"i4i.32xlarge", ec2.Settings{}, 17, "eight local disks less"},
		{"m7i.48xlarge", ec2.Settings{}, 127, "128 for disks alone, less the root disk"},
		{"t2.micro", ec2.Settings{}, 38, "the driver takes 39 on Xen"},
		{"i3.metal", ec2.Settings{}, 25, "a type without a figure counts as Nitro"},
		{"m5.large", ec2.Settings{Family: ec2.Bottlerocket}, 23, "a second disk for data"},
		{"m5.large", ec2.Settings{BlockDevices: make([]ec2.BlockDevice, 3)}, 22, "the disks of the node class"},
		{"m5.large", ec2.Settings{PrefixDelegation: true}, 25, "one interface has addresses for all"},
		{"m5.large", ec2.Settings{Attachments: ec2.Attachments{Reserved: count(4)}}, 21, "the reserve of the driver"},
		{"m5.large", ec2.Settings{Attachments: ec2.Attachments{Limit: count(9), Reserved: count(4)}}, 9, "the limit of the driver"},
		{"m5.large", ec2.Settings{Attachments: ec2.Attachments{Limit: count(-1), Reserved: count(-1)}}, 24, "the driver's own defaults"},
		{"t2.micro", ec2.Settings{Attachments: ec2.Attachments{Reserved: count(60)}}, 1, "the driver says 1 at least"},
	} {
		region, err := catalogue.Load("us-east-1")
		require.NoError(t, err)
		types, err := ec2.Types(region, c.settings)
		require.NoError(t, err)
		found := false
		for _, it := range types {
			if it.Name == c.name {
				n := it.Capacity[ec2.ResourceEBSVolumes]
				assert.Equal(t, c.want, n.Value(), "%s: %s", c.name, c.why)
				found = true
			}
		}
		assert.True(t, found, c.name)
	}
}

// A node never attaches more than EC2 says, with as many interfaces as the pods of its volumes need.
func TestVolumesOfPodsHaveSlots(t *testing.T) {
	region, err := catalogue.Load("eu-west-1")
	require.NoError(t, err)
	for _, prefixes := range []bool{false, true} {
		types, err := ec2.Types(region, ec2.Settings{PrefixDelegation: prefixes})
		require.NoError(t, err)
		capacity := map[string]instancetypes.InstanceType{}
		for _, it := range types {
			capacity[it.Name] = it
		}
		for _, o := range region.Offers {
			it, ok := capacity[o.Name]
			if !ok || o.EBSAttachments == 0 {
				continue
			}
			q := it.Capacity[ec2.ResourceEBSVolumes]
			n := q.Value()
			assert.Positive(t, n, o.Name)
			addresses := max(o.IPv4PerInterface-1, 1)
			if prefixes {
				addresses *= 16
			}
			others := min(max((n+addresses-1)/addresses, 1), o.DefaultCardInterfaces) - 1 // beside the primary interface
			if !o.SharedAttachments || o.Hypervisor == "xen" {
				others = 0
			}
			assert.LessOrEqual(t, n+1+others, o.EBSAttachments, "%s: %d volumes", o.Name, n)
		}
	}
}

func ExampleAttachments() {
	six := int64(6)
	region, _ := catalogue.Load("us-east-1")
	types, _ := ec2.Types(region, ec2.Settings{Attachments: ec2.Attachments{Reserved: &six}})
	for _, t := range types {
		if t.Name == "m7g.large" {
			volumes := t.Capacity[ec2.ResourceEBSVolumes]
			fmt.Println(volumes.Value())
		}
	}
	// Output: 19
}
