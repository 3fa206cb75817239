package aws

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
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

// Provider buys EC2 instances. It implements cloudprovider.Provider, BatchCreator, RepairAdviser,
// RegistrationHook and interruption.Source. Make one with [New]. It is safe for concurrent use.
// Only one provider at a time may launch for a cluster.
type Provider struct {
	options   Options
	clients   *api.Clients
	finder    *discovery.Finder
	started   time.Time
	nonce     string
	serial    atomic.Int64
	launching atomic.Int64          // when this provider first launched, in seconds since 1970
	rival     atomic.Pointer[rival] // another provider that launches here

	embedded  func() (catalogue.Region, error)
	base      *discovery.Cache[market.Live]
	prices    *discovery.Cache[[]instancetypes.PriceSource]
	resolved  *discovery.Cache[*resolvedClass]
	profiles  *discovery.Cache[string]
	templates *discovery.Cache[string] // ids of launch templates, which EC2 uses in its answers
	notes     notes

	memory                    *memory.Memory[*pending]
	ownProfiles, ownTemplates uses
	creates                   *batch.Caller[cloudprovider.NodeClaim, cloudprovider.Launch]
	deletes                   *batch.Caller[string, string]
	reads                     *batch.Caller[string, *found]
	events                    *events.Source

	mu        sync.Mutex
	learned   map[string]int64     // memory in MiB that nodes have reported, by type; guarded by mu
	ownerless map[string]time.Time // since when machines have had no owner, by id; guarded by mu

	history     chan struct{} // holds one token; the goroutine that has it reads the history
	glanced     bool          // the history was read once; guarded by history
	historyRead atomic.Bool   // all of it is known
}

// New makes a provider. It calls AWS only to find the queue. The error joins every fault of the
// options, or is that of the AWS configuration or of finding the queue.
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
		nonce:     cmp.Or(options.Nonce, rand.Text()),
		embedded:  sync.OnceValues(func() (catalogue.Region, error) { return catalogue.Load(clients.Region) }),
		base:      discovery.NewCache[market.Live](typesTTL),
		prices:    discovery.NewCache[[]instancetypes.PriceSource](priceTTL),
		resolved:  discovery.NewCache[*resolvedClass](time.Minute),
		profiles:  discovery.NewCache[string](15 * time.Minute),
		templates: discovery.NewCache[string](24 * time.Hour),
		memory:    memory.New[*pending](),
		learned:   map[string]int64{},
		history:   make(chan struct{}, 1),
	}
	maps.Copy(p.learned, options.Learned)
	p.history <- struct{}{}
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

// Clients returns the provider's AWS clients, for programs that need other calls.
func (p *Provider) Clients() *api.Clients { return p.clients }

// InstanceTypes returns the types that nodes of the pool's class could have, in the zones of the
// class's subnets.
func (p *Provider) InstanceTypes(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := p.resolvedClass(ctx, pool.NodeClass.Name, pool.Name)
	if err != nil {
		return nil, api.Outcome("types", pool.Name, err)
	}
	return instancetypes.Clone(s.types), nil
}

// RepairPolicies returns policies that replace three kinds of nodes: nodes that have not been
// ready, or not been heard of, for half an hour; nodes whose accelerators have failed for ten
// minutes; nodes whose monitoring agent has reported a broken part for half an hour.
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

// Notes returns what people should know about the last answers, such as prices that could not be
// refreshed and security groups that are unwise together. Each note occurs once, in ascending
// order.
func (p *Provider) Notes() []string { return p.notes.list() }

// notes are sentences by topic, so that a new one replaces the older one and good news removes it.
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

