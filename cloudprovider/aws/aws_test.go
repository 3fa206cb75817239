package aws_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func byTag(key, value string) []nodeclass.Term {
	return []nodeclass.Term{{Tags: []nodeclass.Tag{{Key: key, Values: []string{value}}}}}
}

// class is a node class as simple as they come.
func class() nodeclass.NodeClass {
	return nodeclass.NodeClass{
		Kind: "EC2NodeClass", APIVersion: "karpenter.k8s.aws/v1", Name: "default", Family: ec2.AL2023, Role: "node",
		AMIs: []nodeclass.Term{{Alias: "al2023@latest"}}, Subnets: byTag("cluster", "harbour"), SecurityGroups: byTag("cluster", "harbour"),
		Metadata: nodeclass.MetadataOptions{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"},
	}
}

// pool is any pool of the class.
func pool() nodepool.NodePool { return nodepool.NodePool{} }

// fixture is a cloud in a bubble of time, and what a provider needs to reach it.
type fixture struct {
	cloud *awstest.Cloud
	nonce int
}

func newFixture(t testing.TB, config awstest.Config) *fixture {
	t.Helper()
	awstest.Begin()
	cloud, err := awstest.New(config)
	require.NoError(t, err)
	return &fixture{cloud: cloud}
}

func (f *fixture) options() aws.Options {
	f.nonce++
	reach := f.cloud.API()
	return aws.Options{
		Cluster: "harbour", Classes: aws.FixedClasses{class()}, Queue: "harbour", Region: reach.Region,
		Credentials: reach.Credentials, HTTPClient: reach.HTTPClient, Buckets: reach.Buckets, Lag: 30 * time.Second,
		Undecided: aws.NoHistory, Nonce: fmt.Sprintf("n%d", f.nonce),
	}
}

func (f *fixture) provider(t testing.TB, change ...func(*aws.Options)) *aws.Provider {
	t.Helper()
	o := f.options()
	for _, c := range change {
		c(&o)
	}
	p, err := aws.New(t.Context(), o)
	require.NoError(t, err)
	return p
}

func single(c cloudprovider.Candidate, key string) string {
	v, _ := c.Offering.Get(key).Single()
	return v
}

func (f *fixture) harness(p cloudprovider.Provider) cloudtest.Harness {
	return cloudtest.Harness{
		Provider: p, Many: 12,
		Settle: func(context.Context) error { time.Sleep(2 * time.Minute); return nil },
		Exhaust: func(_ context.Context, c cloudprovider.Candidate) (func(), error) {
			zone, kind := single(c, corev1.LabelTopologyZone), single(c, instancetypes.LabelCapacityType)
			f.cloud.SetCapacity(c.Type, zone, kind, 0)
			return func() { f.cloud.SetCapacity(c.Type, zone, kind, -1) }, nil
		},
		Block: func(context.Context) (func(), error) {
			f.cloud.SetQuota("on-demand", 0)
			f.cloud.SetQuota("spot", 0)
			return func() { f.cloud.SetQuota("on-demand", -1); f.cloud.SetQuota("spot", -1) }, nil
		},
		Interrupt: func(_ context.Context, id string) error {
			f.cloud.InterruptSpot(id[strings.LastIndex(id, "/")+1:])
			return nil
		},
	}
}

func clouds() map[string]awstest.Config {
	return map[string]awstest.Config{
		"plain":    {},
		"paging":   {Page: 5},
		"slow":     {Boot: 40 * time.Second, Shutdown: 30 * time.Second},
		"silent":   {SilentReplays: true, Lag: 5 * time.Second},
		"eventual": {Lag: 20 * time.Second, Shutdown: 30 * time.Second, Boot: 40 * time.Second, Page: 7},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, config := range clouds() {
		if testing.Short() && name != "plain" { // where replies are lost others are tried, too
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, config)
				require.NoError(t, f.harness(f.provider(t)).Check(t.Context()))
			})
		})
	}
}

// A provider that may have a history waits before it buys, and passes as well.
func TestConformanceWithHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{Lag: 10 * time.Second})
		p := f.provider(t, func(o *aws.Options) { o.Undecided = nil })
		time.Sleep(31 * time.Second)
		require.NoError(t, f.harness(p).Check(t.Context()))
	})
}

// notes are those of a provider without the one about types that make no sense, which EC2 always has some of.
func notes(p *aws.Provider) []string {
	return slices.DeleteFunc(p.Notes(), func(note string) bool { return strings.HasPrefix(note, "invalid descriptions of instance types") })
}

// exampleContext is the context of Examples, which have no test to take it from.
func exampleContext() context.Context { return context.Background() } //nolint:forbidigo // see above

func candidatesFor(types []instancetypes.InstanceType, match string) []cloudprovider.Candidate {
	return cloudprovider.CandidatesOf(types, requirements.MustParse(match), nil, requirements.Keys{})
}
