package aws_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

func failing(action, code, message string) func(awstest.Call) awstest.Fault {
	return func(c awstest.Call) awstest.Fault {
		if c.Action != action {
			return awstest.Fault{}
		}
		return awstest.Fault{Code: code, Message: message}
	}
}

func known(t *testing.T, err error) *cloudprovider.Error {
	t.Helper()
	var e *cloudprovider.Error
	require.ErrorAs(t, err, &e)
	return e
}

// A fresh profile is not known everywhere: the entries of the fleet say so, no offering is blamed, and asking again succeeds once it is.
func TestFreshProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{ProfileLag: 12 * time.Second})
		p := f.provider(t)
		claim := f.ask(t, p, "a", "node.kubernetes.io/instance-type in (m5.large, c5.large)")
		f.cloud.RefuseOffering("m5.large", "us-east-1a", "on-demand", "UnfulfillableCapacity", "as in #3051, beside the other")
		var tries int
		for {
			tries++
			launch, err := p.Create(t.Context(), claim)
			if err == nil {
				assert.Equal(t, "a", launch.Claim)
				break
			}
			require.ErrorIs(t, err, cloudprovider.ErrNotReady)
			e := known(t, err)
			require.Positive(t, e.RetryAfter)
			for _, r := range e.Refused {
				assert.Equal(t, "m5.large", r.Type, "nothing else was refused")
			}
			require.Less(t, tries, 10)
			time.Sleep(e.RetryAfter)
		}
		assert.Greater(t, tries, 1)
		require.Len(t, f.cloud.Truth(), 1)
		// It is deleted: it is missed by the fleet, looked up anew, and made again.
		f.cloud.RemoveProfile(f.cloud.Profiles()[0])
		claim.Name, claim.Token = "b", "b-token"
		_, err := p.Create(t.Context(), claim)
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
		_, err = p.Create(t.Context(), claim)
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
		time.Sleep(12 * time.Second)
		_, err = p.Create(t.Context(), claim)
		require.NoError(t, err)
	})
}

// A launch template that is gone is made again, also where the fleet's entries say so instead of the call.
func TestMissingTemplateAsAnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		claim := f.ask(t, p, "a", onDemand)
		f.cloud.SetFault(func(c awstest.Call) awstest.Fault {
			if c.Action == "CreateFleet" && c.N == 1 {
				return awstest.Fault{Entry: "InvalidLaunchTemplateName.NotFoundException", Message: "The specified launch template, with template name x, does not exist."}
			}
			return awstest.Fault{}
		})
		_, err := p.Create(t.Context(), claim)
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
		_, err = p.Create(t.Context(), claim)
		require.NoError(t, err)
		assert.Equal(t, 2, f.cloud.Calls("EC2.CreateLaunchTemplate"))
	})
}

// Each quota is named by its code, also where the whole call fails with it, and what it does not block is still tried.
func TestQuotasByCode(t *testing.T) {
	for code, want := range map[string]string{
		"VcpuLimitExceeded": "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", "VolumeLimitExceeded": "EBS storage", "MaxFleetCountExceeded": "EC2 Fleets",
		"MaxIOPSLimitExceeded": "EBS provisioned IOPS", "MaxTemplateLimitExceeded": "launch templates",
	} {
		for _, whole := range []bool{true, false} {
			if !whole && code == "MaxTemplateLimitExceeded" {
				continue // fleets make no templates
			}
			t.Run(fmt.Sprint(code, " whole call: ", whole), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, awstest.Config{})
					p := f.provider(t)
					claim := f.ask(t, p, "a", onDemand)
					switch {
					case code == "MaxTemplateLimitExceeded":
						f.cloud.SetFault(failing("CreateLaunchTemplate", code, "no more"))
					case whole:
						f.cloud.SetFault(failing("CreateFleet", code, "no more"))
					default:
						for _, zone := range f.cloud.Zones() {
							f.cloud.RefuseOffering("m5.large", zone, "on-demand", code, "no more")
						}
					}
					_, err := p.Create(t.Context(), claim)
					require.ErrorIs(t, err, cloudprovider.ErrQuota)
					quotas := known(t, err).Quotas
					require.Len(t, quotas, 1)
					assert.Equal(t, want, quotas[0].Name)
					assert.Equal(t, code != "VcpuLimitExceeded", quotas[0].Blocks.IsAnything())
				})
			})
		}
	}
}

// A call that fails for capacity is a refusal of all that it asked for, and the next capacity type is tried.
func TestWholeCallRefusals(t *testing.T) {
	for _, code := range []string{"InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "UnfulfillableCapacity"} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{})
				p := f.provider(t)
				claim := f.ask(t, p, "a", "karpenter.sh/capacity-type in (spot, on-demand), node.kubernetes.io/instance-type in (m5.large)")
				first := true
				f.cloud.SetFault(func(c awstest.Call) awstest.Fault {
					if c.Action != "CreateFleet" || !first {
						return awstest.Fault{}
					}
					first = false
					return awstest.Fault{Code: code, Message: "not today"}
				})
				launch, err := p.Create(t.Context(), claim)
				require.NoError(t, err)
				assert.Equal(t, "on-demand", launch.Labels["karpenter.sh/capacity-type"])
				if code == "MaxSpotInstanceCountExceeded" {
					assert.Len(t, launch.Quotas, 1)
				} else {
					assert.Len(t, launch.Refused, 3, "one in each zone")
				}
			})
		})
	}
}

