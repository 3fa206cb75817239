package discovery

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// Subnet is a subnet that nodes may be launched in.
type Subnet struct {
	ID, Zone, ZoneID string
	// Free is the number of free addresses when EC2 was asked.
	Free int64
}

// Subnets returns the subnets that one of the terms selects, by id.
func (f *Finder) Subnets(ctx context.Context, terms []nodeclass.Term) ([]Subnet, error) {
	id := func(s Subnet) string { return s.ID }
	list, err := selected(ctx, f, networkTTL, "subnets", terms, Filters(terms, "subnet-id", "tag:Name"), id, f.describeSubnets)
	f.addresses.refresh(list)
	return list, err
}

func (f *Finder) describeSubnets(ctx context.Context, filters []types.Filter) (list []Subnet, err error) {
	all, err := api.All(ctx, ec2.NewDescribeSubnetsPaginator(f.clients.EC2, &ec2.DescribeSubnetsInput{Filters: filters, MaxResults: aws.Int32(500)}),
		func(o *ec2.DescribeSubnetsOutput) []types.Subnet { return o.Subnets })
	for _, s := range all {
		list = append(list, Subnet{
			ID: aws.ToString(s.SubnetId), Zone: aws.ToString(s.AvailabilityZone), ZoneID: aws.ToString(s.AvailabilityZoneId),
			Free: int64(aws.ToInt32(s.AvailableIpAddressCount)),
		})
	}
	return list, err
}

// Zones returns the ids of the zones of the account's subnets, by name. Every account has its own
// names for the same ids.
func (f *Finder) Zones(ctx context.Context) (map[string]string, error) {
	found, err := remembered(ctx, f, clusterTTL, "zones", func(ctx context.Context) (map[string]string, error) {
		all, err := f.describeSubnets(ctx, nil)
		zones := map[string]string{}
		for _, s := range all {
			zones[s.Zone] = s.ZoneID
		}
		return zones, err
	})
	return maps.Clone(found), err
}

// Group is a security group.
type Group struct {
	ID, Name string
	// OfCluster says that it has a tag kubernetes.io/cluster/... The AWS load balancer controller
	// needs exactly one such group on a node's interface, and stops routing traffic if there are
	// two.
	OfCluster bool
}

// Groups returns the security groups that one of the terms selects, by id.
func (f *Finder) Groups(ctx context.Context, terms []nodeclass.Term) ([]Group, error) {
	id := func(g Group) string { return g.ID }
	return selected(ctx, f, networkTTL, "groups", terms, Filters(terms, "group-id", "group-name"), id, f.describeGroups)
}

func (f *Finder) describeGroups(ctx context.Context, filters []types.Filter) (list []Group, err error) {
	all, err := api.All(ctx, ec2.NewDescribeSecurityGroupsPaginator(f.clients.EC2, &ec2.DescribeSecurityGroupsInput{Filters: filters, MaxResults: aws.Int32(500)}),
		func(o *ec2.DescribeSecurityGroupsOutput) []types.SecurityGroup { return o.SecurityGroups })
	for _, g := range all {
		list = append(list, Group{
			ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName),
			OfCluster: slices.ContainsFunc(g.Tags, func(t types.Tag) bool { return strings.HasPrefix(aws.ToString(t.Key), "kubernetes.io/cluster/") }),
		})
	}
	return list, err
}
