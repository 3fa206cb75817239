package launch

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
)

// The limits of a fleet request. More types make the answer slow and hardly ever help. EC2 rejects
// more launch templates and overrides ("Quotas for EC2 Fleet", Amazon EC2 User Guide).
const (
	MostTypes     = 60
	MostTemplates = 50
	MostOverrides = 300
)

// Market returns the market type under which machines run in a reservation. It is empty if they
// need none.
func Market(r ec2.Reservation) types.MarketType {
	switch {
	case r.Block:
		return types.MarketTypeCapacityBlock
	case r.Interruptible:
		return types.MarketTypeInterruptibleCapacityReservation
	default:
		return ""
	}
}

// Fleet is a request for machines with the same properties.
type Fleet struct {
	// Token makes the request idempotent.
	Token string
	// CapacityType is on-demand, spot or reserved. Market is that of the reservations, see
	// [Market].
	CapacityType string
	Market       types.MarketType
	Target       int
	// Prioritized says that the priorities of the overrides are prices of the caller's own. The
	// cheapest come first, as far as capacity allows.
	Prioritized bool
	// Context is passed to EC2 unchanged. Empty means none.
	Context string
	// Configs are the launch templates, see [Config], with the offerings to launch from each.
	Configs []types.FleetLaunchTemplateConfigRequest
	// Tags are put on the fleet, the machines, their disks and interfaces. InstanceTags are put on
	// the machines in addition.
	Tags, InstanceTags map[string]string
}

// Config returns what a request says about a launch template, without overrides. Templates of
// [Template] never change, so they have only their first version.
func Config(template string) types.FleetLaunchTemplateConfigRequest {
	return types.FleetLaunchTemplateConfigRequest{
		LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String(template), Version: aws.String("1")},
	}
}

// Request returns the request to EC2.
func Request(f Fleet) *sdk.CreateFleetInput {
	in := &sdk.CreateFleetInput{
		Type: types.FleetTypeInstant, ClientToken: aws.String(f.Token), Context: some(f.Context), LaunchTemplateConfigs: f.Configs,
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(int32(f.Target)), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand,
		},
	}
	switch {
	case f.CapacityType == instancetypes.CapacityTypeSpot:
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized}
	case f.Market == types.MarketTypeCapacityBlock:
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeCapacityBlock
	case f.Market == types.MarketTypeInterruptibleCapacityReservation:
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeReservedCapacity
		in.ReservedCapacityOptions = &types.ReservedCapacityOptionsRequest{ReservationTypes: []types.FleetReservationType{types.FleetReservationTypeInterruptibleCapacityReservation}}
	default:
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice}
	}
	if f.Prioritized && in.SpotOptions != nil {
		in.SpotOptions.AllocationStrategy = types.SpotAllocationStrategyCapacityOptimizedPrioritized
	}
	if f.Prioritized && in.OnDemandOptions != nil {
		in.OnDemandOptions.AllocationStrategy = types.FleetOnDemandAllocationStrategyPrioritized
	}
	all := maps.Clone(f.Tags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, f.InstanceTags)
	in.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: Tags(all)}}
	if len(f.Tags) > 0 {
		for _, kind := range []types.ResourceType{types.ResourceTypeVolume, types.ResourceTypeNetworkInterface, types.ResourceTypeFleet} {
			in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: kind, Tags: Tags(f.Tags)})
		}
	}
	return in
}

// Tags returns tags as EC2 takes them, in the order of their keys.
func Tags(tags map[string]string) []types.Tag {
	out := make([]types.Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return out
}

// Alone returns a dry run of one machine of a type in a subnet, with the content of a launch
// template. EC2 checks the same permissions for the machines of a fleet, which it launches in the
// caller's name.
func Alone(tags map[string]string, typ, subnet string, data *types.RequestLaunchTemplateData) *sdk.RunInstancesInput {
	in := &sdk.RunInstancesInput{
		DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: types.InstanceType(typ), SubnetId: aws.String(subnet),
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: Tags(tags)},
			{ResourceType: types.ResourceTypeVolume, Tags: Tags(tags)},
			{ResourceType: types.ResourceTypeNetworkInterface, Tags: Tags(tags)},
		},
	}
	in.ImageId, in.UserData = data.ImageId, data.UserData
	if data.IamInstanceProfile != nil {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: data.IamInstanceProfile.Name}
	}
	in.SecurityGroupIds = append(in.SecurityGroupIds, data.SecurityGroupIds...)
	if len(in.SecurityGroupIds) == 0 && len(data.NetworkInterfaces) > 0 {
		in.SecurityGroupIds = append(in.SecurityGroupIds, data.NetworkInterfaces[0].Groups...)
	}
	return in
}
