package discovery_test

import (
	"context"
	"fmt"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
)

// connected is a cloud in this process and a finder that asks it.
func connected(ctx context.Context) (*awstest.Cloud, *discovery.Finder) {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	clients, err := api.Connect(ctx, cloud.API())
	if err != nil {
		panic(err)
	}
	return cloud, discovery.NewFinder(clients)
}

// A finder asks AWS once for what a node class selects, and remembers the answer.
func ExampleNewFinder() {
	ctx := context.Background()
	cloud, finder := connected(ctx)
	for range 3 {
		subnets, err := finder.Subnets(ctx, []nodeclass.Term{tag("cluster", "harbour")})
		fmt.Println(len(subnets), "subnets", err, "after", cloud.Calls("EC2.DescribeSubnets"), "call")
	}
	// Output:
	// 6 subnets <nil> after 1 call
	// 6 subnets <nil> after 1 call
	// 6 subnets <nil> after 1 call
}

// What a node needs to join: where the cluster is, what to trust, and of which version it is.
func ExampleCluster() {
	ctx := context.Background()
	_, finder := connected(ctx)
	c, err := finder.Cluster(ctx, "harbour")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Name, c.Version, c.Endpoint, c.ServiceCIDR)
	// Output: harbour 1.33 https://harbour.eks.example.com 10.100.0.0/16
}

// Nodes go to the subnet of their zone that has the most addresses left, where launches that EC2 does not count yet are
// counted too.
func ExampleAddresses() {
	ctx := context.Background()
	_, finder := connected(ctx)
	subnets, err := finder.Subnets(ctx, []nodeclass.Term{tag("cluster", "harbour")})
	if err != nil {
		fmt.Println(err)
		return
	}
	addresses := finder.Addresses()
	left := func(s discovery.Subnet) string { return fmt.Sprintf("%s has %d", s.ID, addresses.Left(s.ID)) }
	show := func() { fmt.Println(left(addresses.Best(subnets)["us-east-1a"])) }
	show()
	now := time.Now()
	addresses.Take("subnet-00", 3900, now)
	show()
	addresses.Take("subnet-00", -3900, now) // nothing came of the launch
	show()
	// Output:
	// subnet-00 has 4000
	// subnet-01 has 250
	// subnet-00 has 4000
}

// A family of images stands for several: one for each kind of machine. Which one a type boots from is decided by what it is.
func ExampleImage() {
	ctx := context.Background()
	_, finder := connected(ctx)
	images, err := finder.Images(ctx, nodeclass.NodeClass{Family: ec2.Bottlerocket}, "1.33")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, arch := range []string{"amd64", "arm64", "s390x"} {
		image, ok := discovery.ImageFor(images, requirements.MustParse(fmt.Sprintf(plain, arch)))
		fmt.Println(arch, image.ID, ok)
	}
	// Output:
	// amd64 ami-rocketx86 true
	// arm64 ami-rocketarm true
	// s390x  false
}

// Where AWS publishes the newest image of a family for a version of Kubernetes, one parameter for each kind of machine.
func ExampleParameter() {
	for _, p := range discovery.Parameters(ec2.Bottlerocket, "1.33", "latest") {
		fmt.Println(p.Path)
	}
	// Output:
	// /aws/service/bottlerocket/aws-k8s-1.33/x86_64/latest/image_id
	// /aws/service/bottlerocket/aws-k8s-1.33/arm64/latest/image_id
	// /aws/service/bottlerocket/aws-k8s-1.33-nvidia/x86_64/latest/image_id
	// /aws/service/bottlerocket/aws-k8s-1.33-nvidia/arm64/latest/image_id
}

// A placement group by its name, with what has to be known to launch into it.
func ExamplePlacement() {
	ctx := context.Background()
	cloud, finder := connected(ctx)
	cloud.Put(awstest.PlacementGroup{ID: "pg-1", Name: "racks", Strategy: "partition", Partitions: 7})
	group, err := finder.PlacementGroup(ctx, nodeclass.PlacementGroup{Name: "racks"})
	fmt.Println(group.ID, group.Strategy, group.Partitions, err)
	// Output: pg-1 partition 7 <nil>
}
