package events_test

import (
	"context"
	"fmt"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/events"
)

// inventory is a fleet by EC2's ids: what else runs in the account is not of interest here.
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

// Two machines are to be retired, and only one of them is ours.
func ExampleFleet() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	clients, err := api.Connect(exampleContext(), cloud.API())
	if err != nil {
		panic(err)
	}
	ids, err := launched(cloud, clients, 2)
	if err != nil {
		panic(err)
	}
	for _, id := range ids {
		cloud.Schedule(id, "instance-retirement", "degraded hardware", time.Now().Add(48*time.Hour))
	}
	var fleet events.Fleet = inventory{ids[1]: "aws:///us-east-1a/" + ids[1]}
	source, err := events.Open(exampleContext(), clients, events.Options{StatusChecks: true})
	if err != nil {
		panic(err)
	}
	list, err := source.Checks(exampleContext(), fleet)
	fmt.Println(len(list), "of", len(ids), err)
	fmt.Println(list[0].Instance == "aws:///us-east-1a/"+ids[1], list[0].Kind)
	// Output:
	// 1 of 2 <nil>
	// true MaintenanceScheduled
}
