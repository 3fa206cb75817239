package api

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate is a token bucket: so many calls at once, and so many more every second. The zero rate does not limit.
type Rate struct{ Burst, PerSecond float64 }

// Limit is what one action of EC2 is throttled by: its calls, and for some actions also the resources that they touch.
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

	mu      sync.Mutex
	limiter map[string]*rate.Limiter
}

// NewBuckets has full buckets of the sizes that limits says; nil = [Published].
func NewBuckets(limits func(service, action string, filtered bool) Limit) *Buckets {
	if limits == nil {
		limits = Published
	}
	return &Buckets{limits: limits, limiter: map[string]*rate.Limiter{}}
}

// Take takes what a call with so many resources costs, and returns how long the caller must wait before the call; calls that come later wait
// longer. If that is more than patience, nothing is taken. More resources than a bucket ever holds count as a full bucket.
func (b *Buckets) Take(now time.Time, service, action string, filtered bool, resources int, patience time.Duration) time.Duration {
	limit := b.limits(service, action, filtered)
	name := service + "." + action
	if !filtered {
		name += " unfiltered"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.reserve(now, name, limit.Calls, 1)
	touched := b.reserve(now, name+" resources", limit.Resources, resources)
	wait := max(calls.DelayFrom(now), touched.DelayFrom(now))
	if wait > patience {
		touched.CancelAt(now)
		calls.CancelAt(now)
	}
	return wait
}

func (b *Buckets) reserve(now time.Time, name string, of Rate, n int) *rate.Reservation {
	l, ok := b.limiter[name]
	if !ok {
		l = rate.NewLimiter(rate.Limit(of.PerSecond), int(of.Burst))
		if of.Burst == 0 {
			l.SetLimit(rate.Inf)
		}
		b.limiter[name] = l
	}
	if of.Burst > 0 {
		n = min(n, int(of.Burst))
	}
	return l.ReserveN(now, n)
}
