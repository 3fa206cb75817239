package memcloud_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/requirements"
)

// An account with six spot cores: the second machine of four is one too many, whatever the cloud has.
func ExampleQuota() {
	cloud, err := memcloud.New(memcloud.Config{Types: catalogue(), Quotas: []memcloud.Quota{{
		Name: "spot cores", Covers: requirements.MustParse("karpenter.sh/capacity-type=spot"), Resource: corev1.ResourceCPU, Limit: 6000,
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"node-1", "node-2"} {
		launch, err := cloud.Create(context.Background(), ask(name, "m.large", "spot", "a"))
		if refused, ok := errors.AsType[*cloudprovider.Error](err); ok {
			fmt.Println(name, "is refused:", refused.Quotas[0])
			continue
		}
		fmt.Println(name, "is a", launch.Type)
	}
	// Output:
	// node-1 is a m.large
	// node-2 is refused: quota "spot cores" (4000 of 6000 used) blocks karpenter.sh/capacity-type in (spot)
}
