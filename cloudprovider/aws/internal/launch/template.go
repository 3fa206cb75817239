// Package launch writes the requests that buy machines: launch templates named after their content,
// and fleets. All functions are pure and make no calls.
package launch

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// Spec is what machines that boot from one launch template have in common.
type Spec struct {
	Cluster string
	Class   nodeclass.NodeClass
	Image   string
	// UserData is the text itself, not in base64.
	UserData string
	// Profile is the name of the instance profile. Empty means none.
	Profile string
	// Groups are the ids of the security groups.
	Groups []string
	// EFA is how many EFA interfaces the machines get, one on each network card. PlainFirstCard
	// says that the first card has an ordinary interface instead.
	EFA            int64
	PlainFirstCard bool
	IPv6           bool
	// Reservation is the id of the capacity reservation to run in; empty means none. Market is its
	// market, see [Market].
	Reservation string
	Market      types.MarketType
	// PlacementGroup is the id of a placement group. Partition is one of its partitions, from 1; 0
	// means EC2's choice.
	PlacementGroup string
	Partition      int32
	// Enclave lets pods run Nitro enclaves beside the node's own system.
	Enclave bool
	// Tenancy is default or dedicated. Empty means default.
	Tenancy string
	Spot    bool
	// LocalZone says that the machines run in local zones.
	LocalZone bool
	// Tags are put on the request for spot machines, which fleets do not tag. TemplateTags are put
	// on the launch template.
	Tags, TemplateTags map[string]string
}

// Prefix returns the start of the names of the cluster's launch templates.
func Prefix(cluster string) string { return "joinery/" + cluster + "/" }

// ClusterTag is the tag with the cluster as its value on machines and what belongs to them. Launch
// templates do not have it, because Karpenter deletes launch templates that have it and that it has
// not made.
const ClusterTag = "eks:eks-cluster-name"

// OwnCluster is the tag with the cluster as its value on everything, including launch templates.
const OwnCluster = "joinery/cluster"

// ClusterTags returns the tags of everything that is made for a cluster.
func ClusterTags(cluster string) map[string]string {
	return map[string]string{OwnCluster: cluster, "kubernetes.io/cluster/" + cluster: "owned"}
}

// Template returns the request for the launch template. Its name is a hash of its content: equal
// specs share a template, and a template never changes.
func Template(s Spec) (*sdk.CreateLaunchTemplateInput, error) {
	data := &types.RequestLaunchTemplateData{
		ImageId:  aws.String(s.Image),
		UserData: some(base64.StdEncoding.EncodeToString([]byte(s.UserData))),
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint:            types.LaunchTemplateInstanceMetadataEndpointState(cmp.Or(s.Class.Metadata.Endpoint, "enabled")),
			HttpProtocolIpv6:        types.LaunchTemplateInstanceMetadataProtocolIpv6(cmp.Or(s.Class.Metadata.IPv6, "disabled")),
			HttpPutResponseHopLimit: aws.Int32(int32(cmp.Or(s.Class.Metadata.HopLimit, 1))),
			HttpTokens:              types.LaunchTemplateHttpTokensState(cmp.Or(s.Class.Metadata.Tokens, "required")),
			// Tags hold records of the provider, which pods must not see.
			InstanceMetadataTags: types.LaunchTemplateInstanceMetadataTagsStateDisabled,
		},
		Monitoring:          &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(s.Class.DetailedMonitoring)},
		BlockDeviceMappings: disks(s.Class, s.LocalZone),
		CapacityReservationSpecification: &types.LaunchTemplateCapacityReservationSpecificationRequest{
			// By default machines would use up open reservations that others count on.
			CapacityReservationPreference: types.CapacityReservationPreferenceNone,
		},
	}
	if s.Profile != "" {
		data.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String(s.Profile)}
	}
	if s.Class.NestedVirtualization != "" {
		data.CpuOptions = &types.LaunchTemplateCpuOptionsRequest{NestedVirtualization: types.NestedVirtualizationSpecification(s.Class.NestedVirtualization)}
	}
	if s.Enclave {
		data.EnclaveOptions = &types.LaunchTemplateEnclaveOptionsRequest{Enabled: aws.Bool(true)}
	}
	if s.Reservation != "" {
		data.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
			CapacityReservationTarget:     &types.CapacityReservationTarget{CapacityReservationId: aws.String(s.Reservation)},
		}
		if s.Market != "" {
			data.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: s.Market}
		}
	}
	if s.PlacementGroup != "" || s.Tenancy == "dedicated" {
		data.Placement = &types.LaunchTemplatePlacementRequest{GroupId: some(s.PlacementGroup), PartitionNumber: some(s.Partition)}
		if s.Tenancy == "dedicated" {
			data.Placement.Tenancy = types.TenancyDedicated
		}
	}
	if s.Spot && len(s.Tags) > 0 {
		data.TagSpecifications = []types.LaunchTemplateTagSpecificationRequest{{ResourceType: types.ResourceTypeSpotInstancesRequest, Tags: Tags(s.Tags)}}
	}
	network(data, s)
	text, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	// A template that has other tags of the user's is another template, because the tags of one
	// that exists do not change.
	tags := maps.Clone(s.TemplateTags)
	maps.DeleteFunc(tags, func(key, _ string) bool { return ClusterTags(s.Cluster)[key] != "" })
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		text = fmt.Appendf(text, "%q=%q", key, tags[key])
	}
	sum := sha256.Sum256(text)
	return &sdk.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(Prefix(s.Cluster) + hex.EncodeToString(sum[:8])),
		LaunchTemplateData: data,
		TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeLaunchTemplate,
			Tags:         Tags(s.TemplateTags),
		}},
	}, nil
}

