package cloudtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// careless are providers that compare too little or too much: claims, tokens, names or ids.
func careless() []breakage {
	var list []breakage
	add := func(is, noticedBy string, wrap func(c *memcloud.Cloud) cloudprovider.Provider) {
		list = append(list, breakage{is, noticedBy, memcloud.Config{}, wrap})
	}
	for what, ignore := range map[string]func(*cloudprovider.NodeClaim){
		"name":           func(c *cloudprovider.NodeClaim) { c.Name = "" },
		"pool":           func(c *cloudprovider.NodeClaim) { c.Pool = "" },
		"node class":     func(c *cloudprovider.NodeClaim) { c.NodeClass = nodepool.NodeClassRef{} },
		"requirements":   func(c *cloudprovider.NodeClaim) { c.Requirements = requirements.Set{} },
		"requests":       func(c *cloudprovider.NodeClaim) { c.Requests = nil },
		"candidates":     func(c *cloudprovider.NodeClaim) { c.Candidates = nil },
		"labels":         func(c *cloudprovider.NodeClaim) { c.Labels = nil },
		"taints":         func(c *cloudprovider.NodeClaim) { c.Taints = nil },
		"startup taints": func(c *cloudprovider.NodeClaim) { c.StartupTaints = nil },
		"order of candidates": func(c *cloudprovider.NodeClaim) {
			slices.SortFunc(c.Candidates, func(a, b cloudprovider.Candidate) int { return strings.Compare(a.String(), b.String()) })
		},
		"candidates after the first": func(c *cloudprovider.NodeClaim) { c.Candidates = c.Candidates[:min(1, len(c.Candidates))] },
		"values of taints": func(c *cloudprovider.NodeClaim) {
			for i := range c.Taints {
				c.Taints[i].Value = ""
			}
			for i := range c.StartupTaints {
				c.StartupTaints[i].Value = ""
			}
		},
		"effects of taints": func(c *cloudprovider.NodeClaim) {
			for i := range c.Taints {
				c.Taints[i].Effect = ""
			}
			for i := range c.StartupTaints {
				c.StartupTaints[i].Effect = ""
			}
		},
		"values of labels": func(c *cloudprovider.NodeClaim) {
			for key := range c.Labels {
				c.Labels[key] = ""
			}
		},
		"amounts of requests": func(c *cloudprovider.NodeClaim) {
			for name := range c.Requests {
				c.Requests[name] = resource.Quantity{}
			}
		},
	} {
		add("compares all of a claim but its "+what, "create-foreign-token", comparing(func(old, next cloudprovider.NodeClaim) bool {
			old, next = old.Clone(), next.Clone()
			ignore(&old)
			ignore(&next)
			return old.Equal(next)
		}))
	}
	add("compares only the names of claims", "create-foreign-token", comparing(func(old, next cloudprovider.NodeClaim) bool { return old.Name == next.Name }))
	add("compares claims letter by letter", "create-idempotent", func(c *memcloud.Cloud) cloudprovider.Provider {
		var mu sync.Mutex
		texts := map[string]string{}
		return claimThen(c, func(claim cloudprovider.NodeClaim) cloudprovider.NodeClaim {
			mu.Lock()
			defer mu.Unlock()
			text, _ := json.Marshal(claim)
			if old, ok := texts[claim.Token]; ok && old != string(text) {
				claim.Candidates = nil
			}
			texts[claim.Token] = string(text)
			return claim
		})
	})
	add("burns the token when a quota blocks", "create-failed-token", burning(cloudprovider.ErrQuota))
	add("burns the token when its context is done", "context-done", burning(context.Canceled))
	add("remembers the token that was deleted last", "create-dead-token", func(c *memcloud.Cloud) cloudprovider.Provider {
		var mu sync.Mutex
		last := ""
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			launch, err := c.Create(ctx, claim)
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, cloudprovider.ErrNotFound) && claim.Token != last {
				claim.Token += "-again"
				return c.Create(ctx, claim)
			}
			return launch, err
		}, delete: func(ctx context.Context, id string) error {
			i, _ := c.Get(ctx, id)
			err := c.Delete(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				last = i.Token
			}
			return err
		}}
	})
	for is, doomed := range map[string]func(gone, i cloudprovider.Instance) bool{
		"deletes what has the same name":                      func(gone, i cloudprovider.Instance) bool { return i.Claim == gone.Claim },
		"deletes what has a name that begins with this one":   func(gone, i cloudprovider.Instance) bool { return strings.HasPrefix(i.Claim, gone.Claim) },
		"deletes what has a token that begins with this one":  func(gone, i cloudprovider.Instance) bool { return strings.HasPrefix(i.Token, gone.Token) },
		"deletes what has a token that this one begins with":  func(gone, i cloudprovider.Instance) bool { return strings.HasPrefix(gone.Token, i.Token) },
		"deletes what has this token but for capital letters": func(gone, i cloudprovider.Instance) bool { return strings.EqualFold(gone.Token, i.Token) },
	} {
		add(is, "delete-only-this", func(c *memcloud.Cloud) cloudprovider.Provider {
			return &broken{provider: c, delete: func(ctx context.Context, id string) error {
				gone, known := c.Get(ctx, id)
				if err := c.Delete(ctx, id); err != nil || known != nil {
					return err
				}
				for _, i := range c.Truth() {
					if doomed(gone, i) {
						_ = c.Delete(ctx, i.ID)
					}
				}
				return nil
			}}
		})
	}
	for is, near := range map[string]func(id string, i cloudprovider.Instance) bool{
		"finds a machine by the beginning of its id": func(id string, i cloudprovider.Instance) bool { return strings.HasPrefix(i.ID, id) },
		"finds a machine by the end of its id":       func(id string, i cloudprovider.Instance) bool { return id != "" && strings.HasSuffix(i.ID, id) },
		"finds a machine by what begins with its id": func(id string, i cloudprovider.Instance) bool { return strings.HasPrefix(id, i.ID) },
		"finds a machine by its id in capitals":      func(id string, i cloudprovider.Instance) bool { return strings.EqualFold(id, i.ID) },
		"finds a machine by its id with blanks":      func(id string, i cloudprovider.Instance) bool { return strings.TrimSpace(id) == i.ID },
		"finds a machine by the number in its id":    func(id string, i cloudprovider.Instance) bool { return number(id) == number(i.ID) && number(id) > 0 },
		"finds a machine by its name":                func(id string, i cloudprovider.Instance) bool { return id == i.Claim },
		"finds a machine by its token":               func(id string, i cloudprovider.Instance) bool { return id == i.Token },
		"finds any machine if the id is empty":       func(id string, _ cloudprovider.Instance) bool { return id == "" },
	} {
		add(is, "get-unknown", func(c *memcloud.Cloud) cloudprovider.Provider {
			return &broken{provider: c, get: func(ctx context.Context, id string) (cloudprovider.Instance, error) {
				return c.Get(ctx, nearest(c, id, near))
			}}
		})
		add(is+", to delete it", "delete-unknown", func(c *memcloud.Cloud) cloudprovider.Provider {
			return &broken{provider: c, delete: func(ctx context.Context, id string) error { return c.Delete(ctx, nearest(c, id, near)) }}
		})
		add(is+", to compare it", "drift-new", func(c *memcloud.Cloud) cloudprovider.Provider {
			return &broken{provider: c, drifted: func(ctx context.Context, id string) (cloudprovider.Drift, error) {
				return c.Drifted(ctx, nearest(c, id, near))
			}}
		})
	}
	slices.SortFunc(list, func(a, b breakage) int { return strings.Compare(a.is, b.is) })
	return list
}

