package aws_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

// Machines have enclaves if their claim requests one, also after a restart; and types that cannot have them are refused beforehand.
func TestEnclaves(t *testing.T) {
	const sandbox = corev1.ResourceName("eks.amazonaws.com/nitro-sandbox")
	const able = "karpenter.sh/capacity-type in (on-demand), node.kubernetes.io/instance-type in (m5.xlarge)"
	f := newFixture(t, awstest.Config{})
	p := f.provider(t)
	with, without := f.ask(t, p, "with", able), f.ask(t, p, "without", able)
	with.Requests = corev1.ResourceList{sandbox: resource.MustParse("1")}
	for _, r := range p.CreateMany(t.Context(), []cloudprovider.NodeClaim{with, without}) {
		require.NoError(t, r.Err)
		q, ok := r.Launch.Capacity[sandbox]
		assert.Equal(t, r.Launch.Claim == "with", ok, "%v", q)
	}
	f.clock.Advance(time.Minute)
	list, err := f.provider(t, func(o *aws.Options) { o.NoHistory = false }).List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	for _, i := range list {
		_, ok := i.Capacity[sandbox]
		assert.Equal(t, i.Claim == "with", ok)
	}
	unable := f.ask(t, p, "unable", onDemand)
	unable.Requests = with.Requests
	_, err = p.Create(t.Context(), unable)
	require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
	require.ErrorContains(t, err, `"m5.large" has no Nitro enclaves`)
}
