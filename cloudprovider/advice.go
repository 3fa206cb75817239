package cloudprovider

import "errors"

// Retry says what a caller may try after a failure.
type Retry string

// The values of Retry.
const (
	// RetryNever: the same call fails until a person changes something, or nothing is left to do.
	RetryNever Retry = "Never"
	// RetrySame: repeat the same call with the same token after a while.
	RetrySame Retry = "Same"
	// RetryElsewhere: do not repeat the call. Plan again without what was refused.
	RetryElsewhere Retry = "Elsewhere"
)

// Advice is what a caller may conclude from an error.
type Advice struct {
	Retry Retry
	// Unknown means that the call may have had its effect: an instance may exist or may be gone.
	// Only the same call with the same token can tell.
	Unknown bool
}

// Advise returns the advice for an error. If the error has several codes, the first in this order
// decides:
//
//	ErrUnauthorized          Never      a person has to grant something
//	ErrUnsupported           Never      another provider may support it
//	ErrInvalidSpec           Never      the claim has to be a different one
//	ErrNotFound              Never      the instance is gone, as Delete wanted; Create needs a new token
//	ErrNotReady              Same
//	ErrThrottled             Same       after Error.RetryAfter, if it is set
//	ErrQuota                 Elsewhere  without what the quota blocks, or after giving something back
//	ErrInsufficientCapacity  Elsewhere  without what was refused
//	any other                Same       unknown outcome: a lost connection, a cancelled context, an internal error of the cloud
//
// Advise(nil) has [RetryNever], because nothing is left to do.
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

// Codes returns the sentinels in the order of [Advise], in a new slice.
func Codes() []error {
	return []error{
		ErrUnauthorized, ErrUnsupported, ErrInvalidSpec, ErrNotFound,
		ErrNotReady, ErrThrottled, ErrQuota, ErrInsufficientCapacity,
	}
}
