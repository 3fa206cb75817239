// Operator provisions nodes for the pods of a cluster, and gives back nodes that cost more than
// they are good for.
//
//	operator [--provider memory|aws] [--kubeconfig FILE] [--ui-bind-address :8700] ...
//
// Try it without a cluster by "make cluster" in the root of the repository.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/examples/operator/controller"
	"github.com/joinery-sdk/joinery/examples/operator/crds"
	"github.com/joinery-sdk/joinery/examples/operator/memory"
	"github.com/joinery-sdk/joinery/examples/operator/page"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/proof"
	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

type flags struct {
	provider, kubeconfig, page, spread    string
	checker                               string
	cluster, region, queue, instanceTypes string
	boot                                  time.Duration
	zoneBudgets                           []string
	first                                 []string
	installCRDs                           bool
	options                               controller.Options
}

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

// notNegative refuses durations below 0.
func notNegative(set *pflag.FlagSet) error {
	var errs []error
	set.Visit(func(f *pflag.Flag) {
		if d, err := set.GetDuration(f.Name); err == nil && d < 0 {
			errs = append(errs, fmt.Errorf("--%s %v: want a duration such as 10s, at least 0", f.Name, d))
		}
	})
	return errors.Join(errs...)
}

func run(ctx context.Context, args []string) error {
	var f flags
	set := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	set.StringVar(&f.provider, "provider", "memory", "memory or aws")
	set.StringVar(&f.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "the kubeconfig file; empty for the settings of the pod")
	set.StringVar(&f.page, "ui-bind-address", "", "where the page is served; empty for nowhere")
	set.BoolVar(&f.installCRDs, "install-crds", false, "install Karpenter's resources first, or bring them up to date")
	set.StringVar(&f.region, "region", "us-east-1", "of AWS; memory sells its embedded catalogue")
	set.StringVar(&f.cluster, "cluster-name", "", "aws: the name of the EKS cluster")
	set.StringVar(&f.queue, "interruption-queue", "", "aws: the SQS queue of EC2's events")
	set.StringVar(&f.instanceTypes, "instance-types", "", "memory: a catalogue in the format of Karpenter's KWOK provider")
	set.DurationVar(&f.boot, "boot", 3*time.Second, "memory: how long a machine takes to boot")
	set.StringVar(&f.options.MetricsAddress, "metrics-bind-address", ":8080", "where metrics are served; empty for nowhere")
	set.StringVar(&f.options.HealthAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served; empty for nowhere")
	set.BoolVar(&f.options.LeaderElection, "leader-elect", false, "elect a leader, so that only one of several replicas works")
	set.StringVar(&f.options.Namespace, "leader-elect-namespace", "kube-system", "where the lease is")
	set.DurationVar(&f.options.BatchIdle, "batch-idle-duration", 0, "a batch ends when no pod has come for this long; 0 means 1s")
	set.DurationVar(&f.options.BatchMax, "batch-max-duration", 0, "a batch ends after this long; 0 means 10s")
	set.DurationVar(&f.options.Poll, "poll-period", 0, "how often the cloud is asked and disruption is planned; 0 means 10s")
	set.DurationVar(&f.options.Validate, "validation-period", 0, "how long a saving must last before it is carried out; 0 means 15s")
	set.DurationVar(&f.options.Disruption.LaunchTime, "launch-time", 0, "how long a node takes: an interruption that leaves less does not wait for the replacement; 0 means 1m")
	set.BoolVar(&f.options.Disruption.SpotToSpot, "spot-to-spot", false, "replace spot nodes by cheaper spot nodes")
	set.BoolVar(&f.options.Disruption.DriftByZone, "drift-by-zone", false, "replace drifted nodes in one zone at a time")
	set.StringSliceVar(&f.first, "terminate-first", []string{string(eligibility.Unhealthy)}, "methods that remove a node first if no replacement can be bought before it goes (a full reservation, a limit that is reached): unhealthy, drift; none for no method")
	set.StringArrayVar(&f.zoneBudgets, "zone-budget", nil, "how many nodes of each zone may leave at once, whatever their pools, such as 2 or 10% (repeatable; the smallest counts)")
	set.BoolVar(&f.options.DeletionCosts, "pod-deletion-cost", false, "write the annotation controller.kubernetes.io/pod-deletion-cost of pods that ReplicaSets control, so that workloads that are scaled down empty the nodes that should go")
	set.StringVar(&f.spread, "scheduler-config", "", "file with kube-scheduler's KubeSchedulerConfiguration, or the file of Karpenter's flag of this name: the default topology spread of pods that have none")
	set.StringVar(&f.checker, "check", "", "a program that must confirm each plan, with its proof on stdin, before nodes are bought for pods, such as a build of examples/check")
	if err := set.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if err := notNegative(set); err != nil {
		return err
	}
	f.options.Disruption.TerminateFirst = []eligibility.Method{}
	for _, text := range f.first {
		switch m := eligibility.Method(text); m {
		case eligibility.Unhealthy, eligibility.Drift:
			f.options.Disruption.TerminateFirst = append(f.options.Disruption.TerminateFirst, m)
		case "none":
		default:
			return fmt.Errorf("--terminate-first %q: want unhealthy, drift, or none", text)
		}
	}
	for _, text := range f.zoneBudgets {
		b, err := nodepool.ParseBudget(text)
		if err != nil {
			return fmt.Errorf("--zone-budget %w", err)
		}
		f.options.Disruption.ZoneBudgets = append(f.options.Disruption.ZoneBudgets, b)
	}
	if f.spread != "" {
		if err := f.readSpread(); err != nil {
			return err
		}
	}
	if f.checker != "" {
		f.options.Confirm = func(ctx context.Context, p *plan.Plan) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return proof.Confirm(ctx, f.checker, p, io.Discard)
		}
	}
	ctrl.SetLogger(zap.New())
	cfg, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS = -1 // the API server's own fairness is enough
	if f.installCRDs {
		if err := crds.Install(cfg); err != nil {
			return err
		}
	}
	provider, background, err := f.open(ctx, cfg)
	if err != nil {
		return err
	}
	f.options.Provider = provider
	operator, err := controller.New(cfg, f.options)
	if err != nil {
		return err
	}
	for _, r := range append(background, page.Serve(f.page, operator)...) {
		if err := operator.Manager().Add(r); err != nil {
			return err
		}
	}
	return operator.Manager().Start(ctx)
}

