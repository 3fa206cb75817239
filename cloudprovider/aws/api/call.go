package api

import (
	"context"
	"errors"
	"fmt"
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

// How long a call may be held back, and how it is repeated: a provider does not retry for long.
const (
	patience = 2 * time.Second
	tries    = 4
	firstNap = 150 * time.Millisecond
)

// caller stands before every call.
type caller struct{ credentials aws.CredentialsProvider }

// ID names the step among the SDK's.
func (*caller) ID() string { return "joinery.Caller" }

// cost is the key under which the context of a call holds what it takes out of the buckets.
type cost struct{}

type weight struct {
	resources int
	filtered  bool
}

// HandleInitialize makes the call, and an outcome of its error.
func (c *caller) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	service, action := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	out, metadata, err := next.HandleInitialize(middleware.WithStackValue(ctx, cost{}, weigh(in.Parameters)), in)
	if err == nil {
		return out, metadata, nil
	}
	err = c.explain(ctx, service, action, in.Parameters, err)
	// Once an answer was lost, no later failure says that nothing was done.
	if attempts, ok := retry.GetAttemptResults(metadata); ok && !cloudprovider.Advise(err).Unknown {
		for _, a := range attempts.Results {
			if earlier := c.explain(ctx, service, action, in.Parameters, a.Err); a.Err != nil && cloudprovider.Advise(earlier).Unknown {
				return out, metadata, earlier
			}
		}
	}
	return out, metadata, err
}

// explain makes an outcome of an error, without anything private in its text.
func (c *caller) explain(ctx context.Context, service, action string, input any, err error) error {
	private := userData(input)
	if c.credentials != nil && ctx.Err() == nil {
		if keys, failed := c.credentials.Retrieve(ctx); failed == nil {
			private = append(private, keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken)
		}
	}
	return outcome(service, action, err, private)
}

// retryer repeats calls as the SDK does, a few times and with jitter, and holds each try back until the account's buckets allow it.
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

// Wait waits for a time, or until the context is done, whose error it then returns.
func Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	return smithytime.SleepWithContext(ctx, d)
}

// retryable decides on errors before the SDK does, by the answer book, and not if AWS wants to be left alone for longer than a caller waits. The SDK
// itself finds clocks that are wrong, and decides on what has no answer.
func retryable(err error) aws.Ternary {
	class := classOf(err)
	_, ours := errors.AsType[*cloudprovider.Error](err)
	var decided interface{ RetryableError() bool }
	switch {
	case ours || retryAfter(err) > patience:
		return aws.FalseTernary
	case Reason(err) == "RequestExpired": // the next try has the corrected time
		return aws.TrueTernary
	case class == nil || errors.As(err, &decided):
		return aws.UnknownTernary
	default:
		return aws.BoolTernary(errors.Is(class, cloudprovider.ErrThrottled))
	}
}

// delay is a random part of a time that doubles, but no less than AWS asks for.
func delay(attempt int, err error) (time.Duration, error) {
	longest := firstNap << max(attempt-1, 0)
	return max(longest/2+rand.N(longest/2), retryAfter(err)), nil
}

// retryAfter is what the header of this name says, in seconds or as a date; 0 = nothing.
func retryAfter(err error) time.Duration {
	response, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok || response.Response == nil {
		return 0
	}
	text := response.Response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(time.Until(at), 0)
}

// permission is the name of the IAM action that allows a call.
func permission(service, action string) string {
	return strings.ReplaceAll(strings.ToLower(service), " ", "-") + ":" + action
}

// weigh counts the resources that an input touches, and says whether it filters or asks for pages.
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
