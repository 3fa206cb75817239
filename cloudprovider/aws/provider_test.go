package aws_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// ask is a claim for the cheapest offerings that match.
func (f *fixture) ask(t testing.TB, p *aws.Provider, name, match string) cloudprovider.NodeClaim {
	t.Helper()
	types, err := p.InstanceTypes(t.Context(), pool())
	require.NoError(t, err)
	candidates := cloudprovider.CandidatesOf(types, requirements.MustParse(match), nil, requirements.Keys{})
	require.NotEmpty(t, candidates)
	return cloudprovider.NodeClaim{Name: name, Token: name + "-token", Pool: "web", Candidates: candidates}
}

const onDemand = "karpenter.sh/capacity-type in (on-demand), node.kubernetes.io/instance-type in (m5.large)"

// classes can be changed in the middle of a test.
type classes struct{ now nodeclass.NodeClass }

func (c *classes) NodeClass(context.Context, string) (nodeclass.NodeClass, error) { return c.now, nil }

func TestDrift(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *fixture, c *nodeclass.NodeClass)
		want   string
	}{
		"nothing":       {func(*fixture, *nodeclass.NodeClass) {}, ""},
		"tags selected": {func(_ *fixture, c *nodeclass.NodeClass) { c.Subnets = byTag("Name", "private-*") }, ""},
		"static field":  {func(_ *fixture, c *nodeclass.NodeClass) { c.DetailedMonitoring = true }, aws.NodeClassDrift},
		"user data":     {func(_ *fixture, c *nodeclass.NodeClass) { c.UserData = "#!/bin/sh\ntrue\n" }, aws.NodeClassDrift},
		"placement group": {func(f *fixture, c *nodeclass.NodeClass) {
			f.cloud.Put(awstest.PlacementGroup{ID: "pg-1", Name: "racks", Strategy: "cluster"})
			c.PlacementGroup = &nodeclass.PlacementGroup{Name: "racks"}
		}, aws.NodeClassDrift},
		"new image": {func(f *fixture, _ *nodeclass.NodeClass) {
			f.cloud.Put(awstest.Image{ID: "ami-next", Name: "next", Arch: "x86_64", Created: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)})
			f.cloud.SetParameter("/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id", "ami-next")
		}, aws.AMIDrift},
		"another group": {func(f *fixture, _ *nodeclass.NodeClass) {
			f.cloud.Put(awstest.Group{ID: "sg-3", Name: "more", Tags: map[string]string{"cluster": "harbour"}})
		}, aws.SecurityGroupDrift},
		"other subnets": {func(f *fixture, c *nodeclass.NodeClass) {
			f.cloud.Put(awstest.Subnet{ID: "subnet-new", Zone: "us-east-1a", Free: 100, Tags: map[string]string{"tier": "new"}})
			c.Subnets = byTag("tier", "new")
		}, aws.SubnetDrift},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{})
				c := &classes{class()}
				p := f.provider(t, func(o *aws.Options) { o.Classes = c })
				launch, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
				require.NoError(t, err)
				test.change(f, &c.now)
				time.Sleep(6 * time.Minute)
				drift, err := p.Drifted(t.Context(), launch.ID)
				require.NoError(t, err)
				assert.Equal(t, test.want, drift.Reason, drift.Detail)
				// A provider that was started since says the same.
				again := f.provider(t, func(o *aws.Options) { o.Classes = c })
				drift, err = again.Drifted(t.Context(), launch.ID)
				require.NoError(t, err)
				assert.Equal(t, test.want, drift.Reason)
			})
		})
	}
}

func TestReservationDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		f.cloud.Put(awstest.Reservation{ID: "cr-1", Type: "m5.large", Zone: "us-east-1a", Count: 2, Tags: map[string]string{"cluster": "harbour"}})
		c := &classes{class()}
		c.now.CapacityReservations = byTag("cluster", "harbour")
		p := f.provider(t, func(o *aws.Options) { o.Classes = c })
		launch, err := p.Create(t.Context(), f.ask(t, p, "a", "karpenter.sh/capacity-type in (reserved)"))
		require.NoError(t, err)
		require.Equal(t, "cr-1", f.cloud.Truth()[0].Reservation)
		c.now.CapacityReservations = byTag("cluster", "other")
		time.Sleep(6 * time.Minute)
		drift, err := p.Drifted(t.Context(), launch.ID)
		require.NoError(t, err)
		assert.Equal(t, aws.CapacityReservationDrift, drift.Reason)
	})
}

