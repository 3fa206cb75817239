package cloudprovider

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/requirements"
)

// The closed list of what can go wrong. Act on these by errors.Is, not on messages; detail is in [*Error].
var (
	// ErrNotFound: there is no such instance, or there was and it is gone.
	ErrNotFound = errors.New("not found")
	// ErrInsufficientCapacity: the cloud has none of what was asked for, at the moment.
	ErrInsufficientCapacity = errors.New("insufficient capacity")
	// ErrQuota: the cloud has it, but this account may not use more.
	ErrQuota = errors.New("quota exceeded")
	// ErrThrottled: too many calls.
	ErrThrottled = errors.New("throttled")
	// ErrUnauthorized: the credentials are wrong, or do not suffice.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrInvalidSpec: what was asked for cannot be, now or later.
	ErrInvalidSpec = errors.New("invalid spec")
	// ErrNotReady: something that the call depends on is not there yet, such as a node class that is being resolved.
	ErrNotReady = errors.New("not ready")
	// ErrUnsupported: this cloud cannot do that at all.
	ErrUnsupported = errors.New("unsupported")
)

// Error is an outcome that is known. errors.Is finds its code, and errors.As the cloud's own error.
type Error struct {
	// Code is one of the sentinels of this package.
	Code error
	// Op is the method, such as "create"; Subject the name of the claim or the id of the instance.
	Op, Subject string
	// Refused are the candidates that the cloud had no capacity for, Quotas what stood in the way of others.
	Refused []Refusal
	Quotas  []Quota
	// RetryAfter is how long the cloud wants to be left alone; 0 = it did not say.
	RetryAfter time.Duration
	// Err is the cloud's own error, if there is one.
	Err error
}

// Refusal says that an offering could not be had.
type Refusal struct {
	// Type is the instance type's name, Offering which of its offerings: zone, capacity type and, if there is one, reservation.
	Type     string
	Offering requirements.Set
	// Detail is the cloud's reason in its own words, for people.
	Detail string
}

// Quota is an upper bound on what an account may use. It is no lack of capacity: another type of the same class does not
// help, however many the cloud has of it.
type Quota struct {
	// Name is the cloud's name of it.
	Name string
	// Blocks matches all nodes that count towards it, so that a whole class of types is out at once. Anything = all nodes.
	Blocks requirements.Set
	// Used and Limit are in the quota's own unit; both are 0 if the cloud did not say.
	Used, Limit int64
}

// Error says what was asked, what went wrong, and the detail that is there.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("cloudprovider: ")
	if e.Op != "" {
		b.WriteString(e.Op + " ")
	}
	if e.Subject != "" {
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

// Unwrap is the cloud's own error. Its text may mention a sentinel, but a sentinel does not belong into it: the code
// decides.
func (e *Error) Unwrap() error { return e.Err }

// String is "type (offering): detail".
func (r Refusal) String() string {
	s := fmt.Sprintf("%s (%s)", r.Type, r.Offering)
	if r.Detail != "" {
		s += ": " + r.Detail
	}
	return s
}

// String is the name, what is used of how much, and what it blocks.
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
