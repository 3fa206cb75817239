package cloudtest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// breakage is a provider that is wrong in one way, with the name of the case that must notice.
type breakage struct {
	is, noticedBy string
	config        memcloud.Config
	wrap          func(c *memcloud.Cloud) cloudprovider.Provider
}

var breakages = []breakage{
	{"hides types that are out of stock", "catalogue-complete", memcloud.Config{Reveal: true}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return typesThen(c, func(types []instancetypes.InstanceType) []instancetypes.InstanceType {
			return slices.DeleteFunc(types, func(t instancetypes.InstanceType) bool { _, ok := t.LeastPrice(requirements.Set{}); return !ok })
		})
	}},
	{"has no price and says infinity", "catalogue-valid", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return typesThen(c, func(types []instancetypes.InstanceType) []instancetypes.InstanceType {
			types[1].Offerings[1].Price = math.Inf(1)
			return types
		})
	}},
	{"promises more than there is", "catalogue-valid", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return typesThen(c, func(types []instancetypes.InstanceType) []instancetypes.InstanceType {
			q := types[0].Overhead.KubeReserved["cpu"]
			q.Neg()
			types[0].Overhead.KubeReserved["cpu"] = q
			return types
		})
	}},
	{"leaves the zone to the cloud", "catalogue-offerings", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return typesThen(c, func(types []instancetypes.InstanceType) []instancetypes.InstanceType {
			types[1].Offerings[1].Requirements = requirements.MustParse("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone in (a,b)")
			return types
		})
	}},
	{"ranges over a map", "catalogue-stable", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		n := counter()
		return typesThen(c, func(types []instancetypes.InstanceType) []instancetypes.InstanceType {
			if n()%2 == 0 {
				slices.Reverse(types)
			}
			return types
		})
	}},
	{"never forgets what was out of stock", "catalogue-recovers", memcloud.Config{Reveal: true}, func(c *memcloud.Cloud) cloudprovider.Provider {
		gone := map[string]bool{}
		return typesThen(c, func(types []instancetypes.InstanceType) []instancetypes.InstanceType {
			for i, t := range types {
				for j, o := range t.Offerings {
					key := t.Name + o.Requirements.String()
					gone[key] = gone[key] || !o.Available
					types[i].Offerings[j].Available = !gone[key]
				}
			}
			return types
		})
	}},
	{"launches its favourite type", "create-candidate", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return claimThen(c, func(claim cloudprovider.NodeClaim) cloudprovider.NodeClaim {
			claim = claim.Clone()
			for i := range claim.Candidates {
				if claim.Candidates[i].Type == "large" {
					claim.Candidates[i].Type = "small"
				}
			}
			return claim
		})
	}},
	{"ignores the token", "create-idempotent", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		n := counter()
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			if claim.Token != "" {
				claim.Token += fmt.Sprintf("-%d", n())
			}
			return c.Create(ctx, claim)
		}}
	}},
	{"looks a candidate up before the token", "create-idempotent", memcloud.Config{}, asksBeforeTheToken(cloudprovider.ErrInvalidSpec)},
	{"looks at quotas before the token", "create-idempotent", memcloud.Config{}, asksBeforeTheToken(cloudprovider.ErrQuota)},
	{"looks for capacity before the token", "create-idempotent", memcloud.Config{}, asksBeforeTheToken(cloudprovider.ErrInsufficientCapacity)},
	{"looks for the token before it locks", "create-at-the-same-time", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		var mu sync.Mutex
		known := map[string]int{}
		arrived := make(chan struct{})
		var once sync.Once
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			mu.Lock()
			n := known[claim.Token]
			known[claim.Token]++
			if known[claim.Token] > 1 {
				once.Do(func() { close(arrived) })
			}
			mu.Unlock()
			if n == 0 && strings.Contains(claim.Token, "same-time") {
				// The first waits until a second is on its way: both have seen that there is no such token.
				select {
				case <-arrived:
				case <-time.After(5 * time.Second):
				}
				claim.Token += "-raced"
			}
			return c.Create(ctx, claim)
		}}
	}},
	{"takes a token for the claim", "create-foreign-token", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		var mu sync.Mutex
		first := map[string]cloudprovider.NodeClaim{}
		return claimThen(c, func(claim cloudprovider.NodeClaim) cloudprovider.NodeClaim {
			mu.Lock()
			defer mu.Unlock()
			if old, ok := first[claim.Token]; ok {
				return old
			}
			first[claim.Token] = claim.Clone()
			return claim
		})
	}},
	{"takes capital letters for small ones", "create-tokens", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return tokenThen(c, func(token string) string { return strings.ToLower(token) })
	}},
	{"replaces what its labels cannot hold", "create-tokens", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return tokenThen(c, func(token string) string { return strings.ReplaceAll(token, "/", ":") })
	}},
	{"cuts tokens to the length of a label", "create-tokens", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return tokenThen(c, func(token string) string { return token[:min(len(token), 63)] })
	}},
	{"refuses tokens that its labels cannot hold", "create-tokens", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return claimThen(c, func(claim cloudprovider.NodeClaim) cloudprovider.NodeClaim {
			if strings.ContainsAny(claim.Token, "/:_.") {
				claim.Candidates = nil
			}
			return claim
		})
	}},
	{"forgets the token of what only the list has told of", "create-dead-token", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		var unheard sync.Map // tokens whose reply was lost
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			launch, err := c.Create(ctx, claim)
			if _, lose := losing.LoadAndDelete(c); lose && err == nil {
				unheard.Store(claim.Token, true)
				return cloudprovider.Launch{}, cloudtest.ErrLostReply
			}
			if _, lost := unheard.Load(claim.Token); lost && errors.Is(err, cloudprovider.ErrNotFound) {
				claim.Token += "-again"
				return c.Create(ctx, claim)
			}
			return launch, err
		}}
	}},
	{"asks the cloud to delete before it writes the end of the token down", "create-dead-token", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		var unwritten sync.Map // tokens whose machine is gone
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			if i, ok := unwritten.Load(claim.Token); ok {
				return cloudprovider.Launch{Instance: i.(cloudprovider.Instance)}, nil
			}
			return c.Create(ctx, claim)
		}, delete: func(ctx context.Context, id string) error {
			i, _ := c.Get(ctx, id)
			err := c.Delete(ctx, id)
			if _, lose := losing.LoadAndDelete(c); lose && err == nil {
				unwritten.Store(i.Token, i)
				return cloudtest.ErrLostReply
			}
			return err
		}}
	}},
	{"launches a new one for a dead token", "create-dead-token", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			launch, err := c.Create(ctx, claim)
			if errors.Is(err, cloudprovider.ErrNotFound) {
				claim.Token += "-again"
				return c.Create(ctx, claim)
			}
			return launch, err
		}}
	}},
	{"drops candidates that it does not know", "create-invalid", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return claimThen(c, func(claim cloudprovider.NodeClaim) cloudprovider.NodeClaim {
			known := slices.DeleteFunc(slices.Clone(claim.Candidates), func(x cloudprovider.Candidate) bool { return strings.Contains(x.Type, "no-such") })
			if len(known) > 0 {
				claim.Candidates = known
			}
			return claim
		})
	}},
	{"names the last refusal only", "create-no-capacity", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return createThen(c, func(l cloudprovider.Launch, err error) (cloudprovider.Launch, error) {
			return l, detailOf(err, func(e *cloudprovider.Error) { e.Refused = e.Refused[max(0, len(e.Refused)-1):] })
		})
	}},
	{"takes a quota for a lack of capacity", "create-quota", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return createThen(c, func(l cloudprovider.Launch, err error) (cloudprovider.Launch, error) {
			if errors.Is(err, cloudprovider.ErrQuota) {
				err = detailOf(err, func(e *cloudprovider.Error) { e.Code = cloudprovider.ErrInsufficientCapacity })
			}
			return l, err
		})
	}},
	{"does not say which quota", "create-quota", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return createThen(c, func(l cloudprovider.Launch, err error) (cloudprovider.Launch, error) {
			return l, detailOf(err, func(e *cloudprovider.Error) { e.Quotas = nil })
		})
	}},
	{"keeps to itself what was refused", "create-next-candidate", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return createThen(c, func(l cloudprovider.Launch, err error) (cloudprovider.Launch, error) { l.Refused = nil; return l, err })
	}},
	{"burns the token of a failure", "create-failed-token", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		burnt := map[string]error{}
		var mu sync.Mutex
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			mu.Lock()
			defer mu.Unlock()
			if err, ok := burnt[claim.Token]; ok {
				return cloudprovider.Launch{}, err
			}
			launch, err := c.Create(ctx, claim)
			if errors.Is(err, cloudprovider.ErrInsufficientCapacity) {
				burnt[claim.Token] = err
			}
			return launch, err
		}}
	}},
	{"forgets the claim's labels", "create-labels", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return createThen(c, func(l cloudprovider.Launch, err error) (cloudprovider.Launch, error) {
			delete(l.Labels, "cloudtest.example.com/team")
			return l, err
		})
	}},
	{"labels only what the claim leaves no choice of", "create-labels", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			launch, err := c.Create(ctx, claim)
			for r := range claim.Requirements.All() {
				if _, fixed := r.Single(); !fixed {
					delete(launch.Labels, r.Key())
				}
			}
			return launch, err
		}}
	}},
	{"forgets the labels of its types", "create-labels", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return createThen(c, func(l cloudprovider.Launch, err error) (cloudprovider.Launch, error) {
			delete(l.Labels, "node.kubernetes.io/instance-type")
			return l, err
		})
	}},
	{"looks at the candidates alone", "create-invalid", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return claimThen(c, func(claim cloudprovider.NodeClaim) cloudprovider.NodeClaim {
			if !claim.Requirements.IsImpossible() {
				claim.Requirements = claim.Requirements.Without(requirements.KeysOf("topology.kubernetes.io/zone"))
			}
			return claim
		})
	}},
	{"reports capacity as allocatable", "create-resources", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return createThen(c, func(l cloudprovider.Launch, err error) (cloudprovider.Launch, error) {
			l.Allocatable = l.Capacity.DeepCopy()
			return l, err
		})
	}},
	{"does not read its tags", "get-same", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, get: func(ctx context.Context, id string) (cloudprovider.Instance, error) {
			i, err := c.Get(ctx, id)
			i.Claim, i.Pool = "", ""
			return i, err
		}}
	}},
	{"takes now for when it was made", "get-same", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, get: func(ctx context.Context, id string) (cloudprovider.Instance, error) {
			i, err := c.Get(ctx, id)
			i.Created = i.Created.Add(time.Hour)
			return i, err
		}}
	}},
	{"does not say when it was made", "get-same", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			launch, err := c.Create(ctx, claim)
			launch.Created = time.Time{}
			return launch, err
		}, get: func(ctx context.Context, id string) (cloudprovider.Instance, error) {
			i, err := c.Get(ctx, id)
			i.Created = time.Time{}
			return i, err
		}}
	}},
	{"returns nothing for what is not there", "get-unknown", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, get: func(ctx context.Context, id string) (cloudprovider.Instance, error) {
			i, err := c.Get(ctx, id)
			if errors.Is(err, cloudprovider.ErrNotFound) {
				return cloudprovider.Instance{}, nil
			}
			return i, err
		}}
	}},
	{"reads the first page only", "list-all", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, list: func(ctx context.Context) ([]cloudprovider.Instance, error) {
			list, err := c.List(ctx)
			return list[:min(len(list), 10)], err
		}}
	}},
	{"lists what others made", "list-owners", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, list: func(ctx context.Context) ([]cloudprovider.Instance, error) {
			list, err := c.List(ctx)
			return append(list, cloudprovider.Instance{ID: "z-of-others", State: cloudprovider.Running}), err
		}}
	}},
	{"returns the pages that it got", "list-whole", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, list: func(ctx context.Context) ([]cloudprovider.Instance, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			list, err := c.List(context.WithoutCancel(ctx))
			for end := 5; end < len(list); end += 5 {
				if ctx.Err() != nil {
					return list[:end], nil
				}
			}
			return list, err
		}}
	}},
	{"ends its list at a page that failed", "list-whole", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, list: func(ctx context.Context) ([]cloudprovider.Instance, error) {
			list, err := c.List(ctx)
			if n, lose := lostReads.Load(c); lose && err == nil {
				return list[:min(len(list), 5*(n.(int)-1))], nil
			}
			return list, err
		}}
	}},
	{"only says that it deletes", "delete-ends", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, delete: func(ctx context.Context, _ string) error { return ctx.Err() }}
	}},
	{"fails to delete what is being deleted", "delete-again", memcloud.Config{Shutdown: time.Minute}, func(c *memcloud.Cloud) cloudprovider.Provider {
		var mu sync.Mutex
		asked := map[string]bool{}
		return &broken{provider: c, delete: func(ctx context.Context, id string) error {
			mu.Lock()
			again := asked[id]
			asked[id] = true
			mu.Unlock()
			err := c.Delete(ctx, id)
			if again && err == nil {
				return &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Op: "delete", Subject: id, Err: errors.New("wrong state")}
			}
			return err
		}}
	}},
	{"is locked while it deletes", "delete-again", memcloud.Config{Shutdown: time.Minute}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, delete: func(ctx context.Context, id string) error {
			if i, err := c.Get(ctx, id); err == nil && i.State == cloudprovider.Terminating {
				return &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Op: "delete", Subject: id, Err: errors.New("locked")}
			}
			return c.Delete(ctx, id)
		}}
	}},
	{"is content if there is nothing to delete", "delete-unknown", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, delete: func(ctx context.Context, id string) error {
			if err := c.Delete(ctx, id); !errors.Is(err, cloudprovider.ErrNotFound) {
				return err
			}
			return nil
		}}
	}},
	{"looks an instance up before it deletes it", "delete-at-once", memcloud.Config{Lag: time.Hour, Seed: 1}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, delete: func(ctx context.Context, id string) error {
			if _, err := c.Get(ctx, id); err != nil {
				return err
			}
			return c.Delete(ctx, id)
		}}
	}},
	{"deletes by pool", "delete-only-this", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, delete: func(ctx context.Context, id string) error {
			if err := c.Delete(ctx, id); err != nil {
				return err
			}
			for _, i := range c.Truth() {
				if err := c.Delete(ctx, i.ID); err != nil {
					return err
				}
			}
			return nil
		}}
	}},
	{"finds that everything has drifted", "drift-new", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, drifted: func(ctx context.Context, id string) (cloudprovider.Drift, error) {
			_, err := c.Drifted(ctx, id)
			return cloudprovider.Drift{Reason: "ImageDrift"}, err
		}}
	}},
	{"does not look at its context", "context-done", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			return c.Create(context.WithoutCancel(ctx), claim)
		}}
	}},
	{"takes a context that has ended for a throttle", "context-done", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, list: func(ctx context.Context) ([]cloudprovider.Instance, error) {
			list, err := c.List(ctx)
			if ctx.Err() != nil {
				err = &cloudprovider.Error{Code: cloudprovider.ErrThrottled, Op: "list", Err: ctx.Err()}
			}
			return list, err
		}}
	}},
	{"hands the cloud's errors on", "errors-closed", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, get: func(ctx context.Context, id string) (cloudprovider.Instance, error) {
			i, err := c.Get(ctx, id)
			if errors.Is(err, cloudprovider.ErrNotFound) {
				return i, errors.New("http status 404")
			}
			return i, err
		}}
	}},
	{"has several codes in one error", "errors-closed", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return createThen(c, func(l cloudprovider.Launch, err error) (cloudprovider.Launch, error) {
			if errors.Is(err, cloudprovider.ErrInsufficientCapacity) {
				err = errors.Join(err, cloudprovider.ErrThrottled)
			}
			return l, err
		})
	}},
	{"loses an instance when several are made", "all-at-once", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		var mu sync.Mutex
		last := cloudprovider.Launch{}
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(claim.Name, "all-at-once") && last.ID != "" {
				return last, nil
			}
			launch, err := c.Create(ctx, claim)
			last = launch
			return launch, err
		}}
	}},
	{"sorts the caller's candidates", "arguments", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return claimThen(c, func(claim cloudprovider.NodeClaim) cloudprovider.NodeClaim {
			slices.SortFunc(claim.Candidates, func(a, b cloudprovider.Candidate) int { return strings.Compare(a.String(), b.String()) })
			return claim
		})
	}},
	{"shares its cache", "results", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		var mu sync.Mutex
		var cached []instancetypes.InstanceType
		return &broken{provider: c, types: func(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error) {
			mu.Lock()
			defer mu.Unlock()
			if cached == nil {
				var err error
				if cached, err = c.InstanceTypes(ctx, pool); err != nil {
					return nil, err
				}
			}
			return cached, ctx.Err()
		}}
	}},
	{"forgets its tokens when it is started anew", "started-anew", memcloud.Config{}, func() func(c *memcloud.Cloud) cloudprovider.Provider {
		again := startedAgain()
		return func(c *memcloud.Cloud) cloudprovider.Provider {
			started := again(c)
			return claimThen(c, func(claim cloudprovider.NodeClaim) cloudprovider.NodeClaim {
				if started {
					claim.Token += "-again"
				}
				return claim
			})
		}
	}()},
	{"describes its machines anew when it is started, and wrongly", "started-anew", memcloud.Config{}, func() func(c *memcloud.Cloud) cloudprovider.Provider {
		again := startedAgain()
		return func(c *memcloud.Cloud) cloudprovider.Provider {
			if !again(c) {
				return &broken{provider: c}
			}
			return &broken{provider: c, get: func(ctx context.Context, id string) (cloudprovider.Instance, error) {
				i, err := c.Get(ctx, id)
				i.Type = "large"
				return i, err
			}}
		}
	}()},
	{"takes a lost reply for a refusal", "lost-reply", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			if _, lose := losing.LoadAndDelete(c); lose {
				claim.Token += "-lost"
				_, err := c.Create(ctx, claim)
				return cloudprovider.Launch{}, errors.Join(err, cloudtest.ErrLostReply)
			}
			return c.Create(ctx, claim)
		}}
	}},
	{"takes a lost reply for a lack of capacity", "lost-reply", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			launch, err := c.Create(ctx, claim)
			if _, lose := losing.LoadAndDelete(c); lose && err == nil && len(claim.Candidates) == 1 {
				return cloudprovider.Launch{}, &cloudprovider.Error{Code: cloudprovider.ErrInsufficientCapacity, Op: "create", Subject: claim.Name}
			}
			return launch, err
		}}
	}},
	{"takes another candidate after a lost reply", "lost-reply", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			if _, lose := losing.LoadAndDelete(c); lose && len(claim.Candidates) > 1 {
				lost := claim.Clone()
				lost.Token += "-lost"
				if _, err := c.Create(ctx, lost); err != nil {
					return cloudprovider.Launch{}, err
				}
				claim.Candidates = claim.Candidates[1:]
			}
			return c.Create(ctx, claim)
		}}
	}},
	{"forgets a lost reply with a restart", "lost-reply", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		var mu sync.Mutex
		tokens := map[string]string{}
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			mu.Lock()
			defer mu.Unlock()
			_, lose := losing.LoadAndDelete(c)
			if lose {
				tokens[claim.Token] = claim.Token + "-lost"
			}
			if lost, ok := tokens[claim.Token]; ok {
				claim.Token = lost
			}
			launch, err := c.Create(ctx, claim)
			if lose && err == nil {
				return cloudprovider.Launch{}, cloudtest.ErrLostReply
			}
			return launch, err
		}}
	}},
	{"takes the first machine of a list for the lost one", "lost-reply", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		var lost sync.Map
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			launch, err := c.Create(ctx, claim)
			if _, lose := losing.LoadAndDelete(c); lose && err == nil {
				lost.Store(claim.Token, true)
				return cloudprovider.Launch{}, cloudtest.ErrLostReply
			}
			if _, again := lost.Load(claim.Token); again && err == nil {
				list, err := c.List(ctx)
				if err != nil || len(list) == 0 {
					return launch, err
				}
				launch.ID = list[0].ID
			}
			return launch, err
		}}
	}},
	{"takes a lost machine for the type that it asked for last", "lost-reply", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return lostThen(c, func(l *cloudprovider.Launch) { l.Type = "cloudtest-lost" })
	}},
	{"forgets the claim's labels of a lost machine", "lost-reply", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return lostThen(c, func(l *cloudprovider.Launch) { delete(l.Labels, "cloudtest.example.com/case") })
	}},
	{"does not know the resources of a lost machine", "lost-reply", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return lostThen(c, func(l *cloudprovider.Launch) { l.Capacity, l.Allocatable = nil, nil })
	}},
	{"believes its list at once", "lost-reply", memcloud.Config{Lag: time.Hour, Seed: 1}, func(c *memcloud.Cloud) cloudprovider.Provider {
		var lost sync.Map
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			if _, again := lost.LoadAndDelete(claim.Token); again {
				list, err := c.List(ctx)
				if err != nil {
					return cloudprovider.Launch{}, err
				}
				if !slices.ContainsFunc(list, func(i cloudprovider.Instance) bool { return i.Token == claim.Token }) {
					claim.Token += "-again"
				}
			}
			launch, err := c.Create(ctx, claim)
			if _, lose := losing.LoadAndDelete(c); lose && err == nil {
				lost.Store(claim.Token, true)
				return cloudprovider.Launch{}, cloudtest.ErrLostReply
			}
			return launch, err
		}}
	}},
	{"deletes whatever it is told to", "foreign", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, delete: func(ctx context.Context, id string) error {
			if alive, ok := foreigners.Load(c); ok && id == foreigner {
				*alive.(*bool) = false
			}
			return c.Delete(ctx, id)
		}}
	}},
	{"reboots whatever it is told to", "foreign", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, reboot: func(ctx context.Context, id, operation string) error {
			if id == foreigner {
				return nil
			}
			return c.Reboot(ctx, id, operation)
		}}
	}},
	{"compares machines of others", "foreign", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, drifted: func(ctx context.Context, id string) (cloudprovider.Drift, error) {
			if id == foreigner {
				return cloudprovider.Drift{Reason: "ImageDrift"}, nil
			}
			return c.Drifted(ctx, id)
		}}
	}},
	{"drops the failures of a batch", "batch", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, createMany: func(ctx context.Context, claims []cloudprovider.NodeClaim) []cloudprovider.Result {
			return slices.DeleteFunc(c.CreateMany(ctx, claims), func(r cloudprovider.Result) bool { return r.Err != nil })
		}}
	}},
	{"has two minds about repair", "repair", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, policies: func() []cloudprovider.RepairPolicy {
			return append(c.RepairPolicies(), cloudprovider.RepairPolicy{Condition: "Ready", Status: "False", Toleration: time.Hour})
		}}
	}},
	{"reboots whenever it is asked", "reboot", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		n := counter()
		return &broken{provider: c, reboot: func(ctx context.Context, id, operation string) error {
			return c.Reboot(ctx, id, fmt.Sprintf("%s-%d", operation, n()))
		}}
	}},
	{"remembers reboots in memory only", "reboot", memcloud.Config{}, func() func(c *memcloud.Cloud) cloudprovider.Provider {
		again := startedAgain()
		return func(c *memcloud.Cloud) cloudprovider.Provider {
			start := ""
			if again(c) {
				start = "-again"
			}
			return &broken{provider: c, reboot: func(ctx context.Context, id, operation string) error { return c.Reboot(ctx, id, operation+start) }}
		}
	}()},
	{"replaces what it should reboot", "reboot", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, reboot: func(ctx context.Context, id, _ string) error { return c.Delete(ctx, id) }}
	}},
	{"confirms events by reading them", "interruptions", memcloud.Config{}, func(c *memcloud.Cloud) cloudprovider.Provider {
		var mu sync.Mutex
		read := ""
		return &broken{provider: c, interruptions: func(ctx context.Context, _ string) ([]interruption.Event, string, error) {
			mu.Lock()
			defer mu.Unlock()
			events, next, err := c.Interruptions(ctx, read)
			read = next
			return events, next, err
		}}
	}},
}

