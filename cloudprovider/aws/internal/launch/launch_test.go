package launch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/launch"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

func spec() launch.Spec {
	return launch.Spec{
		Cluster: "harbour", Class: nodeclass.NodeClass{Family: ec2.AL2023}, Image: "ami-1", UserData: "#!/bin/sh\n", Profile: "node",
		Groups: []string{"sg-2", "sg-1"}, Tags: map[string]string{"team": "shop"},
	}
}

func name(t *testing.T, s launch.Spec) string {
	t.Helper()
	in, err := launch.Template(s)
	require.NoError(t, err)
	return aws.ToString(in.LaunchTemplateName)
}

// Equal specs share a template, whatever the order of what has none; everything else is another template.
func TestTemplatesAreNamedByTheirContent(t *testing.T) {
	base := name(t, spec())
	assert.True(t, strings.HasPrefix(base, launch.Prefix("harbour")))
	assert.LessOrEqual(t, len(name(t, func() launch.Spec { s := spec(); s.Cluster = strings.Repeat("c", 100); return s }())), 128)
	same := spec()
	same.Groups = []string{"sg-1", "sg-2"}
	same.TemplateTags = launch.ClusterTags("harbour")
	assert.Equal(t, base, name(t, same))
	seen := map[string]string{base: "base"}
	for what, change := range map[string]func(*launch.Spec){
		"image":         func(s *launch.Spec) { s.Image = "ami-2" },
		"user data":     func(s *launch.Spec) { s.UserData = "" },
		"profile":       func(s *launch.Spec) { s.Profile = "" },
		"groups":        func(s *launch.Spec) { s.Groups = s.Groups[:1] },
		"efa":           func(s *launch.Spec) { s.EFA = 1 },
		"efa on two":    func(s *launch.Spec) { s.EFA = 2 },
		"ipv6":          func(s *launch.Spec) { s.IPv6 = true },
		"reserved":      func(s *launch.Spec) { s.Reservation = "cr-1" },
		"block":         func(s *launch.Spec) { s.Reservation, s.Market = "cr-1", "capacity-block" },
		"interruptible": func(s *launch.Spec) { s.Reservation, s.Market = "cr-1", "interruptible-capacity-reservation" },
		"group":         func(s *launch.Spec) { s.PlacementGroup = "pg-1" },
		"partition":     func(s *launch.Spec) { s.PlacementGroup, s.Partition = "pg-1", 2 },
		"tenancy":       func(s *launch.Spec) { s.Tenancy = "dedicated" },
		"enclave":       func(s *launch.Spec) { s.Enclave = true },
		"spot":          func(s *launch.Spec) { s.Spot = true },
		"cluster":       func(s *launch.Spec) { s.Cluster = "other" },
		"disk":          func(s *launch.Spec) { s.Class.BlockDevices = []nodeclass.BlockDevice{{Bytes: 1}} },
		"metadata":      func(s *launch.Spec) { s.Class.Metadata.HopLimit = 2 },
		"monitoring":    func(s *launch.Spec) { s.Class.DetailedMonitoring = true },
		"tags":          func(s *launch.Spec) { s.TemplateTags = map[string]string{"cost": "1"} },
		"other tags":    func(s *launch.Spec) { s.TemplateTags = map[string]string{"cost": "2"} },
		"local zone":    func(s *launch.Spec) { s.LocalZone = true },
		"nested":        func(s *launch.Spec) { s.Class.NestedVirtualization = "enabled" },
	} {
		s := spec()
		change(&s)
		n := name(t, s)
		assert.Empty(t, seen[n], what)
		seen[n] = what
	}
}

func TestSizesAreRoundedUp(t *testing.T) {
	for bytes, want := range map[int64]int32{1: 1, 1 << 30: 1, 1<<30 + 1: 2, 20 << 30: 20} {
		s := spec()
		s.Class.BlockDevices = []nodeclass.BlockDevice{{Device: "/dev/xvda", Bytes: bytes}}
		in, err := launch.Template(s)
		require.NoError(t, err)
		assert.Equal(t, want, aws.ToInt32(in.LaunchTemplateData.BlockDeviceMappings[0].Ebs.VolumeSize))
	}
}

func TestDefaultDisks(t *testing.T) {
	for f, want := range map[ec2.Family]string{
		ec2.AL2: "/dev/xvda 20", ec2.AL2023: "/dev/xvda 20", ec2.Bottlerocket: "/dev/xvda 4, /dev/xvdb 20", ec2.Ubuntu: "/dev/sda1 20",
		ec2.Windows2019: "/dev/sda1 50", ec2.Windows2022: "/dev/sda1 50", ec2.Windows2025: "/dev/sda1 50", ec2.Custom: "",
	} {
		var have []string
		for _, d := range launch.DefaultDisks(f) {
			have = append(have, fmt.Sprintf("%s %d", d.Device, d.Bytes>>30))
			assert.True(t, aws.ToBool(d.Encrypted))
			assert.Equal(t, "gp3", d.Type)
		}
		assert.Equal(t, want, strings.Join(have, ", "), f)
	}
}

