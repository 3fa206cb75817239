package aws_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/events"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
)

// Machines have enclaves if their claim requests one, also after a restart; and types that cannot have them are refused beforehand.
func TestEnclaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		time.Sleep(time.Minute)
		list, err := f.provider(t, func(o *aws.Options) { o.Undecided = nil }).List(t.Context())
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
	})
}

// Machines get the names of their node and claim as tags, once, and keep a name that they have.
func TestNamesAsTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
			names[m.Tags["joinery/claim"]] = m.Tags["Name"]
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
			if m.Tags["joinery/claim"] == "web-3" {
				assert.Equal(t, "shop", m.Tags["Name"])
			}
		}
	})
}

func ec2ID(id string) string { return id[strings.LastIndex(id, "/")+1:] }

// told reads the interruptions, by instance and kind, and confirms nothing.
func told(t *testing.T, p *aws.Provider, cursor string) (map[string]interruption.Kind, string) {
	t.Helper()
	list, next, err := p.Interruptions(t.Context(), cursor)
	require.NoError(t, err)
	out := map[string]interruption.Kind{}
	for _, e := range list {
		out[e.Instance] = e.Kind
	}
	return out, next
}

// A spot warning is told whatever else fails: status checks, reservations, the look-up of machines that nobody knows, the deletion of messages.
func TestSpotWarningsComeWhateverFails(t *testing.T) {
	for _, action := range []string{"DescribeInstanceStatus", "DescribeCapacityReservations", "DescribeInstances", "DeleteMessageBatch"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, awstest.Config{})
			f.cloud.Put(awstest.Reservation{ID: "cr-1", Type: "m5.large", Zone: "us-east-1a", Count: 2, Tags: map[string]string{"cluster": "harbour"}})
			c := class()
			c.CapacityReservations = byTag("cluster", "harbour")
			p := f.provider(t, func(o *aws.Options) { o.Classes, o.StatusChecks = aws.FixedClasses{c}, true })
			_, err := p.Create(t.Context(), f.ask(t, p, "a", "karpenter.sh/capacity-type in (reserved)"))
			require.NoError(t, err)
			spot, err := p.Create(t.Context(), f.ask(t, p, "b", "karpenter.sh/capacity-type in (spot)"))
			require.NoError(t, err)
			time.Sleep(5 * time.Minute)
			f.cloud.InterruptSpot("i-of-others")
			f.cloud.InterruptSpot(ec2ID(spot.ID))
			f.cloud.SetFault(func(call awstest.Call) awstest.Fault {
				if call.Action == action {
					return awstest.Fault{Code: "UnauthorizedOperation", Message: "no"}
				}
				return awstest.Fault{}
			})
			have, cursor := told(t, p, "")
			assert.Equal(t, map[string]interruption.Kind{spot.ID: interruption.SpotInterrupted}, have, action)
			assert.Contains(t, strings.Join(p.Notes(), "\n"), "some sources of interruptions could not be read", action)
			f.cloud.SetFault(nil)
			have, cursor = told(t, p, cursor)
			assert.Empty(t, have)
			time.Sleep(6 * time.Minute)
			_, _ = told(t, p, cursor)
			assert.Zero(t, f.cloud.Queued(), action)
		})
	}
}

// Whose machines the messages of a queue are about costs no call for our own, and one for all others.
func TestMessagesOfOthersCostOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		spot, err := p.Create(t.Context(), f.ask(t, p, "a", "karpenter.sh/capacity-type in (spot)"))
		require.NoError(t, err)
		time.Sleep(5 * time.Minute)
		for _, others := range []int{0, 9} {
			for i := range others {
				f.cloud.InterruptSpot(fmt.Sprint("i-of-others-", i))
			}
			f.cloud.InterruptSpot(ec2ID(spot.ID))
			calls := f.cloud.Calls("EC2.DescribeInstances")
			have, _ := told(t, p, "")
			assert.Equal(t, map[string]interruption.Kind{spot.ID: interruption.SpotInterrupted}, have)
			assert.Equal(t, min(others, 1), f.cloud.Calls("EC2.DescribeInstances")-calls, "%d of others", others)
		}
	})
}

