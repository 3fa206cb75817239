// Package e2e is the operator on a real API server, scheduler and controller-manager. Every test ends with nothing left: no
// machine, no node, no claim, no finalizer.
package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	autoscaling "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	overlays "sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/operator/cluster"
	"github.com/joinery-sdk/joinery/examples/operator/controller"
	"github.com/joinery-sdk/joinery/examples/operator/memory"
	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
	"github.com/joinery-sdk/joinery/instancetypes"
)

// limit is how long anything may take: seconds on two idle cores, minutes where others work on them.
const limit = 3 * time.Minute

var world *sandbox.Sandbox

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Fprintln(os.Stderr, "e2e: left out with -short: it needs minutes and a cluster")
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "joinery-e2e-")
	if err != nil {
		panic(err)
	}
	logs, err := os.Create(filepath.Join(dir, "operator.log"))
	if err != nil {
		panic(err)
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(logs)))
	types, err := memory.Catalogue("", "us-east-1")
	if err != nil {
		panic(err)
	}
	// A thousand types would make every plan of every test slower and no different.
	types = slices.DeleteFunc(types, func(t instancetypes.InstanceType) bool {
		return !slices.Contains([]string{"c6a.large", "m6a.large", "m6a.xlarge", "m6a.2xlarge", "m5.2xlarge", "r6a.xlarge", "t3a.medium"}, t.Name)
	})
	ctx := context.Background() //nolint:forbidigo // there is no test yet
	world, err = sandbox.Start(ctx, os.Stderr, filepath.Join(dir, "cluster"), types, memcloud.Config{Boot: time.Second, Shutdown: 500 * time.Millisecond})
	if offline := (*cluster.OfflineError)(nil); errors.As(err, &offline) && os.Getenv("CI") == "" {
		fmt.Fprintln(os.Stderr, "e2e: SKIPPED, for the programs of the cluster are not there and cannot be built:", err)
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	world.Stop()
	if code == 0 {
		_ = os.RemoveAll(dir)
		return 0
	}
	fmt.Fprintf(os.Stderr, "e2e: logs are in %s; the operator's ends with\n%s\n", dir, cluster.Tail(logs.Name(), 60))
	return code
}

// fast are the options of tests: what may wait minutes in a cluster is looked at every second here.
func fast() controller.Options {
	o := controller.Options{BatchIdle: 300 * time.Millisecond, Poll: time.Second, Validate: 2 * time.Second}
	o.Timeouts.Orphan, o.Timeouts.Lag = 5*time.Second, 10*time.Second
	return o
}

// begin starts an operator and, at the end of the test, takes away all that the test has made and checks that nothing is left.
func begin(t *testing.T, options controller.Options, objects ...client.Object) *sandbox.Run {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	r, err := world.Operate(ctx, options)
	require.NoError(t, err)
	t.Cleanup(func() {
		defer func() { require.NoError(t, r.Stop()) }()
		nothingLeft(t)
	})
	require.NoError(t, world.Apply(t.Context(), append([]client.Object{sandbox.Class()}, objects...)...))
	return r
}

// sayState says what there is, for a test that fails.
func sayState(t *testing.T) {
	t.Helper()
	for _, what := range []string{"nodepools,nodeclaims,nodes,pods -o wide", "events.events.k8s.io --sort-by=.metadata.creationTimestamp"} {
		out, _ := exec.Command(world.Kubectl, append([]string{"--kubeconfig", world.Kubeconfig, "get", "-A"}, strings.Fields(what)...)...).CombinedOutput() //nolint:noctx // the test is over
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Logf("%s\n%s", what, strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
}

// nothingLeft deletes workloads and pools, and waits until there is no machine, node or claim any more.
func nothingLeft(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, kind := range []client.Object{&appsv1.Deployment{}, &appsv1.DaemonSet{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		if _, pods := kind.(*corev1.Pod); pods {
			time.Sleep(500 * time.Millisecond) // controllers take theirs
		}
		require.NoError(t, world.Client.DeleteAllOf(ctx, kind, client.InNamespace("default"), client.GracePeriodSeconds(0)))
	}
	require.NoError(t, world.Client.DeleteAllOf(ctx, &corev1.PersistentVolume{}))
	require.NoError(t, world.Client.DeleteAllOf(ctx, &autoscaling.CapacityBuffer{}, client.InNamespace("default")))
	require.NoError(t, world.Client.DeleteAllOf(ctx, &corev1.PodTemplate{}, client.InNamespace("default")))
	require.NoError(t, world.Client.DeleteAllOf(ctx, &overlays.NodeOverlay{}))
	require.NoError(t, world.Client.DeleteAllOf(ctx, &karpv1.NodePool{}))
	require.NoError(t, world.Client.DeleteAllOf(ctx, &karpv1.NodeClaim{})) // those made by hand
	reach(t, "nothing is left", func(s sandbox.State) bool { return s == sandbox.State{} })
}

// reach waits for a state of the cluster.
func reach(t *testing.T, what string, want func(sandbox.State) bool) sandbox.State {
	t.Helper()
	var now sandbox.State
	eventually(t, func() error {
		var err error
		if now, err = world.State(context.WithoutCancel(t.Context())); err == nil && !want(now) {
			err = fmt.Errorf("%s: not yet, there are %s", what, now)
		}
		return err
	})
	return now
}

// running waits until so many pods run, and no others are there.
func running(t *testing.T, n int) sandbox.State {
	t.Helper()
	return reach(t, fmt.Sprintf("%d pods run", n), func(s sandbox.State) bool { return s.Running == n && s.Pods == n })
}

func eventually(t *testing.T, ask func() error) {
	t.Helper()
	err := sandbox.Until(context.WithoutCancel(t.Context()), limit, ask)
	if err != nil {
		sayState(t)
	}
	require.NoError(t, err)
}

// steady checks that something stays true for a while.
func steady(t *testing.T, d time.Duration, check func() error) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		require.NoError(t, check())
	}
}

func scale(t *testing.T, d *appsv1.Deployment, n int32) {
	t.Helper()
	patch := client.MergeFrom(d.DeepCopy())
	d.Spec.Replicas = &n
	require.NoError(t, world.Client.Patch(t.Context(), d, patch))
}

func nodes(t *testing.T) []corev1.Node {
	t.Helper()
	var list corev1.NodeList
	require.NoError(t, world.Client.List(t.Context(), &list))
	return list.Items
}

func pods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, world.Client.List(t.Context(), &list))
	return list.Items
}

func claims(t *testing.T) []karpv1.NodeClaim {
	t.Helper()
	var list karpv1.NodeClaimList
	require.NoError(t, world.Client.List(t.Context(), &list))
	return list.Items
}

// hasEvent looks for an event of the operator and a reason whose note contains a text.
func hasEvent(t *testing.T, reason, text string) error {
	t.Helper()
	var list eventsv1.EventList
	if err := world.Client.List(t.Context(), &list); err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Reason == reason && strings.Contains(e.ReportingController, "joinery") && strings.Contains(e.Note, text) {
			return nil
		}
	}
	return fmt.Errorf("no event %s of the operator about %q", reason, text)
}
