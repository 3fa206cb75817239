package aws

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/events"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/batch"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/market"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/memory"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Provider buys EC2 instances. It implements cloudprovider.Provider, BatchCreator, RepairAdviser, RegistrationHook and
// interruption.Source. Make one by [New]; it is safe for concurrent use. Only one provider at a time may launch for a cluster.
type Provider struct {
	options   Options
	clients   *api.Clients
	finder    *discovery.Finder
	started   time.Time
	nonce     string
	serial    atomic.Int64
	launching atomic.Int64          // when this provider first launched, in seconds since 1970
	rival     atomic.Pointer[rival] // who else launches here

	embedded func() (catalogue.Region, error)
	base     *discovery.Cache[market.Live]
	prices   *discovery.Cache[[]instancetypes.PriceSource]
	resolved *discovery.Cache[*resolvedClass]
	profiles *discovery.Cache[string]
	notes    notes

	memory      *memory.Memory
	learned     *learned
	templates   *templates
	creates     *batch.Caller[cloudprovider.NodeClaim, cloudprovider.Launch]
	deletes     *batch.Caller[string, string]
	reads       *batch.Caller[string, *found]
	events      *events.Source
	ownProfiles uses
	suspects    suspects

	history chan struct{} // holds one token: its holder reads the history
	glanced bool          // it was read once; guarded by history
}

// New makes a provider. It calls AWS only to find the queue. The error joins every fault of the options.
func New(ctx context.Context, options Options) (*Provider, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	clients, err := api.Connect(ctx, api.Config{
		Region: options.Region, Endpoint: options.Endpoint, Credentials: options.Credentials, HTTPClient: options.HTTPClient,
		Buckets: options.Buckets,
	})
	if err != nil {
		return nil, err
	}
	p := &Provider{
		options: options, clients: clients, finder: discovery.NewFinder(clients), started: time.Now(),
		nonce:    cmp.Or(options.Nonce, rand.Text()),
		embedded: sync.OnceValues(func() (catalogue.Region, error) { return catalogue.Load(clients.Region) }),
		base:     discovery.NewCache[market.Live](typesTTL),
		prices:   discovery.NewCache[[]instancetypes.PriceSource](priceTTL),
		resolved: discovery.NewCache[*resolvedClass](time.Minute),
		profiles: discovery.NewCache[string](15 * time.Minute),
		memory:   memory.New(),
		learned:  newLearned(options.Learned),
		history:  make(chan struct{}, 1),
	}
	p.history <- struct{}{}
	p.templates = newTemplates(clients)
	p.creates = batch.NewCaller(options.Window, func(ctx context.Context, _ string, claims []cloudprovider.NodeClaim) []batch.Result[cloudprovider.Launch] {
		out := make([]batch.Result[cloudprovider.Launch], len(claims))
		for i, r := range p.createAll(ctx, claims) {
			out[i] = batch.Result[cloudprovider.Launch]{Value: r.Launch, Err: r.Err}
		}
		return out
	})
	wide := options.Window
	wide.Most = 500
	p.deletes = batch.NewCaller(wide, p.terminate)
	p.reads = batch.NewCaller(wide, p.describe)
	if p.events, err = events.Open(ctx, clients, events.Options{Queue: options.Queue, StatusChecks: options.StatusChecks, Nonce: p.nonce}); err != nil {
		return nil, api.Outcome("new", options.Queue, err)
	}
	return p, nil
}

// Clients are the provider's clients of AWS, for programs that need more of it.
func (p *Provider) Clients() *api.Clients { return p.clients }

// InstanceTypes lists what nodes of the pool's class could be of, in the zones of the class's subnets.
func (p *Provider) InstanceTypes(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := p.resolvedClass(ctx, pool.NodeClass.Name)
	if err != nil {
		return nil, api.Outcome("types", pool.Name, err)
	}
	return cloneTypes(s.types), nil
}

// RepairPolicies replace nodes that have not been ready, or not been heard of, for half an hour, whose accelerators have failed for ten
// minutes, or whose node monitoring agent reports a broken part for half an hour.
func (p *Provider) RepairPolicies() []cloudprovider.RepairPolicy {
	half := 30 * time.Minute
	list := []cloudprovider.RepairPolicy{
		{Condition: corev1.NodeReady, Status: corev1.ConditionFalse, Toleration: half},
		{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: half},
		{Condition: "AcceleratedHardwareReady", Status: corev1.ConditionFalse, Toleration: 10 * time.Minute},
	}
	for _, part := range []corev1.NodeConditionType{"StorageReady", "NetworkingReady", "KernelReady", "ContainerRuntimeReady"} {
		list = append(list, cloudprovider.RepairPolicy{Condition: part, Status: corev1.ConditionFalse, Toleration: half})
	}
	return list
}

// Notes are what people should know about the last answers: prices that could not be refreshed, security groups that are unwise together. Each
// once, in ascending order.
func (p *Provider) Notes() []string { return p.notes.list() }

