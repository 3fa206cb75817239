package api

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// How long a call may be held back or repeated, altogether: a provider does not retry for long.
const (
	patience = 2 * time.Second
	tries    = 4
	firstNap = 150 * time.Millisecond
)

// caller stands before every call.
type caller struct {
	buckets     *Buckets
	clock       Clock
	credentials aws.CredentialsProvider
}

// ID names the step among the SDK's.
func (*caller) ID() string { return "joinery.Caller" }

// HandleInitialize takes tokens, calls, and calls again if that may help.
func (c *caller) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	service, action := awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)
	resources, filtered := weigh(in.Parameters)
	var none middleware.InitializeOutput
	waited := time.Duration(0)
	// Once an answer was lost, no later failure says that nothing was done.
	var lost error
	for try := 1; ; try++ {
		wait := c.buckets.Take(c.clock.Time(), service, action, filtered, resources)
		for ; wait > 0; wait = c.buckets.Take(c.clock.Time(), service, action, filtered, resources) {
			if waited += wait; waited > patience {
				if lost != nil {
					return none, middleware.Metadata{}, lost
				}
				return none, middleware.Metadata{}, &cloudprovider.Error{
					Code: cloudprovider.ErrThrottled, RetryAfter: wait,
					Err: fmt.Errorf("%s is held back: the account's bucket of calls is empty", permission(service, action)),
				}
			}
			if err := c.clock.Wait(ctx, wait); err != nil {
				return none, middleware.Metadata{}, err
			}
		}
		out, metadata, err := next.HandleInitialize(ctx, in)
		if err == nil {
			return out, metadata, nil
		}
		err = c.explain(ctx, service, action, in.Parameters, err)
		again := errors.Is(err, cloudprovider.ErrThrottled)
		switch {
		case lost != nil:
			err = lost
		case cloudprovider.Advise(err).Unknown:
			lost, again = err, true // once: what is broken for longer is for the caller to decide
		}
		if ctx.Err() != nil || try == tries || !again {
			return none, metadata, err
		}
		nap := firstNap << (try - 1)
		if waited += nap; waited > patience {
			return none, metadata, err
		}
		if err := c.clock.Wait(ctx, nap); err != nil {
			return none, metadata, err
		}
	}
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

// permission is the name of the IAM action that allows a call.
func permission(service, action string) string {
	prefix := strings.ToLower(service)
	if service == "SSM" || service == "SQS" || service == "IAM" || service == "EKS" || service == "EC2" {
		return prefix + ":" + action
	}
	return strings.ReplaceAll(prefix, " ", "-") + ":" + action
}

// weigh counts the resources that an input touches, and says whether it filters or asks for pages.
func weigh(input any) (resources int, filtered bool) {
	v := reflect.Indirect(reflect.ValueOf(input))
	if v.Kind() != reflect.Struct {
		return 0, true
	}
	if ids := v.FieldByName("InstanceIds"); ids.IsValid() {
		resources = ids.Len()
	}
	for _, name := range []string{"Filters", "MaxResults", "NextToken"} {
		if f := v.FieldByName(name); f.IsValid() && !f.IsZero() {
			filtered = true
		}
	}
	return resources, filtered
}