// network sets the interfaces, or only the groups if EC2's own choice of an interface is enough.
func network(data *types.RequestLaunchTemplateData, s Spec) {
	groups := slices.Sorted(slices.Values(s.Groups))
	var list []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest
	add := func(card, device int64, kind string) {
		n := types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			NetworkCardIndex: aws.Int32(int32(card)), DeviceIndex: aws.Int32(int32(device)), Groups: groups, DeleteOnTermination: aws.Bool(true), InterfaceType: some(kind),
		}
		// An EFA-only interface has no IP address, so it has neither prefixes nor connections.
		if kind == "efa-only" {
			list = append(list, n)
			return
		}
		n.Ipv4PrefixCount = s.Class.IPPrefixCount
		if s.IPv6 {
			n.Ipv4PrefixCount, n.Ipv6PrefixCount = nil, s.Class.IPPrefixCount
		}
		if t := s.Class.ConnectionTracking; t != nil {
			n.ConnectionTrackingSpecification = &types.ConnectionTrackingSpecificationRequest{
				TcpEstablishedTimeout: some(int32(t.TCPEstablished)), UdpStreamTimeout: some(int32(t.UDPStream)), UdpTimeout: some(int32(t.UDP)),
			}
		}
		list = append(list, n)
	}
	switch {
	case len(s.Class.NetworkInterfaces) > 0:
		for _, n := range s.Class.NetworkInterfaces {
			add(n.Card, n.Device, n.Type)
		}
	case s.EFA > 0:
		first := int64(0)
		if s.PlainFirstCard {
			add(0, 0, "interface")
			first = 1
		}
		for card := first; card < first+s.EFA; card++ {
			add(card, min(card, 1), "efa")
		}
	case s.Class.AssociatePublicIP != nil || s.Class.IPPrefixCount != nil || s.Class.ConnectionTracking != nil || s.IPv6:
		add(0, 0, "")
	default:
		data.SecurityGroupIds = groups
		return
	}
	for i := range list {
		primary := &list[i]
		if aws.ToInt32(primary.NetworkCardIndex) != 0 || aws.ToInt32(primary.DeviceIndex) != 0 {
			continue
		}
		// With a second interface, EC2 rejects the choice of a public address.
		if len(list) == 1 {
			primary.AssociatePublicIpAddress = s.Class.AssociatePublicIP
		}
		if s.IPv6 {
			primary.PrimaryIpv6, primary.Ipv6AddressCount = aws.Bool(true), aws.Int32(1)
		}
	}
	data.NetworkInterfaces = list
}

// some returns a pointer to a value, or nil for the zero value.
func some[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// disks returns the disks of the class, or what the family's images need. Every local zone has
// volumes of type gp2, and not every one has gp3.
func disks(c nodeclass.NodeClass, local bool) []types.LaunchTemplateBlockDeviceMappingRequest {
	list := c.BlockDevices
	if len(list) == 0 {
		list = DefaultDisks(c.Family)
		for i := range list {
			if local {
				list[i].Type = "gp2"
			}
		}
	}
	var out []types.LaunchTemplateBlockDeviceMappingRequest
	for _, b := range list {
		m := types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: aws.String(cmp.Or(b.Device, rootDevice(c.Family)))}
		if b.Bytes > 0 || b.Snapshot != "" {
			m.Ebs = &types.LaunchTemplateEbsBlockDeviceRequest{
				Encrypted: b.Encrypted, DeleteOnTermination: b.DeleteOnTermination, VolumeType: types.VolumeType(b.Type),
				Iops: some(int32(b.IOPS)), Throughput: some(int32(b.Throughput)), VolumeInitializationRate: some(int32(b.InitializationRate)),
				// EC2 counts whole GiB, and a disk must not be smaller than requested.
				VolumeSize: some(int32((b.Bytes + 1<<30 - 1) >> 30)), KmsKeyId: some(b.KMSKeyID), SnapshotId: some(b.Snapshot),
			}
		}
		out = append(out, m)
	}
	return out
}

func rootDevice(f ec2.Family) string {
	if f == ec2.Ubuntu || f.IsWindows() {
		return "/dev/sda1"
	}
	return "/dev/xvda"
}

// DefaultDisks returns the disks for machines of a family whose class names none. A custom image
// decides for itself.
func DefaultDisks(f ec2.Family) []nodeclass.BlockDevice {
	disk := func(device string, gib int64) nodeclass.BlockDevice {
		return nodeclass.BlockDevice{Device: device, Bytes: gib << 30, Type: "gp3", Encrypted: aws.Bool(true), DeleteOnTermination: aws.Bool(true)}
	}
	switch {
	case f == ec2.Custom:
		return nil
	case f == ec2.Bottlerocket:
		return []nodeclass.BlockDevice{disk("/dev/xvda", 4), disk("/dev/xvdb", 20)}
	case f.IsWindows():
		return []nodeclass.BlockDevice{disk("/dev/sda1", 50)}
	default:
		return []nodeclass.BlockDevice{disk(rootDevice(f), 20)}
	}
}
