package discovery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// Subnet is a subnet that nodes may be launched in.
type Subnet struct {
	ID, Zone, ZoneID, VPC string
	// Free is the number of addresses that were left when EC2 was asked.
	Free int64
}

// Subnets are the subnets that one of the terms selects, by id.
func (f *Finder) Subnets(ctx context.Context, terms []nodeclass.Term) ([]Subnet, error) {
	found, err := remembered(ctx, f, networkTTL, key("subnets", terms), func(ctx context.Context) ([]Subnet, error) {
		byID := map[string]Subnet{}
		for _, filters := range Filters(terms, "subnet-id", "tag:Name") {
			pages := ec2.NewDescribeSubnetsPaginator(f.clients.EC2, &ec2.DescribeSubnetsInput{Filters: filters, MaxResults: aws.Int32(500)})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return nil, err
				}
				for _, s := range page.Subnets {
					id := aws.ToString(s.SubnetId)
					byID[id] = Subnet{
						ID: id, Zone: aws.ToString(s.AvailabilityZone), ZoneID: aws.ToString(s.AvailabilityZoneId),
						VPC: aws.ToString(s.VpcId), Free: int64(aws.ToInt32(s.AvailableIpAddressCount)),
					}
				}
			}
		}
		list := make([]Subnet, 0, len(byID))
		for _, s := range byID {
			list = append(list, s)
		}
		slices.SortFunc(list, func(a, b Subnet) int { return strings.Compare(a.ID, b.ID) })
		f.addresses.refresh(list)
		return list, nil
	})
	return slices.Clone(found), err
}

// Group is a security group.
type Group struct {
	ID, Name string
	// OfCluster says that it has a tag kubernetes.io/cluster/...
	OfCluster bool
}

// Groups are the security groups that one of the terms selects, by id.
func (f *Finder) Groups(ctx context.Context, terms []nodeclass.Term) ([]Group, error) {
	found, err := remembered(ctx, f, networkTTL, key("groups", terms), func(ctx context.Context) ([]Group, error) {
		byID := map[string]Group{}
		for _, filters := range Filters(terms, "group-id", "group-name") {
			pages := ec2.NewDescribeSecurityGroupsPaginator(f.clients.EC2, &ec2.DescribeSecurityGroupsInput{Filters: filters, MaxResults: aws.Int32(500)})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return nil, err
				}
				for _, g := range page.SecurityGroups {
					group := Group{ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName)}
					for _, t := range g.Tags {
						group.OfCluster = group.OfCluster || strings.HasPrefix(aws.ToString(t.Key), "kubernetes.io/cluster/")
					}
					byID[group.ID] = group
				}
			}
		}
		list := make([]Group, 0, len(byID))
		for _, g := range byID {
			list = append(list, g)
		}
		slices.SortFunc(list, func(a, b Group) int { return strings.Compare(a.ID, b.ID) })
		return list, nil
	})
	return slices.Clone(found), err
}

// GroupWarning says what is unwise about a choice of security groups; empty if nothing is. The AWS load balancer controller wants
// to find exactly one group with the cluster's tag on a node's interface, and stops to route traffic if there are two.
func GroupWarning(groups []Group) string {
	var tagged []string
	for _, g := range groups {
		if g.OfCluster {
			tagged = append(tagged, cmp.Or(g.Name, g.ID))
		}
	}
	if len(tagged) < 2 {
		return ""
	}
	slices.Sort(tagged)
	return fmt.Sprintf("security groups %s all carry a kubernetes.io/cluster tag: the AWS load balancer controller wants exactly one such group on a node; select by another tag", strings.Join(tagged, ", "))
}
