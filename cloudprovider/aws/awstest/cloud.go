// Package awstest is a small AWS, for tests of what calls AWS: it speaks the protocols of EC2, SSM, SQS, IAM, EKS and
// the price list, as an http.RoundTripper without a network or as an http.Handler, so that the real SDK talks to it, and has what matters when machines are
// bought and what emulators lack: capacity and quotas that run out in the middle of a fleet, allocation by price and by capacity, idempotency by
// client tokens, paging, readers that lag behind, instance profiles that become known late, throttling by token buckets of AWS's published sizes, spot
// prices, and faults on demand: replies that get lost, errors of any code, machines that end at once.
//
// It checks what it is asked and refuses what EC2 refuses, but it is no complete EC2: actions and parameters that the provider does not
// use are answered with an error. What it answers with is in the answer book of package api, which says where each answer is documented or was
// reported; some are marked as unverified on AWS. Time is the machine's, and in a bubble of testing/synctest the bubble's.
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

// Config is a cloud at its beginning. The zero value is us-east-1 with a dozen instance types, three zones, a cluster called harbour
// with subnets, security groups and images, no limits of capacity, and published limits of calls.
type Config struct {
	Region string // one that the embedded catalogue does not have is like us-east-1, under its own name; empty = us-east-1
	// Types are the instance types that exist; empty = a dozen.
	Types []string
	// Cluster is the name of the one EKS cluster, and the value of the tag "cluster" on everything that belongs to it; empty = harbour.
	Cluster string
	// Version is the cluster's Kubernetes version; empty = 1.33.
	Version string
	// ZoneIDs are the ids of zones by name; nil = as in an account that is not the catalogue's, where the same ids have other names.
	ZoneIDs map[string]string
	// Lag is how long new instances, and changes of old ones, do not show when instances are described or terminated.
	Lag time.Duration
	// Boot is how long an instance is pending, Shutdown how long it is shutting down, Linger how long it shows afterwards (0 = 1 hour).
	Boot, Shutdown, Linger time.Duration
	// ProfileLag is how long EC2 does not know a new instance profile, or its new role.
	ProfileLag time.Duration
	// Tokens is how long a fleet's client token is known: afterwards the same request launches once more. AWS publishes no figure for
	// CreateFleet. 0 = 1 hour.
	Tokens time.Duration
	// SilentReplays answers a fleet's client token that is known with the id of the fleet alone: AWS does not document that it tells the machines again.
	SilentReplays bool
	// Limits throttle; nil = api.Published.
	Limits func(service, action string, filtered bool) api.Limit
	// Page is the most that a page holds, and pages may be empty, as EC2's may; 0 = as many as the call asks for, 100 at most.
	Page int
}

// Cloud is a running AWS. Make one by [New]; it is safe for concurrent use.
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
	capacity     map[pool]int // what is left; a pool that is missing has no end
	quotas       map[string]int
	spot         map[pool]float64
	onDemand     map[string]float64
	fleetErrors  map[pool]apiError
	fate         *apiError // what new machines end of
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

// lock keeps the cloud to the caller until the function that it returns is called.
func (c *Cloud) lock() (unlock func()) {
	c.mu.Lock()
	return c.mu.Unlock
}

// pool is one offering.
type pool struct{ typ, zone, capacityType string }

// apiError is an error as AWS answers it.
type apiError struct{ code, message string }

// Call is one request.
type Call struct {
	Service, Action string
	// N counts the calls of this action, from 1.
	N int
}

// Fault is what goes wrong in a call. The zero value is nothing.
type Fault struct {
	// Code and Message are answered instead of doing anything; Entry with Message is what every override of a fleet fails with.
	Code, Entry, Message string
	// Lost does what was asked and then breaks the connection; Dropped breaks it at once.
	Lost, Dropped bool
	// Slow is how long the call takes before anything is done.
	Slow time.Duration
	// RetryAfter is the header of this name.
	RetryAfter string
}

