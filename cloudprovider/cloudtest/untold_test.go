package cloudtest_test

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// untold are providers that say too little of their machines and types, or what is not so.
func untold() []breakage {
	var list []breakage
	add := func(is, noticedBy string, wrap func(c *memcloud.Cloud) cloudprovider.Provider) {
		list = append(list, breakage{is, noticedBy, memcloud.Config{}, wrap})
	}
	always := func(is, noticedBy string, change func(*cloudprovider.Instance)) {
		add(is, noticedBy, func(c *memcloud.Cloud) cloudprovider.Provider { return everywhere(c, change) })
	}
	always("says that all was made in 1970", "create-time", func(i *cloudprovider.Instance) { i.Created = time.Unix(0, 0) })
	always("has a clock that is an hour ahead", "create-time", func(i *cloudprovider.Instance) { i.Created = i.Created.Add(time.Hour) })
	always("has a clock that is two minutes behind", "create-time", func(i *cloudprovider.Instance) { i.Created = i.Created.Add(-2 * time.Minute) })
	always("never sees a machine run", "get-running", func(i *cloudprovider.Instance) { i.State = cloudprovider.Pending })
	always("adds a label of its own", "create-other-labels", func(i *cloudprovider.Instance) { i.Labels["cloudtest.example.com/own"] = "yes" })
	always("gives all nodes one hostname", "create-other-labels", func(i *cloudprovider.Instance) { i.Labels["kubernetes.io/hostname"] = "localhost" })
	for what, forget := range map[string]func(*cloudprovider.Instance){
		"labels":      func(i *cloudprovider.Instance) { i.Labels = nil },
		"offerings":   func(i *cloudprovider.Instance) { i.Offering = requirements.Set{} },
		"types":       func(i *cloudprovider.Instance) { i.Type = "" },
		"capacity":    func(i *cloudprovider.Instance) { i.Capacity = nil },
		"allocatable": func(i *cloudprovider.Instance) { i.Allocatable = nil },
		"times":       func(i *cloudprovider.Instance) { i.Created = time.Time{} },
		"pools":       func(i *cloudprovider.Instance) { i.Pool = "" },
	} {
		add("lists no "+what, "get-same", func(c *memcloud.Cloud) cloudprovider.Provider {
			return &broken{provider: c, list: func(ctx context.Context) ([]cloudprovider.Instance, error) {
				all, err := c.List(ctx)
				for i := range all {
					forget(&all[i])
				}
				return all, err
			}}
		})
	}
	add("lists all as Pending", "get-running", func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, list: func(ctx context.Context) ([]cloudprovider.Instance, error) {
			all, err := c.List(ctx)
			for i := range all {
				if all[i].State == cloudprovider.Running {
					all[i].State = cloudprovider.Pending
				}
			}
			return all, err
		}}
	})
	add("sells nothing to a pool that it does not know", "catalogue-complete", func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, types: func(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error) {
			if pool.Name != "" {
				return nil, ctx.Err()
			}
			return c.InstanceTypes(ctx, pool)
		}}
	})
	for _, key := range []string{"kubernetes.io/arch", "kubernetes.io/os"} {
		add("does not say "+strings.TrimPrefix(key, "kubernetes.io/"), "catalogue-labels", func(c *memcloud.Cloud) cloudprovider.Provider {
			return typesThen(c, func(types []instancetypes.InstanceType) []instancetypes.InstanceType {
				types[1].Requirements = types[1].Requirements.Without(requirements.KeysOf(key))
				return types
			})
		})
	}
	slices.SortFunc(list, func(a, b breakage) int { return strings.Compare(a.is, b.is) })
	return list
}

// everywhere changes what all methods say of an instance.
func everywhere(c *memcloud.Cloud, change func(*cloudprovider.Instance)) cloudprovider.Provider {
	return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
		launch, err := c.Create(ctx, claim)
		if err == nil {
			change(&launch.Instance)
		}
		return launch, err
	}, get: func(ctx context.Context, id string) (cloudprovider.Instance, error) {
		i, err := c.Get(ctx, id)
		if err == nil {
			change(&i)
		}
		return i, err
	}, list: func(ctx context.Context) ([]cloudprovider.Instance, error) {
		all, err := c.List(ctx)
		for i := range all {
			change(&all[i])
		}
		return all, err
	}}
}
