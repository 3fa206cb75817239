package aws_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// byTeam makes node classes from a template: every team has its own tag, and all else in common.
type byTeam struct{ common nodeclass.NodeClass }

func (b byTeam) NodeClass(_ context.Context, name string) (nodeclass.NodeClass, error) {
	team, ok := strings.CutPrefix(name, "team-")
	if !ok {
		return nodeclass.NodeClass{}, &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Err: fmt.Errorf("no node class %q: names begin with \"team-\"", name)}
	}
	class := b.common
	class.Name, class.Tags = name, map[string]string{"team": team}
	return class, nil
}

// Where node classes come from is up to the caller: a list (FixedClasses), the cluster's own objects, or a rule.
func ExampleClasses() {
	var classes aws.Classes = byTeam{class()}
	for _, name := range []string{"team-red", "red"} {
		c, err := classes.NodeClass(exampleContext(), name)
		fmt.Println(c.Name, c.Tags, err)
	}
	// Output:
	// team-red map[team:red] <nil>
	//  map[] cloudprovider: invalid spec: no node class "red": names begin with "team-"
}

// What would be sent can be read before it is: a dry run gives the requests as JSON.
func ExampleRequest() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	reach, ctx := cloud.API(), exampleContext()
	p, err := aws.New(ctx, aws.Options{
		Cluster: "harbour", Classes: aws.FixedClasses{class()}, DryRun: true,
		Region: reach.Region, Credentials: reach.Credentials, HTTPClient: reach.HTTPClient,
	})
	if err != nil {
		panic(err)
	}
	types, err := p.InstanceTypes(ctx, pool())
	if err != nil {
		panic(err)
	}
	requests, err := p.DryRun(ctx, []cloudprovider.NodeClaim{{Name: "web-1", Token: "unique-1", Candidates: candidatesFor(types, onDemand)}})
	if err != nil {
		panic(err)
	}
	first := requests[0]
	text, err := first.JSON()
	fmt.Println(first.Service, first.Action, string(text), err)
	// Output:
	// IAM CreateInstanceProfile {
	//   "InstanceProfileName": "harbour_ebc9179023fccbf8",
	//   "Path": "/joinery/us-east-1/harbour/",
	//   "Tags": [
	//     {
	//       "Key": "kubernetes.io/cluster/harbour",
	//       "Value": "owned"
	//     }
	//   ]
	// } <nil>
}

// A controller beside a cluster that is not EKS: it knows the cluster itself, launches only while it holds the lease that it was elected by, and collects
// claims for a while. What it had asked for before it was restarted it has written down, so nothing else has to wait.
func ExampleOptions() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	reach, ctx := cloud.API(), exampleContext()
	asked := map[string]bool{"written-down": true}
	elected := false
	p, err := aws.New(ctx, aws.Options{
		Cluster: "harbour", Classes: aws.FixedClasses{class()}, Region: reach.Region, Credentials: reach.Credentials, HTTPClient: reach.HTTPClient,
		Known:     &aws.Cluster{Name: "harbour", Endpoint: "https://harbour.example.com", CA: "Y2E=", Version: "1.33", ServiceCIDR: "10.100.0.0/16"},
		Window:    aws.Window{Idle: -1},
		Undecided: func(token string) bool { return asked[token] },
		Lease: func(context.Context) error {
			if !elected {
				return errors.New("another one was elected")
			}
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	types, err := p.InstanceTypes(ctx, pool())
	if err != nil {
		panic(err)
	}
	claim := cloudprovider.NodeClaim{Name: "web-1", Token: "new", Candidates: candidatesFor(types, onDemand)}
	_, err = p.Create(ctx, claim)
	fmt.Println(err)
	elected = true
	launch, err := p.Create(ctx, claim)
	fmt.Println(launch.Claim, launch.Type, err)
	// Output:
	// cloudprovider: create "web-1": not ready: retry after 10s; the lease is not held: another one was elected
	// web-1 m5.large <nil>
}