// New starts a cloud. The error says that the catalogue does not have the region or a type.
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
	if _, fresh := errors.AsType[*catalogue.UnknownRegionError](err); fresh {
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

// accountZones gives the zones the ids that they have in the account. Ids name places, and names are each account's own.
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

// likeness is us-east-1 under another name.
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

// AddLocalZone adds a zone, such as us-east-1-bos-1a, in which some of the types are offered.
func (c *Cloud) AddLocalZone(name string, types ...string) {
	defer c.lock()()
	for i, o := range c.region.Offers {
		if slices.Contains(types, o.Name) {
			c.region.Offers[i].Zones = append(slices.Clone(o.Zones), catalogue.Zone{Name: name})
		}
	}
}

// Nest lets a type run virtual machines of its own.
func (c *Cloud) Nest(types ...string) {
	defer c.lock()()
	c.nested = append(c.nested, types...)
}

// Region is the region's name.
func (c *Cloud) Region() string { return c.region.Name }

// Zones are the names of the region's zones that have subnets.
func (c *Cloud) Zones() []string {
	var out []string
	for _, z := range c.region.Zones[:min(3, len(c.region.Zones))] {
		out = append(out, z.Name)
	}
	return out
}

func (*Cloud) now() time.Time { return time.Now() }

// zoneID is empty for local zones.
func (c *Cloud) zoneID(name string) string {
	for _, z := range c.region.Zones {
		if z.Name == name {
			return z.ID
		}
	}
	return ""
}

// id is the next id of a kind, in the form that AWS gives to its own; they do not ascend.
func (c *Cloud) id(prefix string) string {
	c.serial++
	// An odd factor permutes the numbers of 64 bits, so that no two are alike.
	n := uint64(c.serial) * 0x9e3779b97f4a7c15
	return fmt.Sprintf("%s-0%016x", prefix, n)
}

// Calls counts the calls of an action, such as "EC2.CreateFleet"; with an empty name, those of all actions, and with a service, those of it
// ("EC2."). Throttled ones count.
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

// CallsByAction are the counts of all actions.
func (c *Cloud) CallsByAction() map[string]int {
	defer c.lock()()
	return maps.Clone(c.calls)
}

// Throttled counts the calls that were refused for being too many.
func (c *Cloud) Throttled() int {
	defer c.lock()()
	return c.throttled
}

// SetFault decides for each call what goes wrong with it; nil = nothing. It is called under the cloud's lock and must not call
// the cloud.
func (c *Cloud) SetFault(fault func(Call) Fault) {
	defer c.lock()()
	c.fault = fault
}

// SetSkew moves the clock of all services against the callers'.
func (c *Cloud) SetSkew(d time.Duration) { c.skew.Store(int64(d)) }

func (c *Cloud) skewed() time.Time { return c.now().Add(time.Duration(c.skew.Load())) }

// SetCapacity leaves n machines of an offering; a negative n has no end. CapacityType is on-demand or spot.
func (c *Cloud) SetCapacity(typ, zone, capacityType string, n int) {
	defer c.lock()()
	if n < 0 {
		delete(c.capacity, pool{typ, zone, capacityType})
		return
	}
	c.capacity[pool{typ, zone, capacityType}] = n
}

// SetQuota is the most vCPUs of a capacity type that may run at a time; a negative one has no end.
func (c *Cloud) SetQuota(capacityType string, vCPUs int) {
	defer c.lock()()
	if vCPUs < 0 {
		delete(c.quotas, capacityType)
		return
	}
	c.quotas[capacityType] = vCPUs
}

// SetSpotPrice is a spot price in US dollars per hour; by default it is the catalogue's estimate.
func (c *Cloud) SetSpotPrice(typ, zone string, price float64) {
	defer c.lock()()
	c.spot[pool{typ, zone, "spot"}] = price
}

// SetOnDemandPrice is a price of the price list in US dollars per hour; by default it is the catalogue's.
func (c *Cloud) SetOnDemandPrice(typ string, price float64) {
	defer c.lock()()
	c.onDemand[typ] = price
}

// RefuseOffering makes fleets fail with a code and a message for an offering; an empty code ends it.
func (c *Cloud) RefuseOffering(typ, zone, capacityType, code, message string) {
	defer c.lock()()
	if code == "" {
		delete(c.fleetErrors, pool{typ, zone, capacityType})
		return
	}
	c.fleetErrors[pool{typ, zone, capacityType}] = apiError{code, message}
}

// KillNew makes new instances end at once for a reason, as with a key that may not be used; an empty code ends it.
func (c *Cloud) KillNew(code, message string) {
	defer c.lock()()
	c.fate = nil
	if code != "" {
		c.fate = &apiError{code, message}
	}
}

// ShiftAway shifts the cluster's traffic away from zones, by their names; without any, all shifts end.
func (c *Cloud) ShiftAway(zones ...string) {
	defer c.lock()()
	c.shifted = map[string]bool{}
	for _, z := range c.region.Zones {
		c.shifted[z.ID] = slices.Contains(zones, z.Name)
	}
}

// SetSurplus makes fleets launch so many machines more than they are asked for.
func (c *Cloud) SetSurplus(n int) {
	defer c.lock()()
	c.surplus = max(n, 0)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
