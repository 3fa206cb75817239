package launch

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Alone returns a dry run of one machine of a type in a subnet, with the content of a launch
// template. EC2 checks the same permissions for the machines of a fleet, which it launches in the
// caller's name.
func Alone(tags map[string]string, typ, subnet string, data *types.RequestLaunchTemplateData) *sdk.RunInstancesInput {
	in := &sdk.RunInstancesInput{
		DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: types.InstanceType(typ), SubnetId: aws.String(subnet),
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: tagList(tags)},
			{ResourceType: types.ResourceTypeVolume, Tags: tagList(tags)},
			{ResourceType: types.ResourceTypeNetworkInterface, Tags: tagList(tags)},
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
