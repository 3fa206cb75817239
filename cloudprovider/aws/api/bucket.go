package api

import (
	"math"
	"strings"
	"sync"
	"time"
)

// Rate is a token bucket: so many calls at once, and so many more every second.
type Rate struct{ Burst, PerSecond float64 }

// Limit is what one action of EC2 is throttled by: its calls, and for some actions also the resources that they touch.
// A zero rate does not limit.
type Limit struct{ Calls, Resources Rate }

// Published are the default limits of an account in a region, as AWS publishes them in "Request throttling for the Amazon EC2
// API" (Amazon EC2 Developer Guide, ec2-api-throttling.html; tables "Request token bucket sizes and refill rates" and
// "Resource token bucket sizes and refill rates"; as read in 2026): each action has a bucket of its own, and its size
// depends on the action's category. Filtered says whether a reading call has a filter or asks for pages, for without
// either some have a smaller bucket. Limits of other services are not published per action; zero is returned for them.
func Published(service, action string, filtered bool) Limit {
	if service != EC2 {
		return Limit{}
	}
	calls := func(burst, perSecond float64) Limit { return Limit{Calls: Rate{burst, perSecond}} }
	switch action {
	case "CreateTags", "DeleteTags":
		return calls(100, 10)
	case "RunInstances":
		return Limit{Calls: Rate{5, 2}, Resources: Rate{1000, 2}}
	case "TerminateInstances":
		return Limit{Calls: Rate{100, 5}, Resources: Rate{1000, 20}}
	case "CreateLaunchTemplateVersion", "ModifyLaunchTemplate":
		return calls(100, 5)
	case "DescribeInstances", "DescribeInstanceStatus", "DescribeSecurityGroups":
		if !filtered {
			return calls(50, 10)
		}
	}
	for _, prefix := range []string{"Describe", "List", "Search", "Get"} {
		if strings.HasPrefix(action, prefix) {
			return calls(100, 20)
		}
	}
	return calls(50, 5)
}

// Names of services, as the SDK calls them.
const (
	EC2     = "EC2"
	SSM     = "SSM"
	SQS     = "SQS"
	IAM     = "IAM"
	EKS     = "EKS"
	Pricing = "Pricing"
)

// Buckets are the token buckets of one account in one region. It is safe for concurrent use; make one by [NewBuckets].
type Buckets struct {
	limits func(service, action string, filtered bool) Limit

	mu   sync.Mutex
	full map[string]*bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

// NewBuckets has full buckets of the sizes that limits says; nil = [Published].
func NewBuckets(limits func(service, action string, filtered bool) Limit) *Buckets {
	if limits == nil {
		limits = Published
	}
	return &Buckets{limits: limits, full: map[string]*bucket{}}
}

// Take takes what a call with so many resources costs if the buckets hold it, and 0 is returned. Otherwise nothing is taken, and the
// result is how long it takes until they will. More resources than a bucket ever holds count as a full bucket.
func (b *Buckets) Take(now time.Time, service, action string, filtered bool, resources int) time.Duration {
	limit := b.limits(service, action, filtered)
	b.mu.Lock()
	defer b.mu.Unlock()
	name := service + "." + action
	if !filtered {
		name += " unfiltered"
	}
	calls := b.filled(name, limit.Calls, now)
	things := b.filled(name+" resources", limit.Resources, now)
	wait := max(calls.wait(1, limit.Calls), things.wait(float64(resources), limit.Resources))
	if wait > 0 {
		return wait
	}
	calls.take(1, limit.Calls)
	things.take(float64(resources), limit.Resources)
	return 0
}

func (b *Buckets) filled(name string, rate Rate, now time.Time) *bucket {
	k, ok := b.full[name]
	if !ok {
		k = &bucket{tokens: rate.Burst, at: now}
		b.full[name] = k
	}
	if passed := now.Sub(k.at).Seconds(); passed > 0 {
		k.tokens, k.at = min(rate.Burst, k.tokens+passed*rate.PerSecond), now
	}
	return k
}

func (k *bucket) wait(n float64, rate Rate) time.Duration {
	if rate.Burst == 0 || k.tokens >= min(n, rate.Burst) {
		return 0
	}
	seconds := (min(n, rate.Burst) - k.tokens) / rate.PerSecond
	return time.Duration(math.Ceil(seconds*1e6)) * time.Microsecond
}

func (k *bucket) take(n float64, rate Rate) {
	if rate.Burst > 0 {
		k.tokens -= min(n, rate.Burst)
	}
}
