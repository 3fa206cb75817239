package aws_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

// Templates are few, are used again, and one that was deleted is made again in the middle of the launch.
func TestTemplatesAreFewAndComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		const match = "karpenter.sh/capacity-type in (on-demand), karpenter.k8s.aws/instance-category in (m, c, r)"
		for i := range 20 {
			_, err := p.Create(t.Context(), f.ask(t, p, fmt.Sprint("a-", i), match))
			require.NoError(t, err)
		}
		assert.Len(t, f.cloud.Templates(), 3, "one for each image and number of pods, whatever the types")
		made := f.cloud.Calls("EC2.CreateLaunchTemplate")
		assert.Equal(t, 3, made)
		f.cloud.RemoveTemplate(f.cloud.Templates()[0].Name)
		_, err := p.Create(t.Context(), f.ask(t, p, "b", match))
		require.NoError(t, err)
		assert.Len(t, f.cloud.Templates(), 3)
		assert.Len(t, f.cloud.Truth(), 21)
	})
}

// Anybody can compute the name of a template and make one of that name first. It is used only if image, role and
// user data are those that the provider would have written.
func TestPlantedTemplates(t *testing.T) {
	for planted, change := range map[string]func(fields map[string]string){
		"": func(map[string]string) {}, "UserData": func(fields map[string]string) {
			fields["UserData"] = base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\nsend everything elsewhere\n"))
		},
		"ImageId": func(fields map[string]string) { fields["ImageId"] = "ami-oldx8664" }, "IamInstanceProfile.Name": func(fields map[string]string) { fields["IamInstanceProfile.Name"] = "admin" },
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, awstest.Config{})
			p := f.provider(t)
			_, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
			require.NoError(t, err)
			ours := f.cloud.Templates()[0]
			fields := maps.Clone(ours.Fields)
			fields["UserData"] = base64.StdEncoding.EncodeToString([]byte(ours.UserData))
			require.NotEmpty(t, fields["IamInstanceProfile.Name"])
			change(fields)
			f.cloud.RemoveTemplate(ours.Name)
			f.cloud.AddTemplate(ours.Name, fields)
			p = f.provider(t)
			claim := f.ask(t, p, "b", onDemand)
			_, err = p.Create(t.Context(), claim)
			if planted == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, cloudprovider.ErrNotReady, planted)
			require.ErrorContains(t, err, "delete it")
			assert.Len(t, f.cloud.Truth(), 1, "nothing is launched from it")
			f.cloud.RemoveTemplate(ours.Name)
			_, err = p.Create(t.Context(), claim)
			require.NoError(t, err)
		})
	}
}

// Old templates are collected, those in use and those of others are not, and a launch that runs at the same time does not notice.
func TestMaintain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		_, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
		require.NoError(t, err)
		gone, err := p.Maintain(t.Context(), time.Hour)
		require.NoError(t, err)
		assert.Empty(t, gone)
		time.Sleep(2 * time.Hour)
		gone, err = p.Maintain(t.Context(), time.Hour)
		require.NoError(t, err)
		assert.Len(t, gone, 1)
		assert.Empty(t, f.cloud.Templates())
		var group sync.WaitGroup
		for n := range 6 {
			group.Go(func() {
				for i := range 15 {
					if n == 0 {
						_, err := p.Maintain(t.Context(), 0)
						assert.NoError(t, err)
						continue
					}
					_, err := p.Create(t.Context(), f.ask(t, p, fmt.Sprint("c-", n, "-", i), onDemand))
					assert.NoError(t, err)
				}
			})
		}
		group.Wait()
		assert.Len(t, f.cloud.Truth(), 1+5*15)
	})
}

// A provider with DryRun changes nothing, so it deletes no old templates and profiles either.
func TestMaintainDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		_, err := p.Create(t.Context(), f.ask(t, p, "a", onDemand))
		require.NoError(t, err)
		time.Sleep(2 * time.Hour)
		gone, err := f.provider(t, func(o *aws.Options) { o.DryRun = true }).Maintain(t.Context(), time.Hour)
		require.NoError(t, err)
		assert.Empty(t, gone)
		assert.Len(t, f.cloud.Templates(), 1)
	})
}