// A machine that ends at once says what it ended of, to a caller that reads it and to one that asks with its token again.
func TestDeath(t *testing.T) {
	for _, test := range []struct{ code, message, want string }{
		{"Client.InvalidKMSKey.InvalidState", "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state", "kms:CreateGrant"},
		{"Client.VolumeLimitExceeded", "Client.VolumeLimitExceeded: Volume limit exceeded", "quota of EBS storage"},
		{"Client.InternalError", "Client.InternalError: Client error on launch", "kms:GenerateDataKeyWithoutPlaintext"},
		{"Server.InsufficientInstanceCapacity", "Server.InsufficientInstanceCapacity: no capacity", "EC2 had no machine for it after all"},
	} {
		t.Run(test.code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{})
				p := f.provider(t)
				f.cloud.KillNew(test.code, test.message)
				claim := f.ask(t, p, "a", onDemand)
				launch, err := p.Create(t.Context(), claim)
				require.NoError(t, err)
				_, err = p.Get(t.Context(), launch.ID)
				require.ErrorIs(t, err, cloudprovider.ErrNotFound)
				require.ErrorContains(t, err, test.code)
				require.ErrorContains(t, err, test.want)
				_, err = p.Create(t.Context(), claim)
				require.ErrorIs(t, err, cloudprovider.ErrNotFound)
				require.ErrorContains(t, err, test.want)
				list, err := p.List(t.Context())
				require.NoError(t, err)
				assert.Empty(t, list)
			})
		})
	}
}

// What EC2 takes away is learned from a list, too, with the reason, also when lists have long stopped to read what has ended.
func TestListLearnsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{Page: 3})
		p := f.provider(t)
		var claims []cloudprovider.NodeClaim
		var ids []string
		for i := range 5 {
			claims = append(claims, f.ask(t, p, fmt.Sprintf("web-%d", i), onDemand))
		}
		for _, r := range p.CreateMany(t.Context(), claims) {
			require.NoError(t, r.Err)
			ids = append(ids, r.Launch.ID)
		}
		time.Sleep(time.Minute)
		list, err := p.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 5)
		f.cloud.End(ids[1][strings.LastIndex(ids[1], "/")+1:], "Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Instance terminated due to spot price")
		time.Sleep(time.Minute)
		before := f.cloud.Calls("EC2.DescribeInstances")
		list, err = p.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 4)
		assert.Equal(t, before+3, f.cloud.Calls("EC2.DescribeInstances"), "two pages, and the missing one")
		_, err = p.Create(t.Context(), claims[1])
		require.ErrorIs(t, err, cloudprovider.ErrNotFound)
		require.ErrorContains(t, err, "Server.SpotInstanceTermination")
		_, err = p.List(t.Context())
		require.NoError(t, err)
		assert.Equal(t, before+5, f.cloud.Calls("EC2.DescribeInstances"), "what is known to have ended is not read any more")
	})
}

// Each failure of a fleet has a code of the closed list, and says what a person can do.
func TestFailuresHaveACure(t *testing.T) {
	for _, test := range []struct {
		code, message string
		want          error
		cure          string
	}{
		{"InsufficientInstanceCapacity", "none left", cloudprovider.ErrInsufficientCapacity, "none left"},
		{"InsufficientFreeAddressesInSubnet", "no addresses in subnet-00", cloudprovider.ErrInsufficientCapacity, "add a larger subnet"},
		{"VcpuLimitExceeded", "limit of 0", cloudprovider.ErrQuota, "Running On-Demand Standard"},
		{"UnauthorizedOperation", "You are not authorized to perform this operation. User: me is not authorized to perform: ec2:RunInstances on resource: *", cloudprovider.ErrUnauthorized, "allow ec2:RunInstances in the caller's IAM policy"},
		{"UnauthorizedOperation", "explicit deny in a service control policy", cloudprovider.ErrUnauthorized, "service control policy"},
		{"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.", nil, "aws iam create-service-linked-role"},
		{"PendingVerification", "not verified", cloudprovider.ErrUnauthorized, "up to 4 hours"},
		{"InvalidAMIID.NotFound", "ami-1 does not exist", cloudprovider.ErrNotReady, "select another one"},
		{"UnlistedCode", "EC2 has a new word for no", nil, "EC2 has a new word for no"},
	} {
		t.Run(test.code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{})
				p := f.provider(t)
				claim := f.ask(t, p, "a", onDemand)
				for _, zone := range f.cloud.Zones() {
					f.cloud.RefuseOffering("m5.large", zone, "on-demand", test.code, test.message)
				}
				_, err := p.Create(t.Context(), claim)
				require.Error(t, err)
				if test.want != nil {
					require.ErrorIs(t, err, test.want)
				}
				require.ErrorContains(t, err, test.cure)
				known, ok := errors.AsType[*cloudprovider.Error](err)
				require.True(t, ok)
				require.NotNil(t, known.Code)
				assert.Empty(t, f.cloud.Truth())
			})
		})
	}
}

func TestUserDataTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		c := class()
		c.UserData = "#!/bin/sh\n" + strings.Repeat("# a script that belongs into the image\n", 500)
		p := f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{c} })
		_, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
		require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
		require.ErrorContains(t, err, "16384")
		assert.Zero(t, f.cloud.Calls("EC2.CreateFleet"))
	})
}

// What a node class selects in vain is told all at once.
func TestNothingSelected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		c := class()
		c.Subnets, c.SecurityGroups = byTag("cluster", "none"), byTag("cluster", "none")
		p := f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{c} })
		_, err := p.InstanceTypes(t.Context(), pool())
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
		require.ErrorContains(t, err, "no subnet")
		require.ErrorContains(t, err, "no security group")
		_, err = f.provider(t).InstanceTypes(t.Context(), nodepool.NodePool{NodeClass: nodepool.NodeClassRef{Name: "defualt"}})
		require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
		require.ErrorContains(t, err, `did you mean "default"?`)
	})
}

// Two groups with the cluster's tag break the load balancer controller: the provider says so.
func TestGroupsThatAreUnwiseTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		for _, id := range []string{"sg-a", "sg-b"} {
			f.cloud.Put(awstest.Group{ID: id, Name: id, Tags: map[string]string{"cluster": "harbour", "kubernetes.io/cluster/harbour": "owned"}})
		}
		p := f.provider(t)
		_, err := p.InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		require.Len(t, notes(p), 1)
		assert.Contains(t, notes(p)[0], "sg-a")
	})
}

// After a restart the provider waits for what may not show yet, and then knows tokens, owners and the dead.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{Lag: 10 * time.Second})
		p := f.provider(t)
		lives, ends := f.ask(t, p, "lives", onDemand), f.ask(t, p, "ends", onDemand)
		one, err := p.Create(t.Context(), lives)
		require.NoError(t, err)
		two, err := p.Create(t.Context(), ends)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, p.Delete(t.Context(), two.ID))

		next := f.provider(t, func(o *aws.Options) { o.Undecided = nil })
		_, err = next.Create(t.Context(), f.ask(t, p, "fresh", onDemand))
		require.ErrorIs(t, err, cloudprovider.ErrNotReady, "what an earlier process did may not show yet")
		time.Sleep(31 * time.Second)
		again, err := next.Create(t.Context(), lives)
		require.NoError(t, err)
		assert.Equal(t, one.ID, again.ID)
		assert.Equal(t, one.Labels, again.Labels)
		_, err = next.Create(t.Context(), ends)
		require.ErrorIs(t, err, cloudprovider.ErrNotFound)
		changed := lives.Clone()
		changed.Labels = map[string]string{"a": "b"}
		_, err = next.Create(t.Context(), changed)
		require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
		assert.Len(t, f.cloud.Truth(), 1)
	})
}

// The real memory of a type is learned from its nodes, the least of them, and can be handed on.
func TestLearnedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		launch, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
		require.NoError(t, err)
		memory := func(p *aws.Provider) string {
			types, err := p.InstanceTypes(t.Context(), pool())
			require.NoError(t, err)
			for _, it := range types {
				if it.Name == "m5.large" {
					return it.Capacity.Memory().String()
				}
			}
			return ""
		}
		require.Equal(t, "7577Mi", memory(p), "the estimate")
		node := func(mem string) *corev1.Node {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: launch.ID}, Status: corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(mem)}}}
		}
		var hook cloudprovider.RegistrationHook = p
		require.NoError(t, hook.Registered(t.Context(), launch.ID, node("7800000Ki")))
		assert.Equal(t, "7617Mi", memory(p))
		require.NoError(t, hook.Registered(t.Context(), launch.ID, node("7900000Ki")))
		assert.Equal(t, "7617Mi", memory(p), "the least counts")
		assert.Equal(t, map[string]int64{"m5.large": 7617}, p.Learned())
		assert.Equal(t, "7617Mi", memory(f.provider(t, func(o *aws.Options) { o.Learned = p.Learned() })))

		require.ErrorIs(t, hook.Registered(t.Context(), launch.ID, &corev1.Node{Spec: corev1.NodeSpec{ProviderID: launch.ID}}), cloudprovider.ErrNotReady)
		require.ErrorIs(t, hook.Registered(t.Context(), "aws:///us-east-1a/i-0", node("1Gi")), cloudprovider.ErrInvalidSpec)
	})
}

