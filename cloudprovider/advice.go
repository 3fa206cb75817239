package cloudprovider

import "errors"

// Retry says what may be tried after a failure.
type Retry string

// The kinds of retries.
const (
	// RetryNever: the same call fails again until a person changes something, or there is nothing left to do.
	RetryNever Retry = "Never"
	// RetrySame: the same call, with the same token, after a while.
	RetrySame Retry = "Same"
	// RetryElsewhere: not this; plan again without what was refused.
	RetryElsewhere Retry = "Elsewhere"
)

// Advice is what a caller may conclude from an error.
type Advice struct {
	Retry Retry
	// Unknown means that the call may have had its effect: an instance may be there, or may be gone. Only the same call,
	// with the same token, tells.
	Unknown bool
}

// Advise is the table of retries. Of several codes in one error the first in this order decides:
//
//	ErrUnauthorized          Never      a person has to grant something
//	ErrUnsupported           Never      another provider, perhaps
//	ErrInvalidSpec           Never      the claim must be another one
//	ErrNotFound              Never      the instance is gone: what Delete was for; after Create, a new token is needed
//	ErrNotReady              Same
//	ErrThrottled             Same       after Error.RetryAfter, if it says
//	ErrQuota                 Elsewhere  without what the quota blocks, or after giving something back
//	ErrInsufficientCapacity  Elsewhere  without what was refused
//	any other                Same       unknown outcome: lost connections, cancelled contexts, the cloud's internal errors
//
// Advise(nil) is RetryNever: nothing is left to do.
func Advise(err error) Advice {
	switch {
	case err == nil,
		errors.Is(err, ErrUnauthorized), errors.Is(err, ErrUnsupported), errors.Is(err, ErrInvalidSpec), errors.Is(err, ErrNotFound):
		return Advice{Retry: RetryNever}
	case errors.Is(err, ErrNotReady), errors.Is(err, ErrThrottled):
		return Advice{Retry: RetrySame}
	case errors.Is(err, ErrQuota), errors.Is(err, ErrInsufficientCapacity):
		return Advice{Retry: RetryElsewhere}
	default:
		return Advice{Retry: RetrySame, Unknown: true}
	}
}

// Codes lists the sentinels, in the order of [Advise]. A new slice.
func Codes() []error {
	return []error{
		ErrUnauthorized, ErrUnsupported, ErrInvalidSpec, ErrNotFound,
		ErrNotReady, ErrThrottled, ErrQuota, ErrInsufficientCapacity,
	}
}
