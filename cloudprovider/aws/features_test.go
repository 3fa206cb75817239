package aws_test

import (
	"strings"
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
	"github.com/joinery-sdk/joinery/cloudprovider/aws/status"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
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

func ec2ID(id string) string { return id[strings.LastIndex(id, "/")+1:] }

// told reads the interruptions, by instance and kind, and confirms nothing.
func told(t *testing.T, p *aws.Provider, cursor string) (map[string]interruption.Kind, string) {
	t.Helper()
	events, next, err := p.Interruptions(t.Context(), cursor)
	require.NoError(t, err)
	out := map[string]interruption.Kind{}
	for _, e := range events {
		out[e.Instance] = e.Kind
	}
	return out, next
}

// Checks that fail for two minutes, and what EC2 has scheduled, come as events beside those of the queue, with one cursor, also for machines that an
// earlier process launched.
func TestStatusChecks(t *testing.T) {
	for name, queue := range map[string]string{"with a queue": "harbour", "without a queue": ""} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, awstest.Config{})
			watched := func(o *aws.Options) { o.StatusChecks, o.Queue, o.NoHistory = true, queue, false }
			p := f.provider(t)
			var ids []string
			for _, name := range []string{"a", "b", "c", "d"} {
				launch, err := p.Create(t.Context(), f.ask(t, p, name, onDemand))
				require.NoError(t, err)
				ids = append(ids, launch.ID)
			}
			p = f.provider(t, watched)
			have, cursor := told(t, p, "")
			require.Empty(t, have)
			f.cloud.FailCheck(ec2ID(ids[0]), "system")
			f.clock.Advance(90 * time.Second)
			have, cursor = told(t, p, cursor)
			require.Empty(t, have, "it may mend itself")
			f.clock.Advance(time.Minute)
			f.cloud.Schedule(ec2ID(ids[1]), "instance-retirement", "The instance is running on degraded hardware", f.clock.Now().Add(48*time.Hour))
			f.cloud.Schedule(ec2ID(ids[2]), "system-reboot", "[Completed] scheduled reboot", f.clock.Now())
			want := map[string]interruption.Kind{ids[0]: interruption.InstanceImpaired, ids[1]: interruption.MaintenanceScheduled}
			if queue != "" {
				f.cloud.InterruptSpot(ec2ID(ids[3]))
				want[ids[3]] = interruption.SpotInterrupted
			}
			have, _ = told(t, p, cursor)
			require.Equal(t, want, have)
			have, cursor = told(t, p, cursor)
			require.Equal(t, want, have, "nobody has confirmed them")
			assert.Equal(t, interruption.Force, have[ids[0]].Respond())
			have, cursor = told(t, p, cursor)
			require.Empty(t, have)
			f.clock.Advance(2 * time.Minute)
			have, _ = told(t, p, cursor)
			require.Empty(t, have, "it lasts, and is confirmed")
			// The cursor of an earlier provider confirms nothing.
			have, _ = told(t, f.provider(t, watched), cursor)
			assert.Equal(t, interruption.InstanceImpaired, have[ids[0]])
			f.cloud.Mend(ec2ID(ids[0]))
			f.clock.Advance(2 * time.Minute)
			f.cloud.FailCheck(ec2ID(ids[0]), "instance")
			_, cursor = told(t, p, cursor)
			f.clock.Advance(3 * time.Minute)
			have, _ = told(t, p, cursor)
			assert.Equal(t, map[string]interruption.Kind{ids[0]: interruption.InstanceImpaired}, have, "another failure is another event")
			for _, bad := range []string{"x", "n1-1", "n1-1+", "n1-1+x", "n1-1+-1", "+1"} {
				_, _, err := p.Interruptions(t.Context(), bad)
				require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec, bad)
			}
		})
	}
	f := newFixture(t, awstest.Config{})
	_, _, err := f.provider(t, func(o *aws.Options) { o.Queue = "" }).Interruptions(t.Context(), "")
	require.ErrorIs(t, err, cloudprovider.ErrUnsupported)
}

// Machines of a capacity block are announced ten minutes before EC2 begins to end them; those of other reservations are not.
func TestEndOfABlock(t *testing.T) {
	f := newFixture(t, awstest.Config{})
	f.cloud.AddReservation("cr-block", "m5.large", "us-east-1a", 2, true, map[string]string{"cluster": "harbour"})
	f.cloud.AddReservation("cr-open", "c5.large", "us-east-1a", 2, false, map[string]string{"cluster": "harbour"})
	end := f.clock.Now().Add(3 * time.Hour)
	f.cloud.SetReservationEnd("cr-block", end)
	f.cloud.SetReservationEnd("cr-open", end)
	c := class()
	c.CapacityReservations = byTag("cluster", "harbour")
	p := f.provider(t, func(o *aws.Options) { o.Classes, o.StatusChecks, o.Queue = aws.FixedClasses{c}, true, "" })
	block, err := p.Create(t.Context(), f.ask(t, p, "a", "karpenter.sh/capacity-type in (reserved), node.kubernetes.io/instance-type in (m5.large)"))
	require.NoError(t, err)
	_, err = p.Create(t.Context(), f.ask(t, p, "b", "karpenter.sh/capacity-type in (reserved), node.kubernetes.io/instance-type in (c5.large)"))
	require.NoError(t, err)
	f.clock.Advance(end.Add(-status.BlockNotice - time.Minute).Sub(f.clock.Now()))
	have, cursor := told(t, p, "")
	require.Empty(t, have)
	f.clock.Advance(time.Minute)
	events, _, err := p.Interruptions(t.Context(), cursor)
	require.NoError(t, err)
	require.Len(t, events, 1)
	assert.Equal(t, block.ID, events[0].Instance)
	assert.Equal(t, interruption.ReservationInterrupted, events[0].Kind)
	assert.Equal(t, end.Add(-30*time.Minute), events[0].Deadline)
	assert.Equal(t, interruption.Drain, events[0].Kind.Respond())
}
