package api

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate is a token bucket: Burst calls at once, and PerSecond more every second. The zero rate does
// not limit.
type Rate struct{ Burst, PerSecond float64 }

// Limit is the throttling of one EC2 action: of its calls and, for some actions, also of the
// resources that they affect.
type Limit struct{ Calls, Resources Rate }

// Published returns the default limits of an account in a region, as AWS publishes them in "Request
// throttling for the Amazon EC2 API" (Amazon EC2 Developer Guide, ec2-api-throttling.html; tables
// "Request token bucket sizes and refill rates" and "Resource token bucket sizes and refill rates";
// as read in 2026). Each action has a bucket of its own, whose size depends on the action's
// category. filtered says whether a reading call has a filter or asks for pages; without either
// some calls have a smaller bucket. Limits of other services are not published per action, so they
// are zero.
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

// Names of services, as in the SDK.
const (
	EC2     = "EC2"
	SSM     = "SSM"
	SQS     = "SQS"
	IAM     = "IAM"
	EKS     = "EKS"
	Pricing = "Pricing"
)

// Buckets are the token buckets of one account in one region. It is safe for concurrent use. Make
// one with [NewBuckets].
type Buckets struct {
	limits func(service, action string, filtered bool) Limit

	mu      sync.Mutex
	limiter map[string]*rate.Limiter
}

// NewBuckets returns full buckets of the sizes that limits gives. nil means [Published].
func NewBuckets(limits func(service, action string, filtered bool) Limit) *Buckets {
	if limits == nil {
		limits = Published
	}
	return &Buckets{limits: limits, limiter: map[string]*rate.Limiter{}}
}

// Take takes the cost of a call with the given number of resources. It returns how long the caller
// must wait before the call; later calls wait longer. If the wait is longer than patience, nothing
// is taken. More resources than a bucket can hold count as a full bucket.
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
