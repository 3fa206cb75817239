package aws_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
)

// Machines that the first version launched, by the tags that it wrote, are known, do not drift, are answered for by their tokens, and end.
func TestMachinesOfTheFirstVersion(t *testing.T) {
	text, err := os.ReadFile("testdata/machines-1.json")
	require.NoError(t, err)
	var machines []awstest.Machine
	require.NoError(t, json.Unmarshal(text, &machines))
	synctest.Test(t, func(t *testing.T) {
		// The ids that the zones had in the account in which the machines were launched.
		f := newFixture(t, awstest.Config{ZoneIDs: map[string]string{"us-east-1a": "use1-az2", "us-east-1b": "use1-az4", "us-east-1c": "use1-az6"}})
		for _, m := range machines {
			f.cloud.Adopt(m)
		}
		p := f.provider(t, func(o *aws.Options) { o.Undecided = nil })
		time.Sleep(time.Hour)
		for _, name := range []string{"alone", "web-1", "web-2", "web-3"} {
			claim := f.ask(t, p, name, onDemand)
			launch, err := p.Create(t.Context(), claim)
			require.NoError(t, err)
			assert.Equal(t, name, launch.Claim)
			drift, err := p.Drifted(t.Context(), launch.ID)
			require.NoError(t, err)
			assert.Empty(t, drift.Reason, drift.Detail)
		}
		assert.Zero(t, f.cloud.Calls("EC2.CreateFleet"), "they are the machines of these tokens")
		_, err = p.Create(t.Context(), f.ask(t, p, "new", onDemand))
		require.NoError(t, err)
		list, err := p.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 5)
		for _, i := range list {
			require.NoError(t, p.Delete(t.Context(), i.ID))
		}
		assert.Empty(t, f.cloud.Truth())
	})
}

// A record of a version to come is not compared: nothing drifts, and no claim counts as changed.
func TestRecordsOfALaterVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		launch, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
		require.NoError(t, err)
		f.cloud.Retag(ec2ID(launch.ID), laterVersion(t, f.cloud.Truth()[0].Tags))
		changed := class()
		changed.UserData = "#!/bin/sh\ntrue\n"
		next := f.provider(t, func(o *aws.Options) { o.Undecided, o.Classes = nil, aws.FixedClasses{changed} })
		time.Sleep(time.Minute)
		again := f.ask(t, next, "a", onDemand)
		again.Labels = map[string]string{"who": "knows"}
		got, err := next.Create(t.Context(), again)
		require.NoError(t, err)
		assert.Equal(t, launch.ID, got.ID)
		drift, err := next.Drifted(t.Context(), launch.ID)
		require.NoError(t, err)
		assert.Empty(t, drift.Reason)
	})
}

// A machine whose record was spoiled or taken off is known by what others of its fleet carry; alone, it is left alone and named, and nothing else
// stops because of it.
func TestSpoiledTags(t *testing.T) {
	for name, spoil := range map[string]map[string]string{
		"unreadable":       {"joinery/claims-00": "no record"},
		"batch taken off":  {"joinery/batch": ""},
		"record taken off": {"joinery/batch": "", "joinery/claims-00": "", "joinery/seal-00": ""},
	} {
		for _, several := range []bool{true, false} {
			t.Run(name+map[bool]string{true: " of several", false: " of one"}[several], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, awstest.Config{})
					p := f.provider(t)
					claims := []cloudprovider.NodeClaim{f.ask(t, p, "a", onDemand), f.ask(t, p, "b", onDemand)}
					var ids []string
					if several {
						for _, r := range p.CreateMany(t.Context(), claims) {
							require.NoError(t, r.Err)
							ids = append(ids, r.Launch.ID)
						}
					} else {
						for _, c := range claims {
							launch, err := p.Create(t.Context(), c)
							require.NoError(t, err)
							ids = append(ids, launch.ID)
						}
					}
					f.cloud.Retag(ec2ID(ids[0]), spoil)
					time.Sleep(time.Minute)
					list, err := p.List(t.Context())
					require.NoError(t, err)
					require.Len(t, list, 2, "it is still known here")

					recovered := several || name == "batch taken off"
					_, err = f.provider(t).Get(t.Context(), ids[0])
					if recovered {
						require.NoError(t, err, "others of the fleet tell, also where it is read alone")
					} else {
						require.ErrorIs(t, err, cloudprovider.ErrNotReady, "it is not gone")
						require.ErrorIs(t, f.provider(t).Delete(t.Context(), ids[0]), cloudprovider.ErrNotReady)
					}

					next := f.provider(t, func(o *aws.Options) { o.Undecided = nil })
					time.Sleep(time.Minute)
					list, err = next.List(t.Context())
					require.NoError(t, err)
					if recovered {
						require.Len(t, list, 2)
						got, err := next.Create(t.Context(), claims[0])
						require.NoError(t, err)
						assert.Equal(t, ids[0], got.ID)
					} else {
						require.Len(t, list, 1)
						assert.Contains(t, strings.Join(next.Notes(), "\n"), ec2ID(ids[0]))
					}
					_, err = next.Create(t.Context(), f.ask(t, next, "c", onDemand))
					require.NoError(t, err, "others are launched all the same")
					assert.Len(t, f.cloud.Truth(), 3)
				})
			})
		}
	}
}

