// Package sandbox is a cluster with a cloud in it, ready for an operator: what the demonstration,
// the tests and the comparison have in common.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/operator/cluster"
	"github.com/joinery-sdk/joinery/examples/operator/controller"
	"github.com/joinery-sdk/joinery/examples/operator/crds"
	"github.com/joinery-sdk/joinery/examples/operator/memory"
	"github.com/joinery-sdk/joinery/instancetypes"
)

// Sandbox is a running cluster and cloud. Make one by [Start].
type Sandbox struct {
	*cluster.Cluster
	// Client reads and writes without a cache.
	Client client.Client
	Cloud  *memory.Cloud

	types      []instancetypes.InstanceType
	operator   *rest.Config // with the operator's rights, and no more
	background sync.WaitGroup
	cancel     context.CancelFunc
}

// Start builds what is missing, starts a cluster with its files in the folder dir, which must be
// new, installs the resources and starts the cloud. The config says how long machines take to boot
// and to shut down (its Boot and Shutdown).
func Start(ctx context.Context, progress io.Writer, dir string, types []instancetypes.InstanceType, config memcloud.Config) (*Sandbox, error) {
	bin, err := cluster.Build(ctx, progress)
	if err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, bin, dir)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{Cluster: c, types: types}
	if err := crds.Install(c.Config); err != nil {
		c.Stop()
		return nil, err
	}
	s.Client, err = client.New(c.Config, client.Options{Scheme: scheme.Scheme})
	if err == nil {
		s.operator, err = asOperator(ctx, c.Config, s.Client)
	}
	if err == nil {
		s.Cloud, err = memory.New(types, config)
	}
	if err != nil {
		c.Stop()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.background.Go(func() { _ = s.Cloud.Run(running, s.Client) })
	return s, nil
}

// Stop ends the cloud and the cluster. Operators must have ended before.
func (s *Sandbox) Stop() {
	s.cancel()
	s.background.Wait()
	s.Cluster.Stop()
}

// Run is an operator that runs. Its Stop ends it and waits for that.
type Run struct {
	*controller.Operator
	cancel context.CancelFunc
	ended  chan error
}

// Operate starts an operator on the sandbox, with its cloud unless the options name another
// provider, and what runs beside it.
func (s *Sandbox) Operate(ctx context.Context, options controller.Options, beside ...func(*controller.Operator) []manager.Runnable) (*Run, error) {
	if options.Provider == nil {
		options.Provider = s.Cloud
	}
	o, err := controller.New(s.operator, options)
	if err != nil {
		return nil, err
	}
	for _, make := range beside {
		for _, r := range make(o) {
			if err := o.Manager().Add(r); err != nil {
				return nil, fmt.Errorf("sandbox: %w", err)
			}
		}
	}
	running, cancel := context.WithCancel(ctx)
	r := &Run{Operator: o, cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- o.Manager().Start(running) }()
	return r, nil
}

// Stop ends the operator. It returns what the operator ended with.
func (r *Run) Stop() error {
	r.cancel()
	err := <-r.ended
	r.ended <- err
	return err
}

// Until asks until there is no error, or gives up after the time; then it returns the last error.
func Until(ctx context.Context, limit time.Duration, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("sandbox: not within %s", limit), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Apply creates the objects, or updates those that exist.
func (s *Sandbox) Apply(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		err := s.Client.Create(ctx, object)
		if apierrors.IsAlreadyExists(err) {
			have := object.DeepCopyObject().(client.Object)
			if err = s.Client.Get(ctx, client.ObjectKeyFromObject(object), have); err == nil {
				object.SetResourceVersion(have.GetResourceVersion())
				err = s.Client.Update(ctx, object)
			}
		}
		if err != nil {
			return fmt.Errorf("sandbox: %s: %w", object.GetName(), err)
		}
	}
	return nil
}
