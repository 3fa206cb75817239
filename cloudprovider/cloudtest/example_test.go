package cloudtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
)

// A provider is checked outside of go test.
func ExampleCheck() {
	cloud, err := memcloud.New(memcloud.Config{Types: catalogue()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cloudtest.Check(context.Background(), cloud))
	// Output: <nil>
}

// optimist says that all is well.
type optimist struct{ cloudprovider.Provider }

func (optimist) Delete(context.Context, string) error { return nil }

func ExampleViolation() {
	cloud, err := memcloud.New(memcloud.Config{Types: catalogue()})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = cloudtest.Harness{Provider: optimist{cloud}, Prefix: "example"}.Check(context.Background())
	if v, ok := errors.AsType[*cloudtest.Violation](err); ok {
		fmt.Println(v.Case)
		fmt.Println(v.Obligation)
	}
	// Output:
	// create-dead-token
	// Create with the token of an instance that was deleted fails with ErrNotFound and makes none.
}

// The reply to the first Create is lost. The retry with the same token finds what was made.
func ExampleInject() {
	cloud, err := memcloud.New(memcloud.Config{Types: catalogue()})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := cloudtest.Inject(cloud, cloudtest.Nth(cloudtest.OpCreate, 1, cloudtest.LoseReply()))
	for range 2 {
		launch, err := p.Create(context.Background(), claim())
		fmt.Printf("%q unknown=%t\n", launch.ID, cloudprovider.Advise(err).Unknown)
	}
	fmt.Println(len(cloud.Truth()), "instance")
	// Output:
	// "" unknown=true
	// "memcloud://i-00000001" unknown=false
	// 1 instance
}

// A maker gives each case a cloud of its own, and the kit the means to make the cloud run short. In a test file it is all
// there is to write:
//
//	func TestProvider(t *testing.T) { cloudtest.Run(t, maker) }
func ExampleMaker() {
	var maker cloudtest.Maker = func(*testing.T) cloudtest.Harness {
		cloud, err := memcloud.New(memcloud.Config{Types: catalogue()})
		if err != nil {
			panic(err)
		}
		return cloudtest.Harness{Provider: cloud, Now: cloud.Clock().Now, Exhaust: func(_ context.Context, c cloudprovider.Candidate) (func(), error) {
			restore := func() { _ = cloud.SetCapacity(c.Type, c.Offering, -1) }
			return restore, cloud.SetCapacity(c.Type, c.Offering, 0)
		}}
	}
	fmt.Println(maker(nil).Check(context.Background()))
	// Output: <nil>
}

// Ops name the calls that faults are for: here every second List is out of date, and Create is throttled once.
func ExampleOp() {
	cloud, err := memcloud.New(memcloud.Config{Types: catalogue()})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := func(op cloudtest.Op, n int) cloudtest.Fault {
		switch {
		case op == cloudtest.OpCreate && n == 1:
			return cloudtest.Throttle()
		case op == cloudtest.OpList && n%2 == 0:
			return cloudtest.Stale()
		}
		return cloudtest.Fault{}
	}
	ctx, p := context.Background(), cloudtest.Inject(cloud, plan)
	before, _ := p.List(ctx)
	_, throttled := p.Create(ctx, claim())
	_, err = p.Create(ctx, claim())
	stale, _ := p.List(ctx)
	after, _ := p.List(ctx)
	fmt.Println(errors.Is(throttled, cloudprovider.ErrThrottled), err)
	fmt.Println(len(before), len(stale), len(after))
	// Output:
	// true <nil>
	// 0 0 1
}