// Not every local zone has gp3, so the disks that a class leaves to us are gp2 there; those that it names stay.
func TestDisksInLocalZones(t *testing.T) {
	for _, own := range []bool{false, true} {
		s := spec()
		s.LocalZone = true
		want := types.VolumeTypeGp2
		if own {
			s.Class.BlockDevices, want = []nodeclass.BlockDevice{{Device: "/dev/xvda", Bytes: 9 << 30, Type: "io1"}}, types.VolumeTypeIo1
		}
		in, err := launch.Template(s)
		require.NoError(t, err)
		assert.Equal(t, want, in.LaunchTemplateData.BlockDeviceMappings[0].Ebs.VolumeType)
	}
	assert.Equal(t, "gp3", launch.DefaultDisks(ec2.AL2023)[0].Type)
}

// Every interface that has addresses gets the class's prefixes, of the cluster's family; EFA-only interfaces have none, and EC2 refuses them.
func TestPrefixesOnEveryInterface(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		s := spec()
		s.IPv6, s.Class.IPPrefixCount = ipv6, aws.Int32(3)
		s.Class.NetworkInterfaces = []nodeclass.NetworkInterface{{Type: "interface"}, {Card: 1, Device: 1, Type: "interface"}, {Card: 1, Device: 2, Type: "efa-only"}}
		in, err := launch.Template(s)
		require.NoError(t, err)
		for i, n := range in.LaunchTemplateData.NetworkInterfaces {
			four, six := aws.ToInt32(n.Ipv4PrefixCount), aws.ToInt32(n.Ipv6PrefixCount)
			switch {
			case i == 2:
				assert.Zero(t, four+six)
			case ipv6:
				assert.Equal(t, []int32{0, 3}, []int32{four, six}, "interface %d", i)
			default:
				assert.Equal(t, []int32{3, 0}, []int32{four, six}, "interface %d", i)
			}
			assert.Equal(t, ipv6 && i == 0, aws.ToBool(n.PrimaryIpv6))
		}
	}
}

// The arguments are left as they are, and equal ones give equal requests.
func TestRequestIsAFunction(t *testing.T) {
	f := launch.Fleet{Token: "t", CapacityType: "spot", Target: 2, Tags: map[string]string{"b": "2", "a": "1"}, InstanceTags: map[string]string{"c": "3"}}
	first := launch.Request(f)
	for range 20 {
		assert.Equal(t, first, launch.Request(f))
	}
	assert.Equal(t, map[string]string{"b": "2", "a": "1"}, f.Tags)
	assert.Equal(t, types.SpotAllocationStrategyPriceCapacityOptimized, first.SpotOptions.AllocationStrategy)
}

func ExampleTemplate() {
	in, err := launch.Template(launch.Spec{Cluster: "harbour", Image: "ami-1", Groups: []string{"sg-1"}, Class: nodeclass.NodeClass{Family: ec2.AL2023}})
	if err != nil {
		panic(err)
	}
	fmt.Println(*in.LaunchTemplateName)
	fmt.Println(in.LaunchTemplateData.SecurityGroupIds, in.LaunchTemplateData.MetadataOptions.HttpTokens)
	// Output:
	// joinery/harbour/da7639871d355ca4
	// [sg-1] required
}

func ExampleRequest() {
	in := launch.Request(launch.Fleet{
		Token: "batch-1", CapacityType: "spot", Target: 3,
		Configs: []types.FleetLaunchTemplateConfigRequest{launch.Config("joinery/harbour/1")},
	})
	fmt.Println(in.Type, *in.TargetCapacitySpecification.TotalTargetCapacity, in.SpotOptions.AllocationStrategy)
	// Output: instant 3 price-capacity-optimized
}

func ExampleAlone() {
	template, err := launch.Template(launch.Spec{Cluster: "harbour", Image: "ami-1", Groups: []string{"sg-1"}, Profile: "nodes", Class: nodeclass.NodeClass{Family: ec2.AL2023}})
	if err != nil {
		panic(err)
	}
	in := launch.Alone(map[string]string{"team": "shop"}, "m5.large", "subnet-1", template.LaunchTemplateData)
	fmt.Println(*in.DryRun, *in.ImageId, in.InstanceType, in.SecurityGroupIds, *in.IamInstanceProfile.Name)
	// Output: true ami-1 m5.large [sg-1] nodes
}

func ExampleDefaultDisks() {
	for _, d := range launch.DefaultDisks(ec2.Bottlerocket) {
		fmt.Println(d.Device, d.Bytes>>30, d.Type)
	}
	// Output:
	// /dev/xvda 4 gp3
	// /dev/xvdb 20 gp3
}