// Checks that fail for two minutes, and what EC2 has scheduled, come as events beside those of the queue, with one cursor, also for machines that an
// earlier process launched.
func TestStatusChecks(t *testing.T) {
	for name, queue := range map[string]string{"with a queue": "harbour", "without a queue": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{})
				watched := func(o *aws.Options) { o.StatusChecks, o.Queue, o.Undecided = true, queue, nil }
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
				time.Sleep(90 * time.Second)
				have, cursor = told(t, p, cursor)
				require.Empty(t, have, "it may mend itself")
				time.Sleep(time.Minute)
				f.cloud.Schedule(ec2ID(ids[1]), "instance-retirement", "The instance is running on degraded hardware", time.Now().Add(48*time.Hour))
				f.cloud.Schedule(ec2ID(ids[2]), "system-reboot", "[Completed] scheduled reboot", time.Now())
				want := map[string]interruption.Kind{ids[0]: interruption.InstanceImpaired, ids[1]: interruption.MaintenanceScheduled}
				if queue != "" {
					f.cloud.InterruptSpot(ec2ID(ids[3]))
					want[ids[3]] = interruption.SpotInterrupted
				}
				have, _ = told(t, p, cursor)
				require.Equal(t, want, have)
				have, cursor = told(t, p, cursor)
				require.Equal(t, want, have, "they are not confirmed")
				assert.Equal(t, interruption.Force, have[ids[0]].Respond())
				have, cursor = told(t, p, cursor)
				require.Empty(t, have)
				time.Sleep(2 * time.Minute)
				have, _ = told(t, p, cursor)
				require.Empty(t, have, "it lasts, and is confirmed")
				// The cursor of an earlier provider confirms nothing.
				other := f.provider(t, watched)
				_, _ = told(t, other, cursor)
				have, _ = told(t, other, cursor)
				assert.Equal(t, interruption.InstanceImpaired, have[ids[0]])
				f.cloud.Mend(ec2ID(ids[0]))
				time.Sleep(2 * time.Minute)
				f.cloud.FailCheck(ec2ID(ids[0]), "instance")
				_, cursor = told(t, p, cursor)
				time.Sleep(3 * time.Minute)
				have, _ = told(t, p, cursor)
				assert.Equal(t, map[string]interruption.Kind{ids[0]: interruption.InstanceImpaired}, have, "another failure is another event")
				for _, bad := range []string{"x", "n1-x", "n1-", "n1--1x"} {
					_, _, err := p.Interruptions(t.Context(), bad)
					require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec, bad)
				}
			})
		})
	}
	f := newFixture(t, awstest.Config{})
	_, _, err := f.provider(t, func(o *aws.Options) { o.Queue = "" }).Interruptions(t.Context(), "")
	require.ErrorIs(t, err, cloudprovider.ErrUnsupported)
}

// Machines of a capacity block are announced ten minutes before EC2 begins to end them; those of other reservations are not.
func TestEndOfABlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		end := time.Now().UTC().Add(3 * time.Hour)
		f.cloud.Put(
			awstest.Reservation{ID: "cr-block", Type: "m5.large", Zone: "us-east-1a", Count: 2, Block: true, End: end, Tags: map[string]string{"cluster": "harbour"}},
			awstest.Reservation{ID: "cr-open", Type: "c5.large", Zone: "us-east-1a", Count: 2, End: end, Tags: map[string]string{"cluster": "harbour"}},
		)
		c := class()
		c.CapacityReservations = byTag("cluster", "harbour")
		p := f.provider(t, func(o *aws.Options) { o.Classes, o.StatusChecks, o.Queue = aws.FixedClasses{c}, true, "" })
		block, err := p.Create(t.Context(), f.ask(t, p, "a", "karpenter.sh/capacity-type in (reserved), node.kubernetes.io/instance-type in (m5.large)"))
		require.NoError(t, err)
		_, err = p.Create(t.Context(), f.ask(t, p, "b", "karpenter.sh/capacity-type in (reserved), node.kubernetes.io/instance-type in (c5.large)"))
		require.NoError(t, err)
		time.Sleep(time.Until(end.Add(-events.BlockNotice - time.Minute)))
		have, cursor := told(t, p, "")
		require.Empty(t, have)
		time.Sleep(time.Minute)
		list, _, err := p.Interruptions(t.Context(), cursor)
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, block.ID, list[0].Instance)
		assert.Equal(t, interruption.ReservationInterrupted, list[0].Kind)
		assert.Equal(t, end.Add(-30*time.Minute), list[0].Deadline)
		assert.Equal(t, interruption.Drain, list[0].Kind.Respond())
	})
}

