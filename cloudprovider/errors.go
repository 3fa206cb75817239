package cloudprovider

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/requirements"
)

// The closed list of errors. Test for these with errors.Is, not by message; [*Error] has the
// detail.
var (
	// ErrNotFound: the instance does not exist, or it existed and is gone.
	ErrNotFound = errors.New("not found")
	// ErrInsufficientCapacity: the cloud has none of the requested offerings at the moment.
	ErrInsufficientCapacity = errors.New("insufficient capacity")
	// ErrQuota: the cloud has capacity, but this account may not use more.
	ErrQuota = errors.New("quota exceeded")
	// ErrThrottled: too many calls.
	ErrThrottled = errors.New("throttled")
	// ErrUnauthorized: the credentials are wrong or insufficient.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrInvalidSpec: the request can never succeed, now or later.
	ErrInvalidSpec = errors.New("invalid spec")
	// ErrNotReady: something that the call depends on does not exist yet or is busy, such as a node
	// class that is still being resolved, or a machine that another operation has locked (HTTP 409
	// and 423).
	ErrNotReady = errors.New("not ready")
	// ErrUnsupported: this cloud cannot do that at all.
	ErrUnsupported = errors.New("unsupported")
)

// Error is a failure with a known outcome. errors.Is finds its code, and errors.As the cloud's own
// error.
type Error struct {
	// Code is one of the sentinels of this package.
	Code error
	// Op is the method, such as "create". Subject is the name of the claim or the id of the
	// instance.
	Op, Subject string
	// Refused are the candidates for which the cloud had no capacity. Quotas are the quotas that
	// blocked other candidates.
	Refused []Refusal
	Quotas  []Quota
	// RetryAfter is how long the cloud asks callers to wait; 0 means that it did not say.
	RetryAfter time.Duration
	// Err is the cloud's own error, or nil.
	Err error
}

// Refusal says that the cloud refused an offering.
type Refusal struct {
	// Type is the name of the instance type. Offering identifies its offering by zone, capacity
	// type and, if there is one, reservation.
	Type     string
	Offering requirements.Set
	// Detail is the cloud's reason in its own words.
	Detail string
}

// Quota is an upper bound on what an account may use. A quota is not a lack of capacity: another
// type of the same class does not help, even if the cloud has capacity for it.
type Quota struct {
	// Name is the cloud's name for the quota.
	Name string
	// Blocks matches all nodes that count towards the quota, so a whole class of types is blocked
	// at once. Anything means all nodes.
	Blocks requirements.Set
	// Used and Limit are in the quota's own unit. Both are 0 if the cloud did not say.
	Used, Limit int64
}

// Error returns the operation, the code, and the detail that is known.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("cloudprovider: ")
	switch {
	case e.Op != "" && e.Subject != "":
		fmt.Fprintf(&b, "%s %q: ", e.Op, e.Subject)
	case e.Op != "":
		b.WriteString(e.Op + ": ")
	case e.Subject != "":
		fmt.Fprintf(&b, "%q: ", e.Subject)
	}
	if e.Code == nil {
		b.WriteString("error without a code")
	} else {
		b.WriteString(e.Code.Error())
	}
	sep := ": "
	add := func(format string, args ...any) {
		b.WriteString(sep)
		fmt.Fprintf(&b, format, args...)
		sep = "; "
	}
	for _, r := range e.Refused {
		add("%s", r)
	}
	for _, q := range e.Quotas {
		add("%s", q)
	}
	if e.RetryAfter > 0 {
		add("retry after %s", e.RetryAfter)
	}
	if e.Err != nil {
		add("%v", e.Err)
	}
	return b.String()
}

// Is reports whether target is the code.
func (e *Error) Is(target error) bool { return e.Code != nil && target == e.Code }

// Unwrap returns the cloud's own error. It should not contain a sentinel: Code alone decides.
func (e *Error) Unwrap() error { return e.Err }

// String returns "type (offering): detail".
func (r Refusal) String() string {
	s := fmt.Sprintf("%s (%s)", r.Type, r.Offering)
	if r.Detail != "" {
		s += ": " + r.Detail
	}
	return s
}

// String returns the name, the use and the limit, and what the quota blocks.
func (q Quota) String() string {
	s := fmt.Sprintf("quota %q", q.Name)
	if q.Used != 0 || q.Limit != 0 {
		s += fmt.Sprintf(" (%d of %d used)", q.Used, q.Limit)
	}
	if q.Blocks.IsAnything() {
		return s + " blocks everything"
	}
	return s + " blocks " + q.Blocks.String()
}
