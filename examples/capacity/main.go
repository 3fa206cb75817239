// Command capacity answers over HTTP whether pods fit a cluster, what would have to be bought for
// them, or why they cannot have a place:
//
//	capacity -f cluster/ -listen localhost:8080
//	curl -d '{"pods": [{"metadata": {"name": "web-0"}, "spec": {...}}]}' localhost:8080/ask
//
// It reads the cluster once, from manifests or an export, and keeps it compiled. A question changes
// nothing. With "commit", the answer is carried out in a new state, and the reply has the number of
// that state. Later questions may be asked of any of the last states. POST /provisioningrequest
// answers a ProvisioningRequest with its PodTemplates. The program is meant to be copied. It has no
// authentication, so put it behind something that has.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/capacity"
	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// How long a client may take for its question, how long an answer may be worked on, and how long
// open questions have when the program ends.
const (
	readTimeout   = 10 * time.Second
	answerTimeout = 30 * time.Second
	drainTimeout  = 5 * time.Second
)

func run(ctx context.Context, args []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet("capacity", flag.ContinueOnError)
	file := flags.String("f", "", "folder or file of manifests: pods, nodes, pools and what affects plans")
	region := flags.String("region", "", "region whose prices count; by default the region of the manifests")
	spread := flags.String("scheduler-config", "", "file with kube-scheduler's KubeSchedulerConfiguration, or the file of Karpenter's flag of this name: the default topology spread of pods that have none")
	listen := flags.String("listen", "localhost:8080", "address to listen on")
	if code, done := inputs.ParseFlags(flags, args, out, problems); done {
		return code
	}
	state, defaults, err := read(ctx, *file, *region, *spread)
	if err != nil {
		fmt.Fprintln(problems, err)
		return inputs.ExitInput
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		fmt.Fprintln(problems, err)
		return inputs.ExitInternal
	}
	web := &http.Server{
		Handler:     http.TimeoutHandler(newServer(state, defaults, time.Now).handler(), answerTimeout, `{"error":"the answer takes too long; ask for fewer pods"}`),
		ReadTimeout: readTimeout, MaxHeaderBytes: 1 << 14,
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	fmt.Fprintln(out, "answering at", *listen)
	select {
	case err = <-failed:
	case <-ctx.Done():
		drain, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		err = web.Shutdown(drain)
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(problems, err)
		return inputs.ExitInternal
	}
	return inputs.ExitOK
}

// read is the cluster of a folder as a state, and the topology spread that pods without any get.
func read(ctx context.Context, folder, region, spread string) (*capacity.State, defaultspread.Defaults, error) {
	if folder == "" {
		return nil, defaultspread.Defaults{}, errors.New("capacity: want -f, a folder or file of manifests")
	}
	flags := inputs.Flags{Files: []string{folder}, Region: region, SchedulerConfig: spread}
	objects, err := flags.Manifests("", nil)
	if err != nil {
		return nil, defaultspread.Defaults{}, err
	}
	market, err := flags.Market(objects)
	if err != nil {
		return nil, defaultspread.Defaults{}, err
	}
	snapshot, _, err := pipeline.Snapshot(objects, market)
	if err != nil {
		return nil, defaultspread.Defaults{}, err
	}
	snapshot, _ = pipeline.Static(snapshot)
	state, err := capacity.New(ctx, snapshot, &capacity.Options{Plan: &plan.Options{Groups: pipeline.Groups(objects, snapshot.Pods)}})
	return state, objects.Defaults, err
}