// name sets a sentence that ends with a list, or removes it if the list is empty.
func (n *notes) name(about, text string, list []string) {
	if len(list) > 0 {
		text += ": " + strings.Join(list, ", ")
	} else {
		text = ""
	}
	n.set(about, text)
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

// Options configure a provider. Cluster and Classes are required.
type Options struct {
	// Cluster is the name of the EKS cluster. Everything that the provider makes is tagged with it.
	Cluster string
	// Classes finds the node classes.
	Classes Classes

	// Region, Endpoint, Credentials, HTTPClient and Buckets say how AWS is reached, see api.Config.
	// Empty fields use the environment.
	Region, Endpoint string
	Credentials      sdk.CredentialsProvider
	HTTPClient       *http.Client
	Buckets          *api.Buckets

	// Known describes a cluster that is not EKS, or that the caller may not describe. nil means to
	// call eks:DescribeCluster.
	Known *Cluster
	// Queue is the name of the SQS queue that receives EC2's events. If it is empty, the provider
	// knows of no interruptions except those of StatusChecks.
	Queue string
	// ZonalShift says to leave those zones alone from which the cluster's traffic was shifted away.
	// Until the shift has ended, nothing is launched there, and EC2 is not asked to read, tag or
	// end machines in them. It needs arc-zonal-shift:GetManagedResource.
	ZonalShift bool
	// StatusChecks says that Interruptions also asks EC2, once a minute, for failing status checks,
	// scheduled events and the end of capacity blocks. It needs ec2:DescribeInstanceStatus.
	StatusChecks bool
	// InstanceProfile is for node classes that name neither profile nor role, as AWSNodeTemplates
	// may.
	InstanceProfile string
	// Tags are put on everything that is launched, at most 20. Tags of node classes override them.
	Tags map[string]string
	// Global has the keys of the older ConfigMap karpenter-global-settings that affect sizes, see
	// ec2.Settings.WithGlobal.
	Global map[string]string

	// PrefixDelegation says that the cluster's network plugin assigns prefixes of 16 addresses for
	// pods, so that nodes can hold more pods: see ec2.Settings.PrefixDelegation. It must agree with
	// the plugin's own setting.
	PrefixDelegation bool

	// StaticTypes and StaticPrices use the embedded catalogue alone, without EC2 and the price
	// list.
	StaticTypes, StaticPrices bool

	// Adjust corrects types and prices for a pool, as NodeOverlays do; nil changes nothing. The
	// pool is given by name, which is empty for claims without a pool. The result must depend only
	// on the arguments, which it must not change, and must have the same types and offerings. If it
	// changes prices, fleets of these types use the order of these prices, not EC2's.
	Adjust func(pool string, types []instancetypes.InstanceType) []instancetypes.InstanceType
	// Learned is what an earlier provider has learned, see [Provider.Learned].
	Learned map[string]int64

	// Lag is how far EC2's readers may be behind. 0 means 1 minute. An earlier process may have
	// launched something that does not show yet. So until Lag has passed since the start, Create
	// fails with ErrNotReady for tokens that are Undecided, unless their machine shows.
	Lag time.Duration
	// Undecided says for which tokens an earlier process may have asked without learning the
	// result; nil means any token. After a start, the provider knows the result for such a token
	// once it shows, or once Lag has passed. It launches for all other tokens at once.
	Undecided func(token string) bool
	// Lease is called before every launch. An error keeps this provider from launching, because
	// another process may launch. Controllers give the lease of their leader election. Nil means
	// that no other process launches for the cluster.
	Lease func(ctx context.Context) error
	// KarpenterTags says that machines have Karpenter's tags for pool, node class and claim instead
	// of ours. It is meant for users who replace Karpenter: a Karpenter that runs in the same
	// cluster would end these machines. Therefore the provider launches nothing as long as machines
	// exist that Karpenter launched.
	KarpenterTags bool
	// Window says how long calls of Create are collected for one fleet. Window.Most is the maximum
	// size of a fleet; here 0 means 100.
	Window Window
	// DryRun says that nothing may be changed in AWS. Create, CreateMany and Delete then fail with
	// ErrUnsupported; use [Provider.DryRun] to see what Create would send. Interruptions still
	// takes messages from Queue, so leave Queue empty if another provider needs them.
	DryRun bool
	// Nonce starts the ids of batches and must never be the same twice. Empty means random.
	Nonce string
}

// Cluster is what a node needs to join a cluster, and what determines its image. Its fields are
// Name, Endpoint (the address of the API server, with https://), ARN (only for zonal shifts), CA
// (the certificate authority as EKS returns it: PEM in base64), Version (such as "1.33"),
// ServiceCIDR (the network of services, which AL2023 requires), and IPv6 (pods get IPv6 addresses).
type Cluster = discovery.Cluster

// Window says how long calls are collected. Idle ends a batch when no call has joined for this
// long: 0 means 35 milliseconds, negative means at once. Longest ends a batch in any case: 0 means
// 1 second. Most is the maximum number of calls in a batch, see [Options].Window.
type Window = batch.Window

// NoHistory is an [Options].Undecided for programs that generate their own tokens: no earlier
// process has used any of them.
func NoHistory(string) bool { return false }

// Classes finds node classes.
type Classes interface {
	// NodeClass returns the class with the given name; an empty name means the default. The error
	// is a [*cloudprovider.Error], with ErrInvalidSpec if no such class can exist, and with
	// ErrNotReady if it may come.
	NodeClass(ctx context.Context, name string) (nodeclass.NodeClass, error)
}

// FixedClasses are classes that never change. The first is the default.
type FixedClasses []nodeclass.NodeClass

// NodeClass returns the class with the given name, or the first for an empty name. The error has
// ErrInvalidSpec if there is no such class.
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
	return nodeclass.NodeClass{}, &cloudprovider.Error{Code: cloudprovider.ErrInvalidSpec, Err: fmt.Errorf("no node class %q%s", name, hint)}
}

// withDefaults fills in defaults. The error joins every fault.
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

// settings returns what sizes depend on.
func (o Options) settings(c nodeclass.NodeClass) (ec2.Settings, error) {
	s := c.Settings()
	s.PrefixDelegation = o.PrefixDelegation
	return s.WithGlobal(o.Global)
}

// zones returns the zones of subnets with their ids.
func zones(subnets []discovery.Subnet) map[string]string {
	out := map[string]string{}
	for _, s := range slices.Backward(subnets) {
		out[s.Zone] = s.ZoneID
	}
	return out
}