// asksBeforeTheToken treats a repeated claim like a new one: it fails if a new one would fail with the code.
func asksBeforeTheToken(code error) func(*memcloud.Cloud) cloudprovider.Provider {
	return func(c *memcloud.Cloud) cloudprovider.Provider {
		var used sync.Map // tokens
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			launch, err := c.Create(ctx, claim)
			_, obstructed := obstacles.Load(obstacle{c, code})
			if _, again := used.LoadOrStore(claim.Token, true); again && obstructed && err == nil {
				return cloudprovider.Launch{}, &cloudprovider.Error{Code: code, Op: "create", Subject: claim.Name}
			}
			return launch, err
		}}
	}
}

// violations are the cases that failed, by name.
func violations(err error) map[string]*cloudtest.Violation {
	found := map[string]*cloudtest.Violation{}
	var walk func(error)
	walk = func(err error) {
		if v, ok := err.(*cloudtest.Violation); ok {
			found[v.Case] = v
			return
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				walk(e)
			}
		}
	}
	walk(err)
	return found
}

func TestBrokenProvidersAreNamed(t *testing.T) {
	obligations := documented(t)
	noticed, passed := map[string]bool{}, map[string]bool{}
	for _, b := range slices.Concat(breakages, careless(), untold(), misheard()) {
		t.Run(strings.ReplaceAll(b.is, " ", "-"), func(t *testing.T) {
			err := harness(t, b.config, b.wrap).Check(t.Context())
			require.Error(t, err)
			found := violations(err)
			v := found[b.noticedBy]
			require.NotNil(t, v, "noticed by others: %v", err)
			assert.Contains(t, obligations, v.Obligation)
			assert.Contains(t, v.Error(), v.Obligation)
			assert.LessOrEqual(t, len(found), 13, "one fault, and nearly everything fails: %v", err)

			// The same provider without the fault.
			cloud := fmt.Sprintf("%+v", b.config)
			if testing.Short() && passed[cloud] {
				return
			}
			passed[cloud] = true
			right := harness(t, b.config, func(c *memcloud.Cloud) cloudprovider.Provider { return &broken{provider: c} })
			require.NoError(t, right.Check(t.Context()))
		})
		noticed[b.noticedBy] = true
	}
	assert.Len(t, noticed, len(obligations), "every obligation has a provider that breaks it")
}
