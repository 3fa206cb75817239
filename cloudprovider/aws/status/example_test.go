package status_test

import (
	"context"
	"fmt"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/status"
)

// inventory is a fleet by EC2's ids: what else runs in the account is nobody's business here.
type inventory map[string]string

func (v inventory) Owns(_ context.Context, ids []string) (map[string]string, error) {
	ours := map[string]string{}
	for _, id := range ids {
		if provider, ok := v[id]; ok {
			ours[id] = provider
		}
	}
	return ours, nil
}

func (inventory) Reserved() map[string]string { return nil }

// Two machines fail their checks, and only one of them is ours.
func ExampleFleet() {
	clock := awstest.NewClock()
	cloud, err := awstest.New(awstest.Config{Clock: clock.API()})
	if err != nil {
		panic(err)
	}
	defer cloud.Close()
	clients, err := api.Connect(exampleContext(), cloud.API())
	if err != nil {
		panic(err)
	}
	ids, err := launched(cloud, clients, 2)
	if err != nil {
		panic(err)
	}
	for _, id := range ids {
		cloud.FailCheck(id, "system")
	}
	clock.Advance(3 * time.Minute)
	var fleet status.Fleet = inventory{ids[1]: "aws:///us-east-1a/" + ids[1]}
	events, _, err := status.New(clients, clock.API()).Look(exampleContext(), 0, fleet)
	fmt.Println(len(events), "of", len(ids), err)
	fmt.Println(events[0].Instance == "aws:///us-east-1a/"+ids[1], events[0].Kind)
	// Output:
	// 1 of 2 <nil>
	// true InstanceImpaired
}
