// Package awstest is a small AWS, for tests of code that calls AWS. It speaks the protocols of EC2,
// SSM, SQS, IAM, EKS and the price list. It is an http.RoundTripper without a network, or an
// http.Handler, so the real SDK can use it.
//
// It has what matters when machines are bought and what emulators lack:
//
//   - capacity and quotas that run out in the middle of a fleet
//   - allocation by price and by capacity, and spot prices
//   - idempotency by client tokens, and paging
//   - readers that lag behind, and instance profiles that become known late
//   - throttling by token buckets of AWS's published sizes
//   - faults on demand: lost replies, errors of any code, machines that end at once
//
// It checks its input and refuses what EC2 refuses, but it is not a complete EC2. Actions and
// parameters that the provider does not use are answered with an error. Its answers are in the
// answer book of package api, which says where each is documented or was reported; some are marked
// as unverified on AWS. Time is the machine's, or that of the testing/synctest bubble.
package awstest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
)

// Config is the initial state of a cloud. The zero value is us-east-1 with a dozen instance types
// and three zones. It has a cluster called harbour with subnets, security groups and images, no
// limits of capacity, and the published limits of calls.
type Config struct {
	Region string // a region missing from the embedded catalogue is like us-east-1, under its own name; empty means us-east-1
	// Types are the existing instance types. Empty means a dozen.
	Types []string
	// Cluster is the name of the one EKS cluster, and the value of the tag "cluster" on everything
	// that belongs to it. Empty means harbour.
	Cluster string
	// Version is the cluster's Kubernetes version. Empty means 1.33.
	Version string
	// ZoneIDs are the ids of zones by name. nil means that each name has another id than in the
	// catalogue, as may be so in a real account.
	ZoneIDs map[string]string
	// Lag is how long new instances, and changes of old ones, do not show when instances are
	// described or terminated.
	Lag time.Duration
	// Boot is how long an instance is pending. Shutdown is how long it is shutting down. Linger is
	// how long it shows afterwards; 0 means 1 hour.
	Boot, Shutdown, Linger time.Duration
	// ProfileLag is how long EC2 does not know a new instance profile, or its new role.
	ProfileLag time.Duration
	// Tokens is how long a fleet's client token is known. Afterwards the same request launches
	// again. AWS publishes no number for CreateFleet. 0 means 1 hour.
	Tokens time.Duration
	// SilentReplays says that the answer to a known client token of a fleet has only the id of the
	// fleet. AWS does not document that it names the machines again.
	SilentReplays bool
	// Limits are the throttling limits. nil means api.Published.
	Limits func(service, action string, filtered bool) api.Limit
	// Page is the maximum size of a page; pages may then be empty, as EC2's may. 0 means as many as
	// the call asks for, at most 100.
	Page int
}

// Cloud is a running AWS. Make one with [New]. It is safe for concurrent use.
type Cloud struct {
	config  Config
	region  catalogue.Region
	buckets *api.Buckets

	mu           sync.Mutex
	serial       int
	swept        time.Time
	calls        map[string]int // by "EC2.CreateFleet"
	throttled    int
	fault        func(Call) Fault
	skew         atomic.Int64 // of the services' clock against ours
	subnets      []*Subnet
	groups       []*Group
	images       []*Image
	reservations []*Reservation
	placements   []*PlacementGroup
	parameters   map[string]string
	capacity     map[pool]int // what is left; a missing pool has no limit
	quotas       map[string]int
	spot         map[pool]float64
	onDemand     map[string]float64
	fleetErrors  map[pool]apiError
	fate         *apiError // why new machines end
	surplus      int
	nested       []string
	shifted      map[string]bool // by the zone's id
	templates    map[string]*template
	fleets       map[string]*fleet // by client token
	instances    map[string]*instance
	profiles     map[string]*profile
	roles        map[string]bool
	queues       map[string]*queue
}

// lock reserves the cloud for the caller until the returned function is called.
func (c *Cloud) lock() (unlock func()) {
	c.mu.Lock()
	return c.mu.Unlock
}

// pool is one offering.
type pool struct{ typ, zone, capacityType string }

// apiError is an error answer of AWS.
type apiError struct{ code, message string }

// Call is one request.
type Call struct {
	Service, Action string
	// N counts the calls of this action, from 1.
	N int
}

// Fault is what goes wrong in a call. The zero value is no fault.
type Fault struct {
	// Code and Message are the answer in place of an effect. If Entry is set, every override of a
	// fleet fails with the code Entry and with Message.
	Code, Entry, Message string
	// Lost carries out the request and then breaks the connection. Dropped breaks it at once.
	Lost, Dropped bool
	// Slow is how long the call takes before it has an effect.
	Slow time.Duration
	// RetryAfter is the header of this name.
	RetryAfter string
}