// number is the number that an id of memcloud ends with, or 0.
func number(id string) int {
	text, _ := strings.CutPrefix(id, "memcloud://i-")
	n, _ := strconv.Atoi(text)
	return n
}

// nearest returns the id of a machine that exists and is near to the given id; the id itself if
// there is none, or if it exists.
func nearest(c *memcloud.Cloud, id string, near func(string, cloudprovider.Instance) bool) string {
	all := c.Truth()
	if at := slices.IndexFunc(all, func(i cloudprovider.Instance) bool { return near(id, i) }); at >= 0 &&
		!slices.ContainsFunc(all, func(i cloudprovider.Instance) bool { return i.ID == id }) {
		return all[at].ID
	}
	return id
}

// comparing takes a claim whose token was used for the one of before if they are the same.
func comparing(same func(old, next cloudprovider.NodeClaim) bool) func(c *memcloud.Cloud) cloudprovider.Provider {
	var claims sync.Map // by cloud and token, so that a restart forgets nothing
	type key struct {
		cloud *memcloud.Cloud
		token string
	}
	return func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			if old, ok := claims.Load(key{c, claim.Token}); ok && claim.Validate() == nil && same(old.(cloudprovider.NodeClaim), claim) {
				return c.Create(ctx, old.(cloudprovider.NodeClaim))
			}
			launch, err := c.Create(ctx, claim)
			if err == nil {
				claims.LoadOrStore(key{c, claim.Token}, claim.Clone())
			}
			return launch, err
		}}
	}
}

// burning never takes a token again once Create has failed with the error.
func burning(cause error) func(c *memcloud.Cloud) cloudprovider.Provider {
	return func(c *memcloud.Cloud) cloudprovider.Provider {
		var burnt sync.Map
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			if _, ok := burnt.Load(claim.Token); ok {
				return cloudprovider.Launch{}, &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Op: "create", Subject: claim.Name}
			}
			launch, err := c.Create(ctx, claim)
			if errors.Is(err, cause) {
				burnt.Store(claim.Token, true)
			}
			return launch, err
		}}
	}
}
