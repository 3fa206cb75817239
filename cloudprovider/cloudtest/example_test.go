package cloudtest_test

import (
	"context"
	"errors"
	"fmt"

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
