// Local runs a cluster on this machine with the operator in it, until Ctrl-C; with --demo it plays
// a day in ten steps instead.
//
//	go run ./local [--demo] [--ui-bind-address 127.0.0.1:8700] [--instance-types FILE | --region us-east-1]
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/operator/controller"
	"github.com/joinery-sdk/joinery/examples/operator/memory"
	"github.com/joinery-sdk/joinery/examples/operator/page"
	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

type flags struct {
	demo          bool
	page, region  string
	dir           string
	file, metrics string
	boot          time.Duration
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	var f flags
	set := pflag.NewFlagSet("local", pflag.ContinueOnError)
	set.BoolVar(&f.demo, "demo", false, "play the demonstration and end")
	set.StringVar(&f.page, "ui-bind-address", "127.0.0.1:8700", "where the page is served; empty for nowhere")
	set.StringVar(&f.metrics, "metrics-bind-address", "127.0.0.1:0", "where metrics are served")
	set.StringVar(&f.region, "region", "us-east-1", "whose embedded EC2 catalogue is sold")
	set.StringVar(&f.file, "instance-types", "", "a catalogue in the format of Karpenter's KWOK provider instead")
	set.StringVar(&f.dir, "dir", "", "a new folder for keys, data and logs; empty for one that is removed at the end")
	set.DurationVar(&f.boot, "boot", 3*time.Second, "how long a machine takes to boot")
	if err := set.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if f.boot < 0 {
		return fmt.Errorf("--boot %v: want a duration such as 3s, at least 0", f.boot)
	}
	dir := f.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "joinery-cluster-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	} else if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	logs, err := os.Create(filepath.Join(dir, "operator.log"))
	if err != nil {
		return err
	}
	defer logs.Close()
	ctrl.SetLogger(zap.New(zap.WriteTo(logs)))
	types, err := memory.Catalogue(f.file, f.region)
	if err != nil {
		return err
	}
	s, err := sandbox.Start(ctx, progress, filepath.Join(dir, "cluster"), types, memcloud.Config{Boot: f.boot, Shutdown: time.Second})
	if err != nil {
		return err
	}
	defer s.Stop()
	options := controller.Options{MetricsAddress: f.metrics}
	if f.demo {
		options.Poll, options.Validate = 2*time.Second, 4*time.Second
	}
	r, err := s.Operate(ctx, options, func(o *controller.Operator) []manager.Runnable { return page.Serve(f.page, o) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Stop()) }()
	if f.demo {
		return demo(ctx, s, out)
	}
	if err := s.Apply(ctx, sandbox.Class(), sandbox.Pool("default")); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "export KUBECONFIG=%s\nexport PATH=%s:$PATH\nkubectl create deployment inflate --image=pause --replicas=5\npage: http://%s\nlogs: %s\nCtrl-C ends it.\n",
		s.Kubeconfig, filepath.Dir(s.Kubectl), f.page, logs.Name())
	<-ctx.Done()
	return nil
}