// Whatever fails, and wherever AWS repeats what it was sent: no key and no user data is in an error or a note.
func TestSecretsStaySecret(t *testing.T) {
	const private = "export DATABASE_PASSWORD=correct-horse-battery"
	for i, action := range []string{"DescribeSubnets", "GetParameters", "DescribeCluster", "CreateLaunchTemplate", "CreateFleet", "CreateInstanceProfile", "DescribeSpotPriceHistory", "GetProducts", "DescribeInstances", "TerminateInstances", "RunInstances", "CreateTags", "DescribeInstanceStatus", "GetManagedResource"} {
		for k, code := range []string{"UnauthorizedOperation", "InvalidParameterValue", "InternalError", "RequestLimitExceeded"} {
			if testing.Short() && (i+k)%4 > 0 {
				continue
			}
			t.Run(action+" "+code, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, awstest.Config{})
					c := class()
					c.UserData = "#!/bin/sh\n" + private + "\n"
					p := f.provider(t, func(o *aws.Options) {
						o.Classes, o.StatusChecks, o.ZonalShift, o.Queue = aws.FixedClasses{c}, true, true, ""
					})
					f.cloud.SetFault(func(call awstest.Call) awstest.Fault {
						if call.Action != action {
							return awstest.Fault{}
						}
						return awstest.Fault{Code: code, Message: fmt.Sprintf("the request of %s signed with %s had the user data %q", awstest.AccessKeyID, awstest.SecretAccessKey, private)}
					})
					var texts []string
					note := func(err error) {
						for ; err != nil; err = errors.Unwrap(err) {
							if _, shown := errors.AsType[*cloudprovider.Error](err); !shown {
								break
							}
							texts = append(texts, err.Error())
						}
					}
					types, err := p.InstanceTypes(t.Context(), pool())
					note(err)
					if candidates := cloudprovider.CandidatesOf(types, requirements.Set{}, nil, requirements.Keys{}); len(candidates) > 0 {
						claim := cloudprovider.NodeClaim{Name: "a", Token: "t", Candidates: candidates[:1]}
						for err = range allOf(p.Permitted(t.Context(), claim)) {
							note(err)
							texts = append(texts, fmt.Sprint(err))
						}
						launch, err := p.Create(t.Context(), claim)
						note(err)
						note(p.Registered(t.Context(), launch.ID, &corev1.Node{Spec: corev1.NodeSpec{ProviderID: launch.ID}, Status: corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("7800000Ki")}}}))
						_, _, err = p.Interruptions(t.Context(), "")
						texts = append(texts, fmt.Sprint(err))
						note(err)
						texts = append(texts, fmt.Sprint(err))
						_, err = p.Get(t.Context(), launch.ID)
						note(err)
						note(p.Delete(t.Context(), launch.ID))
					}
					_, err = p.List(t.Context())
					texts = append(texts, fmt.Sprint(err))
					note(err)
					for _, text := range append(texts, p.Notes()...) {
						assert.NotContains(t, text, awstest.AccessKeyID)
						assert.NotContains(t, text, awstest.SecretAccessKey)
						assert.NotContains(t, text, "correct-horse")
					}
				})
			})
		}
	}
}

// allOf are the errors that one joins, or the one.
func allOf(err error) map[error]bool {
	out := map[error]bool{}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // exactly what errors.Join makes
		for _, e := range joined.Unwrap() {
			out[e] = true
		}
	} else if err != nil {
		out[err] = true
	}
	return out
}

// Options that make no sense are told all at once.
func TestOptions(t *testing.T) {
	_, err := aws.New(t.Context(), aws.Options{Lag: -1, Global: map[string]string{"aws.vmMemoryOverheadPercent": "x"}})
	for _, want := range []string{"cluster: missing", "classes: missing", "lag:", "global:"} {
		require.ErrorContains(t, err, want)
	}
}