// New starts a cloud. The error names the types that the region does not offer.
func New(config Config) (*Cloud, error) {
	config.Region, config.Cluster = cmp.Or(config.Region, "us-east-1"), cmp.Or(config.Cluster, "harbour")
	config.Version, config.Linger = cmp.Or(config.Version, "1.33"), cmp.Or(config.Linger, time.Hour)
	config.Tokens = cmp.Or(config.Tokens, time.Hour)
	if len(config.Types) == 0 {
		config.Types = []string{
			"m5.large", "m5.xlarge", "m6g.large", "m6a.large", "c5.large", "c5.xlarge", "c6a.xlarge", "r5.large", "t3.medium", "t3.nano",
			"g4dn.xlarge", "inf2.xlarge",
		}
	}
	region, err := catalogue.Load(config.Region)
	if _, unknown := errors.AsType[*catalogue.UnknownRegionError](err); unknown || region.ZonesAssumed {
		region, err = likeness(config.Region)
	}
	if err != nil {
		return nil, fmt.Errorf("awstest: %w", err)
	}
	var errs []error
	for _, name := range config.Types {
		if !slices.ContainsFunc(region.Offers, func(o catalogue.Offer) bool { return o.Name == name }) {
			errs = append(errs, fmt.Errorf("awstest: types: %s has no %q", config.Region, name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	region.Zones = accountZones(region.Zones, config.ZoneIDs)
	region.Offers = slices.DeleteFunc(slices.Clone(region.Offers), func(o catalogue.Offer) bool { return !slices.Contains(config.Types, o.Name) })
	c := &Cloud{
		config: config, region: region, buckets: api.NewBuckets(config.Limits),
		calls: map[string]int{}, parameters: map[string]string{}, capacity: map[pool]int{}, quotas: map[string]int{},
		spot: map[pool]float64{}, onDemand: map[string]float64{}, fleetErrors: map[pool]apiError{}, templates: map[string]*template{},
		fleets: map[string]*fleet{}, instances: map[string]*instance{}, profiles: map[string]*profile{}, roles: map[string]bool{}, queues: map[string]*queue{},
	}
	c.furnish()
	return c, nil
}

// accountZones returns the zones with the ids that they have in the account. Ids identify places,
// and each account has its own names for them.
func accountZones(zones []catalogue.Zone, ids map[string]string) []catalogue.Zone {
	out := slices.Clone(zones)
	for i := range out {
		out[i].ID = zones[(i+1)%len(zones)].ID
		if ids != nil {
			out[i].ID = ids[out[i].Name]
		}
	}
	return out
}

// likeness returns the region us-east-1 under another name, for regions of which the catalogue does
// not know what their zones offer.
func likeness(name string) (catalogue.Region, error) {
	const model = "us-east-1"
	r, err := catalogue.Load(model)
	rename := func(zones []catalogue.Zone) []catalogue.Zone {
		out := slices.Clone(zones)
		for i, z := range out {
			out[i] = catalogue.Zone{Name: name + strings.TrimPrefix(z.Name, model), ID: name + strings.TrimPrefix(z.ID, "use1")}
		}
		return out
	}
	r.Name, r.Zones = name, rename(r.Zones)
	r.Offers = slices.Clone(r.Offers)
	for i := range r.Offers {
		r.Offers[i].Zones = rename(r.Offers[i].Zones)
	}
	return r, err
}

// AddLocalZone adds a zone, such as us-east-1-bos-1a, that offers some of the types.
func (c *Cloud) AddLocalZone(name string, types ...string) {
	defer c.lock()()
	for i, o := range c.region.Offers {
		if slices.Contains(types, o.Name) {
			c.region.Offers[i].Zones = append(slices.Clone(o.Zones), catalogue.Zone{Name: name})
		}
	}
}

// Nest allows types to run virtual machines of their own.
func (c *Cloud) Nest(types ...string) {
	defer c.lock()()
	c.nested = append(c.nested, types...)
}

// Region returns the region's name.
func (c *Cloud) Region() string { return c.region.Name }

// Zones returns the names of the region's zones that have subnets.
func (c *Cloud) Zones() []string {
	var out []string
	for _, z := range c.region.Zones[:min(3, len(c.region.Zones))] {
		out = append(out, z.Name)
	}
	return out
}

func (*Cloud) now() time.Time { return time.Now() }

// zoneID returns the id of a zone. It is empty for local zones.
func (c *Cloud) zoneID(name string) string {
	for _, z := range c.region.Zones {
		if z.Name == name {
			return z.ID
		}
	}
	return ""
}

// id returns the next id of a kind, in AWS's format. Ids do not ascend.
func (c *Cloud) id(prefix string) string {
	c.serial++
	// An odd factor permutes the 64-bit numbers, so no two ids are equal.
	n := uint64(c.serial) * 0x9e3779b97f4a7c15
	return fmt.Sprintf("%s-0%016x", prefix, n)
}

// Calls returns the number of calls of an action, such as "EC2.CreateFleet". With a service
// ("EC2.") it counts all its calls, and with an empty name those of all actions. Throttled calls
// count.
func (c *Cloud) Calls(name string) int {
	defer c.lock()()
	total := 0
	for _, k := range sortedKeys(c.calls) {
		if name == "" || k == name || len(k) > len(name) && k[:len(name)] == name && name[len(name)-1] == '.' {
			total += c.calls[k]
		}
	}
	return total
}

// CallsByAction returns the number of calls of each action.
func (c *Cloud) CallsByAction() map[string]int {
	defer c.lock()()
	return maps.Clone(c.calls)
}

// Throttled returns the number of calls that were throttled.
func (c *Cloud) Throttled() int {
	defer c.lock()()
	return c.throttled
}

// SetFault sets the function that decides the fault of each call; nil means none. It is called
// under the cloud's lock and must not call the cloud.
func (c *Cloud) SetFault(fault func(Call) Fault) {
	defer c.lock()()
	c.fault = fault
}

// SetSkew moves the clock of all services relative to the callers' clock.
func (c *Cloud) SetSkew(d time.Duration) { c.skew.Store(int64(d)) }

func (c *Cloud) skewed() time.Time { return c.now().Add(time.Duration(c.skew.Load())) }

// SetCapacity leaves n machines of an offering; a negative n means no limit. capacityType is
// on-demand or spot.
func (c *Cloud) SetCapacity(typ, zone, capacityType string, n int) {
	defer c.lock()()
	if n < 0 {
		delete(c.capacity, pool{typ, zone, capacityType})
		return
	}
	c.capacity[pool{typ, zone, capacityType}] = n
}

// SetQuota sets how many vCPUs of a capacity type may run at a time; a negative number means no
// limit.
func (c *Cloud) SetQuota(capacityType string, vCPUs int) {
	defer c.lock()()
	if vCPUs < 0 {
		delete(c.quotas, capacityType)
		return
	}
	c.quotas[capacityType] = vCPUs
}

// SetSpotPrice sets a spot price in US dollars per hour. The default is the catalogue's estimate.
func (c *Cloud) SetSpotPrice(typ, zone string, price float64) {
	defer c.lock()()
	c.spot[pool{typ, zone, "spot"}] = price
}

// SetOnDemandPrice sets a price of the price list in US dollars per hour. The default is the
// catalogue's.
func (c *Cloud) SetOnDemandPrice(typ string, price float64) {
	defer c.lock()()
	c.onDemand[typ] = price
}

// RefuseOffering makes fleets fail with a code and a message for an offering. An empty code ends
// that.
func (c *Cloud) RefuseOffering(typ, zone, capacityType, code, message string) {
	defer c.lock()()
	if code == "" {
		delete(c.fleetErrors, pool{typ, zone, capacityType})
		return
	}
	c.fleetErrors[pool{typ, zone, capacityType}] = apiError{code, message}
}

// Withdraw ends the sale of a type in a zone until restore is called: EC2's offerings do not list it,
// and fleets refuse it.
func (c *Cloud) Withdraw(typ, zone string) (restore func()) {
	defer c.lock()()
	before := c.region.Offers
	c.region.Offers = slices.Clone(before)
	for i := range c.region.Offers {
		if o := &c.region.Offers[i]; o.Name == typ {
			o.Zones = slices.DeleteFunc(slices.Clone(o.Zones), func(z catalogue.Zone) bool { return z.Name == zone })
		}
	}
	return func() {
		defer c.lock()()
		c.region.Offers = before
	}
}

// KillNew makes new instances end at once for a reason, such as a key that may not be used. An
// empty code ends that.
func (c *Cloud) KillNew(code, message string) {
	defer c.lock()()
	c.fate = nil
	if code != "" {
		c.fate = &apiError{code, message}
	}
}

// ShiftAway shifts the cluster's traffic away from the named zones. Without zones, all shifts end.
func (c *Cloud) ShiftAway(zones ...string) {
	defer c.lock()()
	c.shifted = map[string]bool{}
	for _, z := range c.region.Zones {
		c.shifted[z.ID] = slices.Contains(zones, z.Name)
	}
}

// SetSurplus makes fleets launch n machines more than requested.
func (c *Cloud) SetSurplus(n int) {
	defer c.lock()()
	c.surplus = max(n, 0)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
