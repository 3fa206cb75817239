package sky_test

import (
	"context"
	"fmt"
	"time"

	"github.com/joinery-sdk/joinery/examples/newprovider/sky"
)

// The list shows a machine when the lag has passed, GetMachine at once.
func ExampleNew() {
	ctx, now := context.Background(), time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	cloud := sky.New(5*time.Second, func() time.Time { return now })
	m, err := cloud.CreateMachine(ctx, sky.Machine{Offer: sky.Offer{Size: "box", Zone: "attic"}})
	fmt.Println(m.ID, err)
	for range 2 {
		list, _, err := cloud.ListMachines(ctx, "")
		fmt.Println(len(list), err)
		now = now.Add(5 * time.Second)
	}
	cloud.Quota(1)
	_, err = cloud.CreateMachine(ctx, sky.Machine{Offer: sky.Offer{Size: "box", Zone: "attic"}})
	fmt.Println(err)
	// Output:
	// sky://m-00000001 <nil>
	// 0 <nil>
	// 1 <nil>
	// sky: quota
}