// readSpread reads the file of --scheduler-config.
func (f *flags) readSpread() error {
	data, err := os.ReadFile(f.spread)
	if err != nil {
		return fmt.Errorf("--scheduler-config: %w", err)
	}
	if data, err = yaml.YAMLToJSON(data); err == nil {
		f.options.Spread, err = defaultspread.Decode(data)
	}
	if err != nil {
		return fmt.Errorf("--scheduler-config %s: %w", f.spread, err)
	}
	return nil
}

// open returns the cloud, and what has to run beside it.
func (f *flags) open(ctx context.Context, cfg *rest.Config) (cloudprovider.Provider, []manager.Runnable, error) {
	api, err := client.New(cfg, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, nil, err
	}
	switch f.provider {
	case "aws":
		provider, err := f.openAWS(ctx, api)
		return provider, nil, err
	case "memory":
		types, err := memory.Catalogue(f.instanceTypes, f.region)
		if err != nil {
			return nil, nil, err
		}
		cloud, err := memory.New(types, memcloud.Config{Boot: f.boot, Shutdown: time.Second})
		if err != nil {
			return nil, nil, err
		}
		return cloud, []manager.Runnable{manager.RunnableFunc(func(ctx context.Context) error { return cloud.Run(ctx, api) })}, nil
	}
	return nil, nil, fmt.Errorf("--provider %q: want memory or aws", f.provider)
}