// Without prices and spot history the embedded ones are used, and the provider says so.
func TestPricesFallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		f.cloud.SetFault(func(c awstest.Call) awstest.Fault {
			if c.Action == "GetProducts" || c.Action == "DescribeSpotPriceHistory" {
				return awstest.Fault{Code: "AccessDenied", Message: "no"}
			}
			return awstest.Fault{}
		})
		p := f.provider(t)
		claim := f.ask(t, p, "a", onDemand)
		require.NotEmpty(t, claim.Candidates)
		require.Len(t, notes(p), 2)
		assert.Contains(t, strings.Join(p.Notes(), "\n"), "pricing:GetProducts")
		f.cloud.SetFault(nil)
		f.cloud.SetOnDemandPrice("m5.large", 0.5)
		time.Sleep(2 * time.Hour)
		types, err := p.InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		assert.Empty(t, notes(p), "good news takes them away")
		for _, it := range types {
			for _, o := range it.Offerings {
				if it.Name == "m5.large" && o.CapacityType() == "on-demand" {
					assert.InDelta(t, 0.5, o.Price, 1e-9)
					assert.Equal(t, "2026-01-01", o.List.Date)
				}
			}
		}
	})
}

// Spot comes before on-demand where the claim says so, unless it is dearer, and what is refused is tried in the other.
func TestCapacityTypesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		claim := f.ask(t, p, "a", "karpenter.sh/capacity-type in (spot, on-demand), node.kubernetes.io/instance-type in (m5.large)")
		launch, err := p.Create(t.Context(), claim)
		require.NoError(t, err)
		assert.Equal(t, "spot", launch.Labels["karpenter.sh/capacity-type"])
		for _, zone := range f.cloud.Zones() {
			f.cloud.SetCapacity("m5.large", zone, "spot", 0)
		}
		claim.Name, claim.Token = "b", "b-token"
		launch, err = p.Create(t.Context(), claim)
		require.NoError(t, err)
		assert.Equal(t, "on-demand", launch.Labels["karpenter.sh/capacity-type"])
		assert.Len(t, launch.Refused, 3)
		for _, zone := range f.cloud.Zones() {
			f.cloud.SetCapacity("m5.large", zone, "spot", -1)
			f.cloud.SetSpotPrice("m5.large", zone, 9)
		}
		time.Sleep(2 * time.Hour)
		types, err := p.InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		require.NotEmpty(t, types)
		claim.Name, claim.Token = "c", "c-token"
		launch, err = p.Create(t.Context(), claim)
		require.NoError(t, err)
		assert.Equal(t, "on-demand", launch.Labels["karpenter.sh/capacity-type"])
	})
}

// What an interrupted caller made is taken back, and nothing else.
func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{Lag: 10 * time.Second})
		other := f.provider(t)
		stays, err := other.Create(t.Context(), f.ask(t, other, "stays", onDemand))
		require.NoError(t, err)
		c := class()
		c.DetailedMonitoring = true // a template of its own
		p := f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{c} })
		var tokens []string
		for i := range 4 {
			claim := f.ask(t, p, fmt.Sprint("goes-", i), onDemand)
			tokens = append(tokens, claim.Token)
			f.cloud.SetFault(func(call awstest.Call) awstest.Fault {
				return awstest.Fault{Lost: i%2 == 1 && call.Action == "CreateFleet"}
			})
			_, err := p.Create(t.Context(), claim)
			assert.Equal(t, i%2 == 1, err != nil)
			if err != nil {
				assert.True(t, cloudprovider.Advise(err).Unknown, err)
			}
		}
		f.cloud.SetFault(nil)
		require.Len(t, f.cloud.Truth(), 5)
		ended, err := p.Withdraw(t.Context(), tokens)
		require.NoError(t, err)
		assert.Len(t, ended, 4)
		require.Len(t, f.cloud.Truth(), 1)
		assert.True(t, strings.HasSuffix(stays.ID, f.cloud.Truth()[0].ID))
		assert.Len(t, f.cloud.Templates(), 1)
		assert.Len(t, f.cloud.Profiles(), 1, "the other provider made it")
	})
}

