// Package e2e is Karpenter itself, its core controllers as released, on a real API server, scheduler and controller-manager, with
// providers of this library behind it. Every test ends with nothing left: no machine, no node, no claim.
package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwok "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/cloudprovider/idempotent"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/karpenter"
	"github.com/joinery-sdk/joinery/examples/karpenter/upkeep"
	"github.com/joinery-sdk/joinery/examples/newprovider"
	"github.com/joinery-sdk/joinery/examples/newprovider/sky"
	"github.com/joinery-sdk/joinery/examples/operator/cluster"
	"github.com/joinery-sdk/joinery/examples/operator/crds"
	"github.com/joinery-sdk/joinery/examples/operator/memory"
	"github.com/joinery-sdk/joinery/instancetypes"
)

// limit is how long anything may take: seconds on two idle cores, minutes where others work on them.
const limit = 4 * time.Minute

// withheld is how long a refusal counts.
const withheld = 20 * time.Second

// chosen names the provider of a process: Karpenter keeps so much in variables that a process can run it once.
const chosen = "JOINERY_E2E_PROVIDER"

// subject is a provider and what a test may do to its cloud.
type subject struct {
	name      string
	provider  cloudprovider.Provider
	machines  func(context.Context) ([]cloudprovider.Instance, error) // all that are there, whoever made them
	sell      func(ctx context.Context, typeName string, sold bool) error
	interrupt func(ctx context.Context, id string) error
}

var (
	under subject
	api   client.Client
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Fprintln(os.Stderr, "e2e: left out with -short: it needs minutes and a cluster")
		return
	}
	if name := os.Getenv(chosen); name != "" {
		os.Exit(run(m, name))
	}
	code := 0
	for _, name := range []string{"memcloud", "newprovider"} {
		again := exec.Command(os.Args[0], os.Args[1:]...) //nolint:noctx // it ends by itself
		again.Env, again.Stdout, again.Stderr = append(os.Environ(), chosen+"="+name), os.Stdout, os.Stderr
		_, _ = fmt.Fprintln(os.Stdout, "Karpenter with", name)
		if err := again.Run(); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, name+":", err)
			code = 1
		}
	}
	os.Exit(code)
}

func run(m *testing.M, name string) (code int) {
	dir, err := os.MkdirTemp("", "joinery-karpenter-")
	if err != nil {
		panic(err)
	}
	defer func() {
		if code == 0 {
			_ = os.RemoveAll(dir)
		} else {
			fmt.Fprintln(os.Stderr, "e2e: logs are in", dir)
		}
	}()
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // there is no test yet
	defer cancel()
	bin, err := cluster.Build(ctx, os.Stderr)
	if err != nil {
		panic(err)
	}
	c, err := cluster.Start(ctx, bin, filepath.Join(dir, "cluster"))
	if err != nil {
		panic(err)
	}
	defer c.Stop()
	if err := crds.Install(c.Config); err != nil {
		panic(err)
	}
	if api, err = client.New(c.Config, client.Options{Scheme: scheme.Scheme}); err != nil {
		panic(err)
	}
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	under = open(ctx, name, dir, &background)
	for key, value := range map[string]string{"KUBECONFIG": c.Kubeconfig, "DISABLE_LEADER_ELECTION": "true", "SYSTEM_NAMESPACE": "kube-system"} {
		if err := os.Setenv(key, value); err != nil {
			panic(err)
		}
	}
	// Karpenter reads its flags from the command line.
	os.Args = []string{os.Args[0], "--metrics-port=0", "--health-probe-port=0", "--log-output-paths=" + filepath.Join(dir, "karpenter.log")}
	background.Go(func() { startKarpenter(ctx, under.provider) })
	return m.Run()
}

// startKarpenter is what a main function does: Karpenter's own, with AsKarpenter in place of a provider, and what its core leaves to
// providers beside it. It returns when the context ends.
func startKarpenter(ctx context.Context, provider cloudprovider.Provider) {
	settings, op := operator.NewOperator()
	adaptor, err := karpenter.AsKarpenter(settings, provider, karpenter.Options{
		Client: op.GetClient(), Classes: []status.Object{&kwok.KWOKNodeClass{}}, Policy: availability.Policy{First: withheld, Longest: withheld},
	})
	if err != nil {
		panic(err)
	}
	keeper := upkeep.Keeper{
		Client: op.GetClient(), Provider: provider, Refuse: adaptor.Refuse, Timeouts: lifecycle.Timeouts{Orphan: 5 * time.Second}, Poll: time.Second,
	}
	if err := op.Add(keeper); err != nil {
		panic(err)
	}
	decorated := overlay.Decorate(adaptor, op.GetClient(), op.InstanceTypeStore)
	known := state.NewCluster(op.Clock, op.GetClient(), decorated)
	all := controllers.NewControllers(settings, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, decorated, adaptor, known, op.InstanceTypeStore, op.PredictionStore)
	if err := op.WithControllers(settings, all...).Manager.Start(ctx); err != nil {
		panic(err)
	}
}