// A machine of a batch whose launcher was stopped before it wrote down whose it is, and that lost the name of the batch, still is one of the claims'.
func TestStrippedBeforeItsSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		claims := []cloudprovider.NodeClaim{f.ask(t, p, "a", onDemand), f.ask(t, p, "b", onDemand)}
		for i, zone := range f.cloud.Zones() {
			f.cloud.SetCapacity("m5.large", zone, "on-demand", 1-min(i, 1)) // one in all
		}
		f.cloud.SetFault(func(c awstest.Call) awstest.Fault { return awstest.Fault{Dropped: c.Action == "CreateTags"} })
		for _, r := range p.CreateMany(t.Context(), claims) {
			require.Error(t, r.Err)
		}
		f.cloud.SetFault(nil)
		require.Len(t, f.cloud.Truth(), 1)
		f.cloud.Retag(f.cloud.Truth()[0].ID, map[string]string{"joinery/batch": ""})
		next := f.provider(t, func(o *aws.Options) { o.Undecided = nil })
		time.Sleep(time.Minute)
		launch, err := next.Create(t.Context(), claims[0])
		require.NoError(t, err)
		assert.Equal(t, f.cloud.Truth()[0].ID, ec2ID(launch.ID))
		assert.Len(t, f.cloud.Truth(), 1)
	})
}

// What is told of a machine whose record was spoiled is dropped, and does not hold back what is told of others.
func TestEventsBesideASpoiledMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		spoiled, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
		require.NoError(t, err)
		sound, err := p.Create(t.Context(), f.ask(t, p, "b", onDemand))
		require.NoError(t, err)
		f.cloud.Retag(ec2ID(spoiled.ID), map[string]string{"joinery/claims-00": "no record"})
		next := f.provider(t, func(o *aws.Options) { o.Undecided = nil })
		f.cloud.InterruptSpot(ec2ID(spoiled.ID))
		f.cloud.InterruptSpot(ec2ID(sound.ID))
		events, _, err := next.Interruptions(t.Context(), "")
		require.NoError(t, err)
		require.Len(t, events, 1)
		assert.Equal(t, sound.ID, events[0].Instance)
		assert.Equal(t, 1, f.cloud.Queued(), "the other message was dropped")
	})
}

// A machine all of whose tags were taken off is named by every Maintain, also once its launch template was collected: its profile tells.
func TestStrippedMachinesStayNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		launch, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
		require.NoError(t, err)
		none := map[string]string{}
		for key := range f.cloud.Truth()[0].Tags {
			if !strings.HasPrefix(key, "aws:") {
				none[key] = ""
			}
		}
		f.cloud.Retag(ec2ID(launch.ID), none)
		time.Sleep(2 * time.Hour)
		next := f.provider(t, func(o *aws.Options) { o.Undecided = nil })
		for range 2 {
			_, err = next.Maintain(t.Context(), time.Hour)
			require.NoError(t, err)
			assert.Empty(t, f.cloud.Templates())
			assert.Contains(t, strings.Join(next.Notes(), "\n"), ec2ID(launch.ID))
			assert.Len(t, f.cloud.Profiles(), 1, "the machine has it")
		}
	})
}

// Karpenter in the same cluster finds none of our machines by its filters; and where ours carry its tags, nothing is launched beside it.
func TestKarpenterInTheSameCluster(t *testing.T) {
	for _, tags := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, awstest.Config{})
			p := f.provider(t, func(o *aws.Options) { o.KarpenterTags = tags })
			launch, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
			require.NoError(t, err)
			have := f.cloud.Truth()[0].Tags
			_, pool := have["karpenter.sh/nodepool"]
			_, nodeClass := have["karpenter.k8s.aws/ec2nodeclass"]
			assert.Equal(t, tags, pool && nodeClass && have["eks:eks-cluster-name"] == "harbour", "what its List asks for")
			for _, l := range f.cloud.Templates() {
				assert.NotContains(t, l.Tags, "eks:eks-cluster-name", "it would delete the template")
			}
			theirs := f.cloud.Truth()[0]
			theirs.ID, theirs.Tags = "i-0karpenter", map[string]string{"eks:eks-cluster-name": "harbour", "karpenter.sh/nodepool": "general", "karpenter.sh/nodeclaim": "general-x"}
			f.cloud.Adopt(theirs)
			list, err := p.List(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Len(t, notes(p), 1)
			assert.Contains(t, notes(p)[0], "i-0karpenter")
			_, err = p.Create(t.Context(), f.ask(t, p, "b", onDemand))
			if tags {
				require.ErrorIs(t, err, cloudprovider.ErrNotReady)
				require.ErrorContains(t, err, "Karpenter")
			} else {
				require.NoError(t, err)
			}
			again, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
			require.NoError(t, err)
			assert.Equal(t, launch.ID, again.ID, "what is known is answered for")
			next := f.provider(t, func(o *aws.Options) { o.KarpenterTags = tags })
			_, err = next.Create(t.Context(), f.ask(t, next, "c", onDemand))
			assert.Equal(t, tags, errors.Is(err, cloudprovider.ErrNotReady), "also before it lists: %v", err)
		})
	}
}

