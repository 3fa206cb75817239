package cloudtest_test

import (
	"context"
	"errors"
	"sync"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// broken is a memcloud of which one method does something else. A nil function leaves the method as it is.
type broken struct {
	provider
	types         func(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error)
	create        func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error)
	get           func(ctx context.Context, id string) (cloudprovider.Instance, error)
	list          func(ctx context.Context) ([]cloudprovider.Instance, error)
	delete        func(ctx context.Context, id string) error
	drifted       func(ctx context.Context, id string) (cloudprovider.Drift, error)
	createMany    func(ctx context.Context, claims []cloudprovider.NodeClaim) []cloudprovider.Result
	policies      func() []cloudprovider.RepairPolicy
	reboot        func(ctx context.Context, id, operation string) error
	interruptions func(ctx context.Context, cursor string) ([]interruption.Event, string, error)
}

func (b *broken) InstanceTypes(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error) {
	if b.types != nil {
		return b.types(ctx, pool)
	}
	return b.provider.InstanceTypes(ctx, pool)
}

func (b *broken) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	if b.create != nil {
		return b.create(ctx, claim)
	}
	return b.provider.Create(ctx, claim)
}

func (b *broken) Get(ctx context.Context, id string) (cloudprovider.Instance, error) {
	if b.get != nil {
		return b.get(ctx, id)
	}
	return b.provider.Get(ctx, id)
}

func (b *broken) List(ctx context.Context) ([]cloudprovider.Instance, error) {
	if b.list != nil {
		return b.list(ctx)
	}
	return b.provider.List(ctx)
}

func (b *broken) Delete(ctx context.Context, id string) error {
	if b.delete != nil {
		return b.delete(ctx, id)
	}
	return b.provider.Delete(ctx, id)
}

func (b *broken) Drifted(ctx context.Context, id string) (cloudprovider.Drift, error) {
	if b.drifted != nil {
		return b.drifted(ctx, id)
	}
	return b.provider.Drifted(ctx, id)
}

func (b *broken) CreateMany(ctx context.Context, claims []cloudprovider.NodeClaim) []cloudprovider.Result {
	if b.createMany != nil {
		return b.createMany(ctx, claims)
	}
	return b.provider.CreateMany(ctx, claims)
}

func (b *broken) RepairPolicies() []cloudprovider.RepairPolicy {
	if b.policies != nil {
		return b.policies()
	}
	return b.provider.RepairPolicies()
}

func (b *broken) Reboot(ctx context.Context, id, operation string) error {
	if b.reboot != nil {
		return b.reboot(ctx, id, operation)
	}
	return b.provider.Reboot(ctx, id, operation)
}

func (b *broken) Interruptions(ctx context.Context, cursor string) ([]interruption.Event, string, error) {
	if b.interruptions != nil {
		return b.interruptions(ctx, cursor)
	}
	return b.provider.Interruptions(ctx, cursor)
}

// typesThen changes the answer of InstanceTypes, one at a time.
func typesThen(c *memcloud.Cloud, change func([]instancetypes.InstanceType) []instancetypes.InstanceType) *broken {
	var mu sync.Mutex
	return &broken{provider: c, types: func(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error) {
		types, err := c.InstanceTypes(ctx, pool)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		return change(types), nil
	}}
}

// createThen changes the answer of Create.
func createThen(c *memcloud.Cloud, change func(cloudprovider.Launch, error) (cloudprovider.Launch, error)) *broken {
	return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
		return change(c.Create(ctx, claim))
	}}
}

// claimThen changes the claim before it gets to Create.
func claimThen(c *memcloud.Cloud, change func(cloudprovider.NodeClaim) cloudprovider.NodeClaim) *broken {
	return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
		return c.Create(ctx, change(claim))
	}}
}

// tokenThen changes the token before it gets to the cloud, and changes it back in the answer.
func tokenThen(c *memcloud.Cloud, change func(string) string) *broken {
	return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
		token := claim.Token
		claim.Token = change(token)
		launch, err := c.Create(ctx, claim)
		launch.Token = token
		return launch, err
	}}
}

// lostThen loses replies, and changes the answer when it is asked again.
func lostThen(c *memcloud.Cloud, change func(*cloudprovider.Launch)) *broken {
	var lost sync.Map
	return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
		launch, err := c.Create(ctx, claim)
		if _, lose := losing.LoadAndDelete(c); lose && err == nil {
			lost.Store(claim.Token, true)
			return cloudprovider.Launch{}, cloudtest.ErrLostReply
		}
		if _, again := lost.Load(claim.Token); again && err == nil {
			change(&launch)
		}
		return launch, err
	}}
}

// startedAgain returns a function that says whether a provider of the cloud was started before.
func startedAgain() func(*memcloud.Cloud) bool {
	var starts sync.Map
	return func(c *memcloud.Cloud) bool {
		_, again := starts.LoadOrStore(c, true)
		return again
	}
}

// counter counts from 1, for several callers.
func counter() func() int {
	var mu sync.Mutex
	n := 0
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		n++
		return n
	}
}

// detailOf changes the detail of an error.
func detailOf(err error, change func(*cloudprovider.Error)) error {
	var detail *cloudprovider.Error
	if !errors.As(err, &detail) {
		return err
	}
	copied := *detail
	change(&copied)
	return &copied
}
