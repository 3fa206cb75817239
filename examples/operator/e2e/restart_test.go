package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/examples/operator/memory"
	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
)

var errCrashed = errors.New("the process has crashed")

// crash ends an operator at one of its writes, to the API server or the cloud: before it takes effect, or after that but before
// the operator hears of it. From then on nothing that the operator does has any effect.
type crash struct {
	*memory.Cloud

	at    int  // the number of the write, from 1; 0 for never
	after bool // it takes effect

	mu     sync.Mutex
	writes int
	what   string        // it was
	down   chan struct{} // closed when it has happened
}

func newCrash(at int, after bool) *crash {
	return &crash{Cloud: world.Cloud, at: at, after: after, down: make(chan struct{})}
}

// write does a write, unless the process has crashed.
func (c *crash) write(what string, do func() error) error {
	c.mu.Lock()
	if c.what != "" {
		c.mu.Unlock()
		return errCrashed
	}
	if !strings.Contains(what, "NodePool") { // what a pool has is counted anew at any time
		c.writes++
	}
	now := c.writes == c.at && !strings.Contains(what, "NodePool")
	if now {
		c.what = what
		defer close(c.down)
	}
	c.mu.Unlock()
	if !now {
		return do()
	}
	if c.after {
		_ = do()
	}
	return errCrashed
}

// Create is a write to the cloud.
func (c *crash) Create(ctx context.Context, claim cloudprovider.NodeClaim) (launch cloudprovider.Launch, err error) {
	err = c.write("buy a machine", func() error { launch, err = c.Cloud.Create(ctx, claim); return err })
	return launch, err
}

// Delete is a write to the cloud.
func (c *crash) Delete(ctx context.Context, id string) error {
	return c.write("delete a machine", func() error { return c.Cloud.Delete(ctx, id) })
}

func (c *crash) client(cfg *rest.Config, options client.Options) (client.Client, error) {
	inner, err := client.NewWithWatch(cfg, options)
	if err != nil {
		return nil, err
	}
	name := func(o client.Object) string { return fmt.Sprintf("%T", o) }
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, x client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return c.write("create "+name(o), func() error { return x.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, x client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return c.write("delete "+name(o), func() error { return x.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, x client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return c.write("patch "+name(o), func() error { return x.Patch(ctx, o, p, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, x client.Client, sub string, o, s client.Object, opts ...client.SubResourceCreateOption) error {
			return c.write("create "+sub+" of "+name(o), func() error { return x.SubResource(sub).Create(ctx, o, s, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, x client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return c.write("patch "+sub+" of "+name(o), func() error { return x.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	}), nil
}

// The operator is killed at every one of its writes in the life of a node, from the claim to the end of the machine, and another
// goes on: the pod runs, no machine is bought twice, and nothing is left in the end.
func TestRestartBetweenAnyTwoSteps(t *testing.T) {
	modes := []bool{false, true}
	for step := 1; ; step++ {
		crashed := false
		for _, after := range modes {
			// One of the two in turn is enough between releases.
			if os.Getenv("JOINERY_LONG") == "" && after != (step%2 == 0) {
				continue
			}
			t.Run(fmt.Sprintf("write %d, after %t", step, after), func(t *testing.T) { crashed = lifeWithCrash(t, step, after) || crashed })
		}
		if !crashed {
			t.Logf("a life has %d writes", step-1)
			require.Greater(t, step, 15)
			return
		}
	}
}

// lifeWithCrash reports whether the life of the node was long enough for the crash.
func lifeWithCrash(t *testing.T, step int, after bool) bool {
	c := newCrash(step, after)
	options := fast()
	options.Provider, options.NewClient = c, c.client
	ctx := context.WithoutCancel(t.Context())
	r, err := world.Operate(ctx, options)
	require.NoError(t, err)
	restarted := false
	defer func() { require.NoError(t, r.Stop()) }()
	defer nothingLeft(t)
	restart := func() {
		if restarted {
			return
		}
		select {
		case <-c.down:
		default:
			return
		}
		restarted = true
		require.NoError(t, r.Stop())
		t.Logf("crashed: %s", c.what)
		if r, err = world.Operate(ctx, fast()); err != nil {
			t.Fatal(err)
		}
	}
	app := sandbox.Inflate("app", 1, "1", "1Gi")
	require.NoError(t, world.Apply(ctx, sandbox.Class(), sandbox.Pool("default", quiet), app))
	most := 0
	wait := func(want sandbox.State, seen func(sandbox.State) bool) {
		eventually(t, func() error {
			restart()
			s, err := world.State(ctx)
			most = max(most, s.Machines)
			if err == nil && !seen(s) {
				err = fmt.Errorf("want %s, got %s", want, s)
			}
			return err
		})
	}
	wait(sandbox.State{Pods: 1, Running: 1, Nodes: 1, Claims: 1, Machines: 1}, func(s sandbox.State) bool { return s.Running == 1 && s.Pods == 1 && s.Machines == 1 })
	require.Equal(t, 1, most, "a machine was bought twice")
	require.NoError(t, world.Client.Delete(ctx, app))
	for _, claim := range claims(t) { // its pod is drained, or gone already
		require.NoError(t, client.IgnoreNotFound(world.Client.Delete(ctx, &claim)))
	}
	wait(sandbox.State{}, func(s sandbox.State) bool { return s == sandbox.State{} })
	return restarted
}

// The API server is away for ten seconds in the middle of a scale-up, and what was asked for comes true all the same.
func TestAPIServerDown(t *testing.T) {
	app := sandbox.Inflate("app", 6, "1", "1Gi", apart)
	begin(t, fast(), sandbox.Pool("default"), app)
	reach(t, "claims are there", func(s sandbox.State) bool { return s.Claims > 0 })
	world.StopAPIServer()
	time.Sleep(10 * time.Second)
	require.NoError(t, world.StartAPIServer(t.Context()))
	running(t, 6)
	reach(t, "one node a pod", func(s sandbox.State) bool { return s.Nodes == 6 && s.Machines == 6 && s.Claims == 6 })
	var node corev1.Node
	require.NoError(t, world.Client.Get(t.Context(), client.ObjectKey{Name: pods(t)[0].Spec.NodeName}, &node))
	require.Equal(t, "true", node.Labels["karpenter.sh/initialized"])
}

// Of two copies one works, and the other goes on when it ends; the rights of deploy/rbac.yaml are enough for that.
func TestLeaderElection(t *testing.T) {
	options := fast()
	options.LeaderElection, options.Namespace = true, "joinery"
	first := begin(t, options, sandbox.Pool("default", quiet), sandbox.Inflate("app", 1, "1", "1Gi"))
	running(t, 1)
	second, err := world.Operate(context.WithoutCancel(t.Context()), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, second.Stop()) })
	select {
	case <-second.Manager().Elected():
		require.Fail(t, "there are two leaders")
	case <-time.After(3 * time.Second):
	}
	_ = first.Stop() // it gives the lease up
	t.Cleanup(func() { nothingLeft(t) })
	require.NoError(t, world.Apply(t.Context(), sandbox.Inflate("more", 1, "6", "1Gi")))
	running(t, 2)
}