// rivalry is how long a provider stops that has seen another one.
const rivalry = 10 * time.Minute

// Of two providers that launch at the same time the one that notices stops; one that takes over does not stop for what was before it.
func TestTwoProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		leader, standby := f.provider(t), f.provider(t)
		for _, name := range []string{"a", "b"} {
			_, err := leader.Create(t.Context(), f.ask(t, leader, name, onDemand))
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		_, err := standby.List(t.Context())
		require.NoError(t, err)
		_, err = standby.Create(t.Context(), f.ask(t, standby, "c", onDemand))
		require.NoError(t, err, "it has taken over")
		time.Sleep(time.Minute)
		_, err = leader.List(t.Context())
		require.NoError(t, err)
		_, err = leader.Create(t.Context(), f.ask(t, leader, "d", onDemand))
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
		require.ErrorContains(t, err, "another provider")
		assert.Len(t, notes(leader), 1)
		time.Sleep(rivalry) // it does not list, and the other one has stopped
		_, err = leader.Create(t.Context(), f.ask(t, leader, "d", onDemand))
		require.NoError(t, err)

		held := errors.New("held by another one")
		leased := f.provider(t, func(o *aws.Options) { o.Lease = func(context.Context) error { return held } })
		claim := f.ask(t, leased, "e", onDemand)
		_, err = leased.Create(t.Context(), claim)
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
		require.ErrorIs(t, err, held)
		held = nil
		_, err = leased.Create(t.Context(), claim)
		require.NoError(t, err)
	})
}

// Instances are as old as EC2 says.
func TestCreatedIsTheLaunchTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		claim := f.ask(t, p, "a", onDemand)
		f.cloud.SetFault(func(c awstest.Call) awstest.Fault {
			if c.Action == "CreateFleet" {
				return awstest.Fault{Slow: 20 * time.Second}
			}
			return awstest.Fault{}
		})
		launch, err := p.Create(t.Context(), claim)
		require.NoError(t, err)
		for _, p := range []*aws.Provider{p, f.provider(t)} {
			i, err := p.Get(t.Context(), launch.ID)
			require.NoError(t, err)
			assert.True(t, i.Created.Equal(f.cloud.Truth()[0].Launched.Truncate(time.Millisecond)), "%s", i.Created)
		}
	})
}

// A provider that has just started knows at once what shows; only tokens that may have led to what does not show have to wait.
func TestOnlyTheUndecidedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		old := f.ask(t, p, "old", onDemand)
		launch, err := p.Create(t.Context(), old)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		next := f.provider(t, func(o *aws.Options) { o.Undecided = func(token string) bool { return token != "new-token" } })
		got, err := next.Create(t.Context(), old)
		require.NoError(t, err)
		assert.Equal(t, launch.ID, got.ID)
		_, err = next.Create(t.Context(), f.ask(t, next, "new", onDemand))
		require.NoError(t, err)
		open := f.ask(t, next, "open", onDemand)
		_, err = next.Create(t.Context(), open)
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
		assert.Positive(t, known(t, err).RetryAfter)
		time.Sleep(known(t, err).RetryAfter)
		_, err = next.Create(t.Context(), open)
		require.NoError(t, err)
	})
}

// Claims whose pods differ share a fleet if the same offerings will do for them, in whatever order.
func TestClaimsOfOneShapeShareAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		a, b := f.ask(t, p, "a", "karpenter.sh/capacity-type in (on-demand)"), f.ask(t, p, "b", "karpenter.sh/capacity-type in (on-demand)")
		a.Requests, b.Requests = cpus("1"), cpus("2")
		b.Candidates[0], b.Candidates[3] = b.Candidates[3], b.Candidates[0]
		for _, r := range p.CreateMany(t.Context(), []cloudprovider.NodeClaim{a, b}) {
			require.NoError(t, r.Err)
		}
		assert.Equal(t, 1, f.cloud.Calls("EC2.CreateFleet"))
		// Each still is a claim of its own, also for a provider that starts anew.
		next := f.provider(t, func(o *aws.Options) { o.Undecided = nil })
		time.Sleep(time.Minute)
		for _, c := range []cloudprovider.NodeClaim{a, b} {
			for _, p := range []*aws.Provider{p, next} {
				_, err := p.Create(t.Context(), c)
				require.NoError(t, err)
				changed := c.Clone()
				changed.Requests = cpus("3")
				_, err = p.Create(t.Context(), changed)
				require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
			}
		}
	})
}

func cpus(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
}

// laterVersion is the record of a machine as a version to come may write it.
func laterVersion(t *testing.T, tags map[string]string) map[string]string {
	t.Helper()
	b, ours, err := record.Read(tags)
	require.NoError(t, err)
	require.True(t, ours)
	b.Version, b.ClassHash, b.Identity = record.Version+1, "unknown", "unknown"
	out, err := b.Tags()
	require.NoError(t, err)
	return out
}
