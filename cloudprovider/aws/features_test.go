package aws_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Machines get the names of their node and claim as tags, once, and keep a name that they have.
func TestNamesAsTags(t *testing.T) {
	f := newFixture(t, awstest.Config{})
	p := f.provider(t)
	register := func(p *aws.Provider, id, name string) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}, Status: corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("7800000Ki")}}}
		require.NoError(t, p.Registered(t.Context(), id, node))
	}
	for i, r := range p.CreateMany(t.Context(), []cloudprovider.NodeClaim{f.ask(t, p, "web-1", onDemand), f.ask(t, p, "web-2", onDemand)}) {
		require.NoError(t, r.Err)
		register(p, r.Launch.ID, []string{"ip-10-0-0-1.ec2.internal", "ip-10-0-0-2.ec2.internal"}[i])
	}
	names := map[string]string{}
	for _, m := range f.cloud.Truth() {
		names[m.Tags["karpenter.sh/nodeclaim"]] = m.Tags["Name"]
	}
	assert.Equal(t, map[string]string{"web-1": "ip-10-0-0-1.ec2.internal", "web-2": "ip-10-0-0-2.ec2.internal"}, names)
	calls := f.cloud.Calls("EC2.CreateTags")
	list, err := p.List(t.Context())
	require.NoError(t, err)
	register(p, list[0].ID, "other")
	assert.Equal(t, calls, f.cloud.Calls("EC2.CreateTags"), "nothing is written twice")

	named := class()
	named.Tags = map[string]string{"Name": "shop"}
	p = f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{named} })
	launch, err := p.Create(t.Context(), f.ask(t, p, "web-3", onDemand))
	require.NoError(t, err)
	register(p, launch.ID, "ip-10-0-0-3.ec2.internal")
	for _, m := range f.cloud.Truth() {
		if m.Tags["karpenter.sh/nodeclaim"] == "web-3" {
			assert.Equal(t, "shop", m.Tags["Name"])
		}
	}
}