// notes are sentences by what they are about, so that the newest replaces the older one and good news takes it away.
type notes struct {
	mu sync.Mutex
	by map[string]string
}

func (n *notes) set(about, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by == nil {
		n.by = map[string]string{}
	}
	if text == "" {
		delete(n.by, about)
		return
	}
	n.by[about] = text
}

func (n *notes) list() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []string
	for _, text := range n.by {
		out = append(out, text)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// cloneTypes shares nothing that can be changed.
func cloneTypes(types []instancetypes.InstanceType) []instancetypes.InstanceType {
	out := slices.Clone(types)
	for i := range out {
		t := &out[i]
		t.Offerings = slices.Clone(t.Offerings)
		for j := range t.Offerings {
			if list := t.Offerings[j].List; list != nil {
				copied := *list
				t.Offerings[j].List = &copied
			}
		}
		t.Capacity = t.Capacity.DeepCopy()
		t.Overhead.KubeReserved = t.Overhead.KubeReserved.DeepCopy()
		t.Overhead.SystemReserved = t.Overhead.SystemReserved.DeepCopy()
		t.Overhead.EvictionThreshold = t.Overhead.EvictionThreshold.DeepCopy()
	}
	return out
}

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

	// Known is a cluster that is not EKS, or that the caller may not describe; nil = eks:DescribeCluster tells.
	Known *Cluster
	// Queue is the name of the SQS queue that EC2's events go to; empty = the provider knows of no interruptions but those of
	// StatusChecks.
	Queue string
	// ZonalShift says that zones which the cluster's traffic was shifted away from are left alone: nothing is launched there, and EC2 is not asked to read,
	// tag or end machines in them until the shift has ended. It needs arc-zonal-shift:GetManagedResource.
	ZonalShift bool
	// StatusChecks says that Interruptions also asks EC2, once a minute, for status checks that fail, scheduled events and the end of capacity blocks.
	// It needs ec2:DescribeInstanceStatus.
	StatusChecks bool
	// InstanceProfile is for node classes that name neither profile nor role, as AWSNodeTemplates may.
	InstanceProfile string
	// Tags are put on everything that is launched; those of node classes override them.
	Tags map[string]string
	// Global holds the keys of the older ConfigMap karpenter-global-settings that sizes depend on; see ec2.Settings.WithGlobal.
	Global map[string]string

	// PrefixDelegation says that the cluster's network plugin takes prefixes of 16 addresses for pods, so that nodes have room for more of them: see
	// ec2.Settings.PrefixDelegation. It must agree with the plugin's own setting.
	PrefixDelegation bool

	// StaticTypes and StaticPrices take the embedded catalogue as it is, instead of asking EC2 and the price list.
	StaticTypes, StaticPrices bool

	// Adjust corrects types and prices, as NodeOverlays do; nil = nothing. It is a function of its argument, which it leaves as it is, and keeps the types and
	// their offerings. Fleets of types whose prices it has changed go by the order of these prices, not by EC2's.
	Adjust func([]instancetypes.InstanceType) []instancetypes.InstanceType
	// Learned is what an earlier provider has learned; see [Provider.Learned].
	Learned map[string]int64

	// Lag is how far EC2's readers may be behind. A provider that has just started waits so long before it buys anything, for an
	// earlier process may have launched what does not show yet. 0 = 1 minute.
	Lag time.Duration
	// Undecided says which tokens an earlier process may have asked for without learning what came of it; nil = any. A provider that has just started
	// knows what came of such a token once it shows, or once Lag has passed; all others are launched for at once.
	Undecided func(token string) bool
	// Lease is asked before every launch: an error keeps this provider from launching, because another process may. Controllers give the lease that
	// they are elected by. Nil = no other process launches for the cluster.
	Lease func(ctx context.Context) error
	// KarpenterTags says that machines carry Karpenter's tags for pool, node class and claim instead of ours. For those who replace Karpenter: one that
	// runs in the same cluster would end these machines, so nothing is launched as long as there are machines of its own.
	KarpenterTags bool
	// Window says how long calls of Create are collected, which are then one fleet; Window.Most is the size of a fleet at most, 0 = 100.
	Window Window
	// DryRun says that nothing may be changed: see [Provider.DryRun], which is then all that is left of Create and Delete.
	DryRun bool
	// Nonce starts the ids of batches and must never be the same twice; empty = random.
	Nonce string
}

// Cluster is what a node needs to join a cluster, and what images are chosen by.
type Cluster = discovery.Cluster

// Window says how long calls are collected.
type Window = batch.Window

// NoHistory is an [Options].Undecided for programs that make their tokens themselves: no earlier process has asked for any.
func NoHistory(string) bool { return false }

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
	s := c.Settings()
	s.PrefixDelegation = o.PrefixDelegation
	return s.WithGlobal(o.Global)
}

// zones are the zones of subnets with their ids.
func zones(subnets []discovery.Subnet) map[string]string {
	out := map[string]string{}
	for _, s := range slices.Backward(subnets) {
		out[s.Zone] = s.ZoneID
	}
	return out
}
