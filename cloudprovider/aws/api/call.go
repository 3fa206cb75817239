package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithytime "github.com/aws/smithy-go/time"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// Limits for holding a call back and repeating it: a provider does not retry for long.
const (
	patience = 2 * time.Second
	tries    = 4
	firstNap = 150 * time.Millisecond
)

// caller is the middleware step before every call.
type caller struct{ credentials aws.CredentialsProvider }

// cost is the context key for what a call takes out of the buckets.
type cost struct{}

type weight struct {
	resources int
	filtered  bool
}

// call makes the call and turns its error into an outcome.
func (c *caller) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	service, action := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	out, metadata, err := next.HandleInitialize(middleware.WithStackValue(ctx, cost{}, weigh(in.Parameters)), in)
	if err == nil {
		return out, metadata, nil
	}
	err = c.explain(ctx, service, action, in.Parameters, err)
	// Once an answer was lost, no later failure proves that nothing was done.
	if attempts, ok := retry.GetAttemptResults(metadata); ok && !cloudprovider.Advise(err).Unknown {
		for _, a := range attempts.Results {
			if earlier := c.explain(ctx, service, action, in.Parameters, a.Err); a.Err != nil && cloudprovider.Advise(earlier).Unknown {
				return out, metadata, earlier
			}
		}
	}
	return out, metadata, err
}

// explain turns an error into an outcome, without anything private in its text.
func (c *caller) explain(ctx context.Context, service, action string, input any, err error) error {
	private := userData(input)
	if c.credentials != nil && ctx.Err() == nil {
		if keys, failed := c.credentials.Retrieve(ctx); failed == nil {
			private = append(private, keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken)
		}
	}
	return outcome(service, action, err, private)
}

// retryer repeats calls as the SDK does, a few times and with jitter. It holds each attempt back
// until the account's buckets allow it.
type retryer struct {
	*retry.Standard
	buckets *Buckets
}

func newRetryer(buckets *Buckets) *retryer {
	r := &retryer{buckets: buckets}
	r.Standard = retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = tries
		o.Backoff = retry.BackoffDelayerFunc(delay)
		o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(retryable)}, o.Retryables...)
	})
	return r
}

// GetAttemptToken waits until a call is allowed.
func (r *retryer) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	service, action := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	w, _ := middleware.GetStackValue(ctx, cost{}).(weight)
	wait := r.buckets.Take(time.Now(), service, action, w.filtered, w.resources, patience)
	if wait > patience {
		return nil, &cloudprovider.Error{
			Code: cloudprovider.ErrThrottled, RetryAfter: wait, Err: fmt.Errorf("%s is held back: the account's bucket of calls is empty", permission(service, action)),
		}
	}
	if err := Wait(ctx, wait); err != nil {
		return nil, err
	}
	return r.Standard.GetAttemptToken(ctx)
}

// Wait returns nil after the duration, or the context's error if the context is done earlier.
func Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	return smithytime.SleepWithContext(ctx, d)
}

// retryable decides about errors before the SDK does, by the answer book. It does not retry if AWS
// asks for a longer pause than a caller waits. The SDK itself detects wrong clocks and decides
// about calls without an answer.
func retryable(err error) aws.Ternary {
	answer, _, answered := AnswerOf(err)
	_, ours := errors.AsType[*cloudprovider.Error](err)
	var decided interface{ RetryableError() bool }
	switch {
	case ours || retryAfter(err) > patience:
		return aws.FalseTernary
	case Reason(err) == "RequestExpired": // the next attempt has the corrected time
		return aws.TrueTernary
	case !answered || answer.Err() == nil || errors.As(err, &decided):
		return aws.UnknownTernary
	default:
		return aws.BoolTernary(errors.Is(answer.Err(), cloudprovider.ErrThrottled))
	}
}

// delay returns a random part of a time that doubles, but no less than AWS asks for.
func delay(attempt int, err error) (time.Duration, error) {
	longest := firstNap << max(attempt-1, 0)
	return max(longest/2+rand.N(longest/2), retryAfter(err)), nil
}

// retryAfter returns the value of the header of this name, given in seconds or as a date, or 0.
func retryAfter(err error) time.Duration {
	response, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok || response.Response == nil {
		return 0
	}
	text := response.Response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, math.MaxInt64/int(time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(time.Until(at), 0)
}

// permission returns the name of the IAM action that allows a call.
func permission(service, action string) string {
	return strings.ReplaceAll(strings.ToLower(service), " ", "-") + ":" + action
}

// weigh counts the resources of an input, and reports whether it filters or asks for pages.
func weigh(input any) weight {
	v := reflect.Indirect(reflect.ValueOf(input))
	if v.Kind() != reflect.Struct {
		return weight{filtered: true}
	}
	var w weight
	if ids := v.FieldByName("InstanceIds"); ids.IsValid() {
		w.resources = ids.Len()
	}
	for _, name := range []string{"Filters", "MaxResults", "NextToken"} {
		if f := v.FieldByName(name); f.IsValid() && !f.IsZero() {
			w.filtered = true
		}
	}
	return w
}