// A class that names a launch template of others is refused, whose content decided everything about its machines.
func TestForeignTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		c := &classes{nodeclass.NodeClass{Kind: "AWSNodeTemplate", APIVersion: "karpenter.k8s.aws/v1alpha1", Name: "default", Family: ec2.AL2, LaunchTemplate: "ours", Subnets: byTag("cluster", "harbour")}}
		p := f.provider(t, func(o *aws.Options) { o.Classes = c })
		_, err := p.InstanceTypes(t.Context(), pool())
		require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
		require.ErrorContains(t, err, `launchTemplate "ours"`)
	})
}

// tokensOf collects the client tokens of fleets.
type tokensOf struct {
	next   http.RoundTripper
	tokens map[string]bool
}

func (f tokensOf) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return f.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if form, _ := url.ParseQuery(string(body)); form.Get("Action") == "CreateFleet" {
		f.tokens[form.Get("ClientToken")] = true
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return f.next.RoundTrip(r)
}

// Dry runs tell beforehand what the caller may not do, all at once, and change nothing.
func TestPermitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		claim := f.ask(t, p, "a", onDemand)
		require.NoError(t, p.Permitted(t.Context(), claim))
		tokens := map[string]bool{}
		listening := f.provider(t, func(o *aws.Options) { o.HTTPClient = &http.Client{Transport: tokensOf{o.HTTPClient.Transport, tokens}} })
		for range 3 {
			require.NoError(t, listening.Permitted(t.Context(), claim))
		}
		require.Len(t, tokens, 3, "EC2 may remember the token of a dry run with what it was for")
		f.cloud.SetFault(func(c awstest.Call) awstest.Fault {
			switch c.Action {
			case "RunInstances":
				return awstest.Fault{Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation. User: me is not authorized to perform: iam:PassRole on resource: node"}
			case "CreateLaunchTemplate", "CreateFleet":
				return awstest.Fault{Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation."}
			default:
				return awstest.Fault{}
			}
		})
		err := p.Permitted(t.Context(), claim)
		require.ErrorIs(t, err, cloudprovider.ErrUnauthorized)
		for _, want := range []string{"allow iam:PassRole", "allow ec2:CreateLaunchTemplate", "allow ec2:CreateFleet"} {
			require.ErrorContains(t, err, want)
		}
		f.cloud.SetFault(nil)
		assert.Empty(t, f.cloud.Truth())
		assert.Empty(t, f.cloud.Templates())
		_, err = p.Create(t.Context(), claim)
		require.NoError(t, err)
		require.NoError(t, p.Permitted(t.Context(), claim), "also where the templates exist")
		_, err = f.provider(t, func(o *aws.Options) { o.DryRun = true }).InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		claim.Candidates = nil
		require.ErrorIs(t, p.Permitted(t.Context(), claim), cloudprovider.ErrInvalidSpec)
	})
}