// One machine that may not be ended fails alone, however many are ended with it.
func TestUndeletableMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		var claims []cloudprovider.NodeClaim
		for i := range 40 {
			claims = append(claims, f.ask(t, p, fmt.Sprint("web-", i), "karpenter.sh/capacity-type in (on-demand), topology.kubernetes.io/zone in (us-east-1a)"))
		}
		var ids []string
		for _, r := range p.CreateMany(t.Context(), claims) {
			require.NoError(t, r.Err)
			ids = append(ids, r.Launch.ID)
		}
		protect := func(on bool) {
			_, err := p.Clients().EC2.ModifyInstanceAttribute(t.Context(), &ec2.ModifyInstanceAttributeInput{InstanceId: sdk.String(ec2ID(ids[17])), DisableApiTermination: &types.AttributeBooleanValue{Value: sdk.Bool(on)}})
			require.NoError(t, err)
		}
		protect(true)
		errs := make(chan error, len(ids))
		for _, id := range ids {
			go func() { errs <- p.Delete(t.Context(), id) }()
		}
		failed := 0
		for range ids {
			if err := <-errs; err != nil {
				failed++
				require.ErrorIs(t, err, cloudprovider.ErrUnauthorized)
				require.ErrorContains(t, err, "termination protection")
			}
		}
		assert.Equal(t, 1, failed)
		assert.Len(t, f.cloud.Truth(), 1)
		assert.Less(t, f.cloud.Calls("EC2.TerminateInstances"), 20)
		protect(false)
		require.NoError(t, p.Delete(t.Context(), ids[17]))
	})
}

// The first call by a clock that is wrong is repeated with the service's time.
func TestSkewedClocks(t *testing.T) {
	for _, skew := range []time.Duration{-20 * time.Minute, 20 * time.Minute, 30 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{})
				f.cloud.SetSkew(skew)
				p := f.provider(t) // finds its queue
				_, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
				require.NoError(t, err)
				f.cloud.SetSkew(0) // the clock is right again
				_, err = p.List(t.Context())
				require.NoError(t, err)
			})
		})
	}
}

// Reading changes nothing, whatever was lost before, whoever launched it, and however often it is read: answers, seals, and the ends of machines without an
// owner are written by Create and Maintain alone.
func TestReadingNeverWrites(t *testing.T) {
	for _, fault := range []awstest.Fault{{}, {Lost: true}, {Dropped: true}} {
		for _, claims := range []int{0, 1, 4} {
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprintf("%+v %d %v", fault, claims, restart), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := newFixture(t, awstest.Config{Lag: 5 * time.Second})
						p := f.provider(t, func(o *aws.Options) { o.Undecided = nil })
						time.Sleep(time.Minute)
						list := make([]cloudprovider.NodeClaim, claims)
						for i := range list {
							list[i] = f.ask(t, p, string(rune('a'+i)), onDemand)
						}
						f.cloud.SetSurplus(2)
						f.cloud.SetFault(func(c awstest.Call) awstest.Fault {
							if c.Action == "CreateFleet" && !fault.Dropped || c.Action == "TerminateInstances" || c.Action == "CreateTags" {
								return fault
							}
							return awstest.Fault{}
						})
						p.CreateMany(t.Context(), list)
						f.cloud.SetFault(nil)
						if restart {
							p = f.provider(t, func(o *aws.Options) { o.Undecided = nil })
						}
						before := f.cloud.CallsByAction()
						for range 4 {
							_, err := p.InstanceTypes(t.Context(), pool())
							require.NoError(t, err)
							all, err := p.List(t.Context())
							require.NoError(t, err)
							for _, i := range all {
								_, err := p.Get(t.Context(), i.ID)
								require.NoError(t, err)
								_, err = p.Drifted(t.Context(), i.ID)
								require.NoError(t, err)
							}
							time.Sleep(time.Minute)
						}
						for action, n := range f.cloud.CallsByAction() {
							if n > before[action] {
								assert.Regexp(t, `\.(Get|Describe)`, action)
							}
						}
					})
				})
			}
		}
	}
}

// A machine without an owner is ended by the second reading that shows it so, a lag after the first, and not at all if it has an owner by then.
func TestTwoReadingsBeforeAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		f.cloud.SetSurplus(2)
		f.cloud.SetFault(func(c awstest.Call) awstest.Fault { return awstest.Fault{Dropped: c.Action == "TerminateInstances"} })
		launch, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
		require.NoError(t, err)
		f.cloud.SetFault(nil)
		maintain := func() {
			_, err := p.Maintain(t.Context(), time.Hour)
			require.NoError(t, err)
		}
		time.Sleep(time.Minute)
		maintain()
		time.Sleep(10 * time.Second) // the lag is 30
		maintain()
		require.Len(t, f.cloud.Truth(), 3)
		var owned, surplus string // one loses its tags and gets them back
		for _, m := range f.cloud.Truth() {
			if m.ID != ec2ID(launch.ID) {
				owned, surplus = surplus, m.ID
			}
		}
		f.cloud.Retag(owned, map[string]string{aws.ClusterTag: "", "joinery/cluster": ""})
		maintain()
		time.Sleep(time.Minute)
		maintain()
		left := map[string]bool{}
		for _, m := range f.cloud.Truth() {
			left[m.ID] = true
		}
		assert.Equal(t, map[string]bool{ec2ID(launch.ID): true, owned: true}, left, "%s had no owner in two readings", surplus)
	})
}
