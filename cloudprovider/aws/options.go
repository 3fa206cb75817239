package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/batch"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/discovery"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
)

// Options configure a provider. Cluster and Classes are required.
type Options struct {
	// Cluster is the name of the EKS cluster. It marks everything that the provider makes as the cluster's.
	Cluster string
	// Classes knows the node classes.
	Classes Classes

	// Region, Endpoint, Credentials, HTTPClient and Buckets say how AWS is reached; see api.Config. Empty = the environment's.
	Region, Endpoint string
	Credentials      sdk.CredentialsProvider
	HTTPClient       *http.Client
	Buckets          *api.Buckets

	// Endpoints of a cluster that is not EKS, or that the caller may not describe; nil = eks:DescribeCluster tells.
	Known *discovery.Cluster
	// Queue is the name of the SQS queue that EC2's events go to; empty = the provider knows of no interruptions.
	Queue string
	// InstanceProfile is for node classes that name neither profile nor role, as AWSNodeTemplates may.
	InstanceProfile string
	// Tags are put on everything that is launched; those of node classes override them.
	Tags map[string]string
	// Global holds the keys of the older ConfigMap karpenter-global-settings that sizes depend on; see ec2.Settings.WithGlobal.
	Global map[string]string

	// StaticTypes and StaticPrices take the embedded catalogue as it is, instead of asking EC2 and the price list.
	StaticTypes, StaticPrices bool

	// Learned is what an earlier provider has learned; see [Provider.Learned].
	Learned map[string]int64

	// Lag is how far EC2's readers may be behind. A provider that has just started waits so long before it buys anything, for an
	// earlier process may have launched what does not show yet. 0 = 1 minute.
	Lag time.Duration
	// NoHistory says that no token was ever used with another provider: nothing is waited for. For programs that make their tokens
	// themselves, and for tests.
	NoHistory bool
	// Window says how long calls of Create are collected, which are then one fleet; Window.Most is the size of a fleet at most, 0 = 100.
	Window batch.Window
	// DryRun says that nothing may be changed: see [Provider.DryRun], which is then all that is left of Create and Delete.
	DryRun bool
	// Clock is the time; the zero value is the machine's.
	Clock api.Clock
	// Nonce starts the ids of batches and must never be the same twice; empty = random.
	Nonce string
}

// Classes finds node classes.
type Classes interface {
	// NodeClass is the class of a name; an empty name means the default. The error is a [*cloudprovider.Error], of ErrNotReady if there is
	// no such class yet.
	NodeClass(ctx context.Context, name string) (nodeclass.NodeClass, error)
}

// FixedClasses are classes that never change; the first is the default.
type FixedClasses []nodeclass.NodeClass

// NodeClass finds a class by its name.
func (f FixedClasses) NodeClass(_ context.Context, name string) (nodeclass.NodeClass, error) {
	if name == "" && len(f) > 0 {
		return f[0], nil
	}
	names := make([]string, 0, len(f))
	for _, c := range f {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	hint := ""
	if near, ok := requirements.Nearest(name, names); ok {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return nodeclass.NodeClass{}, &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Err: fmt.Errorf("no node class %q%s", name, hint)}
}

// withDefaults fills in zeros; the error joins every fault.
func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.Cluster == "" {
		errs = append(errs, errors.New("aws: options: cluster: missing: want the name of the EKS cluster"))
	}
	if o.Classes == nil {
		errs = append(errs, errors.New("aws: options: classes: missing: want at least one node class, as in FixedClasses"))
	}
	if o.Lag < 0 {
		errs = append(errs, fmt.Errorf("aws: options: lag: %s is negative", o.Lag))
	}
	if _, err := (ec2.Settings{}).WithGlobal(o.Global); err != nil {
		errs = append(errs, fmt.Errorf("aws: options: global: %w", err))
	}
	if len(o.Tags) > mostUserTags {
		errs = append(errs, fmt.Errorf("aws: options: tags: %d: want at most %d", len(o.Tags), mostUserTags))
	}
	o.Lag, o.Window.Most = cmp.Or(o.Lag, time.Minute), cmp.Or(o.Window.Most, 100)
	return o, errors.Join(errs...)
}

// mostUserTags leaves room for the records of the provider within EC2's 50 tags.
const mostUserTags = 20

// settings are what sizes depend on.
func (o Options) settings(c nodeclass.NodeClass) (ec2.Settings, error) {
	return c.Settings().WithGlobal(o.Global)
}

// zones are the zones of subnets with their ids.
func zones(subnets []discovery.Subnet) map[string]string {
	out := map[string]string{}
	for _, s := range slices.Backward(subnets) {
		out[s.Zone] = s.ZoneID
	}
	return out
}
