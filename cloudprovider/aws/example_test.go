package aws_test

import (
	"context"
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
		return nodeclass.NodeClass{}, &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Err: fmt.Errorf("no node class %q: names begin with \"team-\"", name)}
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
	//  map[] cloudprovider: not ready: no node class "red": names begin with "team-"
}

// What would be sent can be read before it is: a dry run gives the requests as JSON.
func ExampleRequest() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	defer cloud.Close()
	reach, ctx := cloud.API(), exampleContext()
	p, err := aws.New(ctx, aws.Options{
		Cluster: "harbour", Classes: aws.FixedClasses{class()}, DryRun: true,
		Region: reach.Region, Endpoint: reach.Endpoint, Credentials: reach.Credentials, HTTPClient: reach.HTTPClient,
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
