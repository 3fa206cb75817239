package memcloud

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// Config is the initial state of a cloud. The zero value sells nothing. With Types alone the cloud
// has unlimited capacity, no quotas, and does everything at once.
type Config struct {
	// Types is the catalogue. Every offering must name one zone and one capacity type.
	Types []instancetypes.InstanceType
	// Pools limit how many machines of an offering exist. Offerings without a pool have no limit.
	Pools []Pool
	// Quotas limit what the account may use.
	Quotas []Quota
	// Reveal makes the catalogue say which pools are empty. Most clouds do not say so in advance.
	Reveal bool
	// Image is the image that machines boot from, see SetImage.
	Image string
	// Latency is how long each call takes: it moves the clock by this much.
	Latency time.Duration
	// Boot is how long a new machine is pending. Shutdown is how long a deleted machine is
	// terminating.
	Boot, Shutdown time.Duration
	// Lag is the maximum lag of Get and List. Each machine has its own lag below that.
	Lag time.Duration
	// SpotLife is the mean life of spot machines, after which the cloud takes them back. Lives are
	// distributed exponentially. 0 means that they are never taken back. Notice is how long before
	// that the cloud announces it; 0 means 2 minutes.
	SpotLife, Notice time.Duration
	// Clock is the clock; nil means a new one that starts with the year 2026.
	Clock *Clock
	// Seed determines lags and spot lives.
	Seed uint64
}

// Pool is the number of machines left of one offering.
type Pool struct {
	Type     string
	Offering requirements.Set
	Free     int
}

// Quota limits what nodes use together.
type Quota struct {
	Name string
	// Covers matches the nodes that count.
	Covers requirements.Set
	// Resource is what is counted of each node's capacity, in the units of package resources (milli
	// for cpu). Empty means that nodes are counted.
	Resource corev1.ResourceName
	Limit    int64
}

// validate reports all faults of a config.
func (c Config) validate() error {
	var errs []error
	fault := func(path, format string, args ...any) {
		errs = append(errs, fmt.Errorf("memcloud: %s: %w", path, fmt.Errorf(format, args...)))
	}
	if err := instancetypes.Validate(c.Types); err != nil {
		fault("types", "%w", err)
	}
	for i, t := range c.Types {
		for j, o := range t.Offerings {
			for _, key := range []string{corev1.LabelTopologyZone, instancetypes.LabelCapacityType} {
				if _, ok := o.Requirements.Get(key).Single(); !ok {
					fault(fmt.Sprintf("types[%d].offerings[%d]", i, j), "exactly one value of %q is required", key)
				}
			}
		}
	}
	seen := map[string]bool{}
	for i, p := range c.Pools {
		path := fmt.Sprintf("pools[%d]", i)
		if _, _, err := find(c.Types, p.Type, p.Offering); err != nil {
			fault(path, "%w", err)
		}
		if p.Free < 0 {
			fault(path+".free", "%d is negative", p.Free)
		}
		key := poolKey(p.Type, p.Offering)
		if seen[key] {
			fault(path, "there is another pool of %s", key)
		}
		seen[key] = true
	}
	names := map[string]bool{}
	for i, q := range c.Quotas {
		path := fmt.Sprintf("quotas[%d]", i)
		if q.Name == "" || names[q.Name] {
			fault(path+".name", "%q is empty or already there", q.Name)
		}
		names[q.Name] = true
		if q.Limit < 0 {
			fault(path+".limit", "%d is negative", q.Limit)
		}
	}
	for _, d := range []struct {
		path string
		d    time.Duration
	}{{"latency", c.Latency}, {"boot", c.Boot}, {"shutdown", c.Shutdown}, {"lag", c.Lag}, {"spotLife", c.SpotLife}, {"notice", c.Notice}} {
		if d.d < 0 {
			fault(d.path, "%s is negative", d.d)
		}
	}
	return errors.Join(errs...)
}

func poolKey(typeName string, offering requirements.Set) string {
	return cloudprovider.Candidate{Type: typeName, Offering: offering}.String()
}

// find returns an offering of a catalogue.
func find(types []instancetypes.InstanceType, name string, offering requirements.Set) (instancetypes.InstanceType, instancetypes.Offering, error) {
	i := slices.IndexFunc(types, func(t instancetypes.InstanceType) bool { return t.Name == name })
	if i < 0 {
		names := make([]string, len(types))
		for i, t := range types {
			names[i] = t.Name
		}
		if near, ok := requirements.Nearest(name, names); ok {
			return instancetypes.InstanceType{}, instancetypes.Offering{}, fmt.Errorf("no type %q, did you mean %q?", name, near)
		}
		return instancetypes.InstanceType{}, instancetypes.Offering{}, fmt.Errorf("no type %q", name)
	}
	var found instancetypes.Offering
	hit := false
	for _, o := range types[i].Offerings {
		// Commitments make several offerings of one; an available one is enough.
		if o.Requirements.Equal(offering) && (!hit || o.Available && !found.Available) {
			found, hit = o, true
		}
	}
	if !hit {
		return instancetypes.InstanceType{}, instancetypes.Offering{}, fmt.Errorf("type %q has no offering %q", name, offering)
	}
	return types[i], found, nil
}

// weight returns what a node counts towards the quota, or 0 if it does not count.
func (q Quota) weight(labels map[string]string, capacity corev1.ResourceList) int64 {
	if !q.Covers.Matches(labels) {
		return 0
	}
	if q.Resource == "" {
		return 1
	}
	return resources.Capacity(q.Resource, capacity[q.Resource])
}