// open is a provider whose machines join the cluster.
func open(ctx context.Context, name, dir string, background *sync.WaitGroup) subject {
	types, err := memory.Catalogue("", "us-east-1")
	if err != nil {
		panic(err)
	}
	types = slices.DeleteFunc(types, func(t instancetypes.InstanceType) bool {
		return !slices.Contains([]string{"m6a.large", "m6a.xlarge", "m6a.2xlarge", "r6a.xlarge", "t3a.medium"}, t.Name)
	})
	switch name {
	case "memcloud":
		cloud, err := memory.New(types, memcloud.Config{Boot: time.Second, Shutdown: 500 * time.Millisecond})
		if err != nil {
			panic(err)
		}
		background.Go(func() { _ = cloud.Run(ctx, api) })
		return subject{
			name: name, provider: cloud,
			machines: func(context.Context) ([]cloudprovider.Instance, error) { return cloud.Truth(), nil },
			sell: func(_ context.Context, typeName string, sold bool) error {
				for _, o := range offeringsOf(types, typeName) {
					if err := cloud.SetCapacity(typeName, o.Offering, map[bool]int{true: -1}[sold]); err != nil {
						return err
					}
				}
				return nil
			},
			interrupt: func(_ context.Context, id string) error {
				return cloud.Interrupt(id, interruption.SpotInterrupted, time.Minute)
			},
		}
	case "newprovider":
		catalogue, err := json.Marshal(types)
		if err != nil {
			panic(err)
		}
		cloud := sky.New(0, time.Now)
		provider := newprovider.New(newprovider.Config{
			Client: cloud, Store: idempotent.NewFile(filepath.Join(dir, "journal.json")), Now: time.Now,
			Types: func() (copied []instancetypes.InstanceType) {
				if err := json.Unmarshal(catalogue, &copied); err != nil {
					panic(err)
				}
				return copied
			},
		})
		background.Go(func() { join(ctx, provider) })
		return subject{
			name: name, provider: provider, machines: provider.List,
			sell: func(_ context.Context, typeName string, sold bool) error {
				for _, o := range offeringsOf(types, typeName) {
					cloud.SellOut(newprovider.OfferOf(o), !sold)
				}
				return nil
			},
			interrupt: cloud.DeleteMachine, // this cloud gives no notice: the machine is gone
		}
	default:
		panic("no provider " + name)
	}
}

func offeringsOf(types []instancetypes.InstanceType, name string) []cloudprovider.Candidate {
	var out []cloudprovider.Candidate
	for _, t := range types {
		for _, o := range t.Offerings {
			if t.Name == name {
				out = append(out, cloudprovider.Candidate{Type: name, Offering: o.Requirements})
			}
		}
	}
	return out
}

// join lets machines join until the context ends.
func join(ctx context.Context, cloud *newprovider.Provider) {
	var kubelets memory.Kubelets
	for ctx.Err() == nil {
		list, err := cloud.List(ctx)
		if err == nil {
			err = kubelets.Join(ctx, api, list)
		}
		if err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintln(io.Discard, err) // it is tried again
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// counted is what there is.
type counted struct{ pods, running, nodes, claims, machines int }

func count(ctx context.Context) (counted, error) {
	var pods corev1.PodList
	var nodes corev1.NodeList
	var claims karpv1.NodeClaimList
	for _, list := range []client.ObjectList{&pods, &nodes, &claims} {
		if err := api.List(ctx, list); err != nil {
			return counted{}, err
		}
	}
	machines, err := under.machines(ctx)
	c := counted{pods: len(pods.Items), nodes: len(nodes.Items), claims: len(claims.Items), machines: len(machines)}
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			c.running++
		}
	}
	return c, err
}

// begin puts objects into the cluster, and takes everything away again at the end of the test.
func begin(t *testing.T, objects ...client.Object) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, kind := range []client.Object{&appsv1.Deployment{}, &corev1.Pod{}} {
			require.NoError(t, api.DeleteAllOf(ctx, kind, client.InNamespace("default"), client.GracePeriodSeconds(0)))
		}
		require.NoError(t, api.DeleteAllOf(ctx, &karpv1.NodePool{}))
		reach(t, "nothing is left", func(c counted) bool { return c == counted{} })
		require.NoError(t, api.DeleteAllOf(ctx, &kwok.KWOKNodeClass{}))
	})
	for _, o := range append([]client.Object{class()}, objects...) {
		require.NoError(t, api.Create(t.Context(), o))
	}
}

// reach waits for a state of the cluster.
func reach(t *testing.T, what string, want func(counted) bool) counted {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var now counted
	start := time.Now()
	err := until(ctx, limit, func() error {
		var err error
		if now, err = count(ctx); err == nil && !want(now) {
			err = fmt.Errorf("%s: not yet, there are %+v", what, now)
		}
		return err
	})
	require.NoError(t, err)
	t.Logf("%s after %.1f s: %+v", what, time.Since(start).Seconds(), now)
	return now
}

func running(t *testing.T, n int) counted {
	t.Helper()
	return reach(t, fmt.Sprintf("%d pods run", n), func(c counted) bool { return c.running == n && c.pods == n })
}

func scale(t *testing.T, d *appsv1.Deployment, n int32) {
	t.Helper()
	patch := client.MergeFrom(d.DeepCopy())
	d.Spec.Replicas = &n
	require.NoError(t, api.Patch(t.Context(), d, patch))
}

func machines(t *testing.T) []cloudprovider.Instance {
	t.Helper()
	list, err := under.machines(t.Context())
	require.NoError(t, err)
	return list
}
