// Package api has the clients of the AWS services that the provider uses, with what all their calls
// have in common. A call waits until the account's own token buckets allow it ([Published]). If AWS
// throttles it or does not answer, it is repeated for a second or two. If it fails, its error is an
// outcome of package cloudprovider that names the cause and the cure and contains no credential and
// no user data ([Outcome]).
//
// All calls that are repeated are idempotent: they read, they have a client token, or repeating
// them has no further effect.
package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
)

// Config says where AWS is and who calls it.
type Config struct {
	// Region is required unless the environment or the shared configuration has it.
	Region string
	// Endpoint replaces the addresses of all services, for emulators. Empty means AWS.
	Endpoint string
	// Credentials sign the calls. nil means the SDK's usual chain: environment, shared files, the
	// instance's role.
	Credentials aws.CredentialsProvider
	// HTTPClient makes the connections. nil means the SDK's client.
	HTTPClient *http.Client
	// Buckets hold back calls that AWS would throttle. nil means buckets of [Published] sizes.
	// Providers of one account and region should share their buckets.
	Buckets *Buckets
}

// Clients are clients of all services, for one region. They are safe for concurrent use. Make them
// with [Connect].
type Clients struct {
	EC2     *ec2.Client
	SSM     *ssm.Client
	SQS     *sqs.Client
	IAM     *iam.Client
	EKS     *eks.Client
	Pricing *pricing.Client
	ARC     *arczonalshift.Client
	// Region is the region of the calls.
	Region string
}

// Connect makes the clients. It makes no call yet. The error says what is missing in the
// configuration.
func Connect(ctx context.Context, c Config) (*Clients, error) {
	if c.Buckets == nil {
		c.Buckets = NewBuckets(nil)
	}
	cfg, err := config.LoadDefaultConfig(ctx, func(o *config.LoadOptions) error {
		o.Region, o.BaseEndpoint, o.Credentials = c.Region, c.Endpoint, c.Credentials
		o.Retryer = func() aws.Retryer { return newRetryer(c.Buckets) }
		o.Logger = logging.Nop{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("aws: configuration: %w", err)
	}
	if c.HTTPClient != nil {
		// Set afterwards, because loading rejects a plain client if the environment names
		// certificates of its own.
		cfg.HTTPClient = c.HTTPClient
	}
	if cfg.Region == "" {
		return nil, errors.New(`aws: no region: want one such as "us-east-1", in the options or in AWS_REGION`)
	}
	caller := middleware.InitializeMiddlewareFunc("joinery.Caller", (&caller{credentials: cfg.Credentials}).call)
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		if err := stack.Build.Add(plainBody, middleware.Before); err != nil {
			return err
		}
		return stack.Initialize.Add(caller, middleware.After)
	})
	priced := cfg.Copy()
	if c.Endpoint == "" {
		priced.Region = PricingRegion(cfg.Region)
	}
	return &Clients{
		EC2: ec2.NewFromConfig(cfg), SSM: ssm.NewFromConfig(cfg), SQS: sqs.NewFromConfig(cfg), IAM: iam.NewFromConfig(cfg),
		EKS: eks.NewFromConfig(cfg), Pricing: pricing.NewFromConfig(priced), ARC: arczonalshift.NewFromConfig(cfg), Region: cfg.Region,
	}, nil
}

// paginator is a paginator of the SDK, with answers O and options of a service.
type paginator[O, Options any] interface {
	HasMorePages() bool
	NextPage(ctx context.Context, options ...func(*Options)) (O, error)
}

// All reads all pages. It returns what list finds in each page, in order. The error is that of the
// first call that fails.
func All[O, Options, T any](ctx context.Context, pages paginator[O, Options], list func(O) []T) ([]T, error) {
	var all []T
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, list(page)...)
	}
	return all, nil
}