// A zone that traffic was shifted away from is left alone: nothing is launched there, and its machines are neither read, tagged nor ended, but known.
func TestZonalShift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t, func(o *aws.Options) { o.ZonalShift = true })
		in := func(zone string) string { return onDemand + ", topology.kubernetes.io/zone in (" + zone + ")" }
		stays, goes := f.ask(t, p, "stays", in("us-east-1a")), f.ask(t, p, "goes", in("us-east-1b"))
		first, err := p.Create(t.Context(), stays)
		require.NoError(t, err)
		second, err := p.Create(t.Context(), goes)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		_, err = p.List(t.Context())
		require.NoError(t, err)

		f.cloud.ShiftAway("us-east-1a")
		time.Sleep(time.Minute)
		types, err := p.InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		for _, it := range types {
			for _, o := range it.Offerings {
				zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
				if zone == "us-east-1a" {
					assert.False(t, o.Available, it.Name)
				}
			}
		}
		wanted := stays.Clone()
		wanted.Name, wanted.Token = "more", "more-token"
		_, err = p.Create(t.Context(), wanted)
		require.ErrorIs(t, err, cloudprovider.ErrInsufficientCapacity)
		known, _ := errors.AsType[*cloudprovider.Error](err)
		require.NotEmpty(t, known.Refused)
		assert.Equal(t, "the zone is shifted away", known.Refused[0].Detail)

		calls := f.cloud.CallsByAction()
		got, err := p.Get(t.Context(), first.ID)
		require.NoError(t, err)
		assert.Equal(t, first.ID, got.ID)
		require.ErrorIs(t, p.Delete(t.Context(), first.ID), cloudprovider.ErrNotReady)
		assert.Equal(t, calls["EC2.DescribeInstances"], f.cloud.Calls("EC2.DescribeInstances"))
		assert.Equal(t, calls["EC2.TerminateInstances"], f.cloud.Calls("EC2.TerminateInstances"))
		f.cloud.End(ec2ID(first.ID), "Unlisted.ZoneDown", "Unlisted.ZoneDown: no one can tell")
		list, err := p.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 2, "what cannot be read has not vanished")
		require.NoError(t, p.Delete(t.Context(), second.ID))

		f.cloud.ShiftAway()
		time.Sleep(2 * time.Minute)
		list, err = p.List(t.Context())
		require.NoError(t, err)
		assert.Empty(t, list)
		require.ErrorIs(t, p.Delete(t.Context(), first.ID), cloudprovider.ErrNotFound)

		// Where ARC cannot be read, all zones are used, and a note says so.
		f.cloud.SetFault(func(c awstest.Call) awstest.Fault {
			if c.Action == "GetManagedResource" {
				return awstest.Fault{Code: "AccessDeniedException", Message: "no"}
			}
			return awstest.Fault{}
		})
		time.Sleep(2 * time.Minute)
		wanted.Name, wanted.Token = "late", "late-token"
		_, err = p.Create(t.Context(), wanted)
		require.NoError(t, err)
		require.Len(t, notes(p), 1)
		assert.Contains(t, notes(p)[0], "allow arc-zonal-shift:GetManagedResource")
	})
}

// Prices that the caller knows better hold for the choice of types, and fleets go by them.
func TestAdjust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, strategy := range map[string]string{"on-demand": "prioritized", "spot": "capacity-optimized-prioritized"} {
			f := newFixture(t, awstest.Config{})
			p := f.provider(t, func(o *aws.Options) {
				o.Adjust = func(pool string, types []instancetypes.InstanceType) []instancetypes.InstanceType {
					if pool == "other" {
						return types
					}
					return instancetypes.Reprice(types, cheap("r5.large"))
				}
			})
			claim := f.ask(t, p, "a", "karpenter.sh/capacity-type in ("+kind+"), node.kubernetes.io/instance-type in (m5.large, r5.large)")
			assert.Equal(t, "r5.large", claim.Candidates[0].Type)
			launch, err := p.Create(t.Context(), claim)
			require.NoError(t, err)
			assert.Equal(t, "r5.large", launch.Type)
			for _, fields := range f.cloud.Fleets() {
				assert.Equal(t, strategy, fields[map[string]string{"on-demand": "OnDemandOptions", "spot": "SpotOptions"}[kind]+".AllocationStrategy"])
			}
			other := pool()
			other.Name = "other"
			unchanged, err := p.InstanceTypes(t.Context(), other)
			require.NoError(t, err)
			for _, it := range unchanged {
				price, ok := it.LeastPrice(requirements.Set{})
				assert.False(t, ok && price == 0.001, "another pool has prices of its own")
			}
		}
	})
}

// cheap makes a type cost next to nothing.
type cheap string

func (c cheap) Quotes(q instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
	if q.Type.Name == string(c) {
		return []instancetypes.Quote{{Price: 0.001}}
	}
	return below
}