func ExampleNew() {
	cloud, err := awstest.New(awstest.Config{}) // leave Endpoint, Credentials and HTTPClient out for AWS itself
	if err != nil {
		panic(err)
	}
	reach := cloud.API()
	ctx := exampleContext()
	p, err := aws.New(ctx, aws.Options{
		Cluster: "harbour", Classes: aws.FixedClasses{class()}, Undecided: aws.NoHistory,
		Region: reach.Region, Credentials: reach.Credentials, HTTPClient: reach.HTTPClient,
	})
	if err != nil {
		panic(err)
	}
	types, err := p.InstanceTypes(ctx, pool())
	if err != nil {
		panic(err)
	}
	launch, err := p.Create(ctx, cloudprovider.NodeClaim{Name: "web-1", Token: "unique-1", Candidates: candidatesFor(types, onDemand)})
	if err != nil {
		panic(err)
	}
	fmt.Println(launch.Claim, launch.Type, launch.ImageID)
	fmt.Println(p.Delete(ctx, launch.ID))
	// Output:
	// web-1 m5.large ami-al2023x86
	// <nil>
}

// A caller that lost the answer asks again with the same claim, and gets the same machine.
func ExampleProvider_Create() {
	awstest.Begin()
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	reach, ctx := cloud.API(), exampleContext()
	p, err := aws.New(ctx, aws.Options{
		Cluster: "harbour", Classes: aws.FixedClasses{class()}, Region: reach.Region, Credentials: reach.Credentials,
		HTTPClient: reach.HTTPClient, Buckets: reach.Buckets, Undecided: aws.NoHistory,
	})
	if err != nil {
		panic(err)
	}
	types, err := p.InstanceTypes(ctx, pool())
	if err != nil {
		panic(err)
	}
	claim := cloudprovider.NodeClaim{Name: "web-1", Token: "0b5e", Pool: "web", Candidates: candidatesFor(types, "karpenter.sh/capacity-type in (on-demand)")[:3]}
	cloud.SetFault(func(c awstest.Call) awstest.Fault { return awstest.Fault{Lost: c.Action == "CreateFleet"} })
	_, err = p.Create(ctx, claim)
	fmt.Println("known:", !cloudprovider.Advise(err).Unknown, "running:", len(cloud.Truth()))
	cloud.SetFault(nil)
	launch, err := p.Create(ctx, claim)
	fmt.Println(launch.Claim, launch.Type, err, "running:", len(cloud.Truth()))
	// Output:
	// known: false running: 1
	// web-1 t3.nano <nil> running: 1
}

func ExampleProvider_DryRun() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	reach := cloud.API()
	ctx := exampleContext()
	p, err := aws.New(ctx, aws.Options{
		Cluster: "harbour", Classes: aws.FixedClasses{class()}, DryRun: true,
		Region: reach.Region, Credentials: reach.Credentials, HTTPClient: reach.HTTPClient,
	})
	if err != nil {
		panic(err)
	}
	types, err := p.InstanceTypes(ctx, pool())
	if err != nil {
		panic(err)
	}
	requests, err := p.DryRun(ctx, []cloudprovider.NodeClaim{{Name: "web-1", Token: "unique-1", Candidates: candidatesFor(types, onDemand)}})
	if err != nil {
		panic(err)
	}
	for _, r := range requests {
		fmt.Println(r.Service, r.Action)
	}
	// Output:
	// IAM CreateInstanceProfile
	// IAM AddRoleToInstanceProfile
	// EC2 CreateLaunchTemplate
	// EC2 CreateFleet
}

func ExampleFixedClasses() {
	classes := aws.FixedClasses{{Name: "default"}, {Name: "gpu"}}
	_, err := classes.NodeClass(exampleContext(), "gpus")
	fmt.Println(err)
	// Output: cloudprovider: invalid spec: no node class "gpus" (did you mean "gpu"?)
}
