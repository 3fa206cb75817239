package aws_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
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
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

var maxPods = regexp.MustCompile(`max-?[pP]ods['"]?\s*[=:]\s*(\d+)`)

// versionOf is a version of Kubernetes that the family has images for.
func versionOf(family ec2.Family) string {
	if family == ec2.AL2 {
		return "1.32"
	}
	return "1.33"
}

// Of a claim with several types, each is told its own number.
func TestEachTypeIsToldItsOwnPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		claim := f.ask(t, p, "a", "karpenter.sh/capacity-type in (on-demand), node.kubernetes.io/instance-type in (t3.medium, m5.large, m5.xlarge)")
		_, err := p.Create(t.Context(), claim)
		require.NoError(t, err)
		types, err := p.InstanceTypes(t.Context(), pool())
		require.NoError(t, err)
		told := map[string]string{}
		for _, template := range f.cloud.Templates() {
			told[template.Name] = maxPods.FindStringSubmatch(template.UserData)[1]
		}
		seen := map[string]bool{}
		for _, fields := range f.cloud.Fleets() {
			for field, typ := range fields {
				if config, _, ok := strings.Cut(field, ".Overrides."); ok && strings.HasSuffix(field, ".InstanceType") {
					pods := types[slices.IndexFunc(types, func(it instancetypes.InstanceType) bool { return it.Name == typ })].Capacity[corev1.ResourcePods]
					assert.Equal(t, pods.String(), told[fields[config+".LaunchTemplateSpecification.LaunchTemplateName"]], typ)
					seen[typ] = true
				}
			}
		}
		assert.Len(t, seen, 3)
	})
}

// Every node is told the number of pods that was planned with, of every family that joins by itself, by type, and with prefixes.
func TestNodesAreToldTheirPods(t *testing.T) {
	for _, family := range []ec2.Family{ec2.AL2, ec2.AL2023, ec2.Bottlerocket, ec2.Ubuntu, ec2.Windows2022} {
		for _, prefixes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, awstest.Config{Version: versionOf(family)})
				c := class()
				c.Family, c.AMIs = family, nil
				p := f.provider(t, func(o *aws.Options) { o.Classes, o.PrefixDelegation = aws.FixedClasses{c}, prefixes })
				for i, typ := range []string{"t3.medium", "m5.large", "m5.xlarge"} {
					launch, err := p.Create(t.Context(), f.ask(t, p, fmt.Sprint("n", i), "karpenter.sh/capacity-type in (on-demand), node.kubernetes.io/instance-type in ("+typ+")"))
					require.NoError(t, err)
					told := map[string]bool{}
					for _, template := range f.cloud.Templates() {
						for _, hit := range maxPods.FindAllStringSubmatch(template.UserData, -1) {
							told[hit[1]] = true
						}
					}
					pods := launch.Capacity[corev1.ResourcePods]
					assert.True(t, told[pods.String()], "%s %s: %s is not among %v", family, typ, pods.String(), told)
					assert.Equal(t, prefixes || family == ec2.Windows2022, pods.Value() == 110, "%s %s", family, typ)
				}
			})
		}
	}
}

// A spread placement group that is full in a zone is no lack of capacity: it is told as a limit of the group there, and offerings of other classes stay.
func TestFullSpreadPlacementGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		f.cloud.Put(awstest.PlacementGroup{ID: "pg-1", Name: "apart", Strategy: "spread"})
		c := class()
		c.PlacementGroup = &nodeclass.PlacementGroup{Name: "apart"}
		p := f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{c} })
		const where = "karpenter.sh/capacity-type in (on-demand), topology.kubernetes.io/zone in (us-east-1a)"
		for i := range 7 {
			_, err := p.Create(t.Context(), f.ask(t, p, fmt.Sprint("n", i), where))
			require.NoError(t, err)
		}
		_, err := p.Create(t.Context(), f.ask(t, p, "eighth", where))
		require.ErrorIs(t, err, cloudprovider.ErrQuota)
		var failure *cloudprovider.Error
		require.ErrorAs(t, err, &failure)
		assert.Empty(t, failure.Refused)
		require.Len(t, failure.Quotas, 1)
		assert.Contains(t, failure.Quotas[0].Blocks.String(), "pg-1")
		elsewhere := f.ask(t, p, "elsewhere", "karpenter.sh/capacity-type in (on-demand), topology.kubernetes.io/zone in (us-east-1b)")
		_, err = p.Create(t.Context(), elsewhere)
		require.NoError(t, err)
	})
}

// EFA interfaces are on the cards that have EFA, one on each; a card without it that comes first has the primary interface.
func TestEFAOnTheCardsThatHaveIt(t *testing.T) {
	for typ, want := range map[string]string{"p4d.24xlarge": "0/0/efa 1/1/efa 2/1/efa 3/1/efa", "g4dn.8xlarge": "0/0/efa", "p6-b300.48xlarge": "0/0/interface 1/1/efa ... 16/1/efa"} {
		synctest.Test(t, func(t *testing.T) {
			region := "us-east-1"
			if strings.HasPrefix(typ, "p6-b300") {
				region = "us-west-2"
			}
			f := newFixture(t, awstest.Config{Region: region, Types: []string{typ}})
			f.cloud.SetOnDemandPrice(typ, 100)
			for i, zone := range []string{"a", "b", "c", "d", "e", "f"} {
				f.cloud.Put(awstest.Subnet{ID: fmt.Sprint("subnet-all-", i), Zone: region + zone, Free: 4000, Tags: map[string]string{"cluster": "harbour"}})
			}
			p := f.provider(t)
			claim := f.ask(t, p, "a", "karpenter.sh/capacity-type in (on-demand)")
			claim.Requests = corev1.ResourceList{ec2.ResourceEFA: resource.MustParse("1")}
			requests, err := p.DryRun(t.Context(), []cloudprovider.NodeClaim{claim})
			require.NoError(t, err)
			text, err := requests[slices.IndexFunc(requests, func(r aws.Request) bool { return r.Action == "CreateLaunchTemplate" })].JSON()
			require.NoError(t, err)
			var have []string
			field := func(block, name string) string {
				return strings.Trim(regexp.MustCompile(`"` + name + `": ("?[a-z0-9]+"?)`).FindStringSubmatch(block)[1], `"`)
			}
			for _, block := range strings.Split(string(text), `"DeleteOnTermination": true,`+"\n"+`        "DeviceIndex"`)[1:] {
				block = `"DeviceIndex"` + block
				have = append(have, field(block, "NetworkCardIndex")+"/"+field(block, "DeviceIndex")+"/"+field(block, "InterfaceType"))
			}
			if len(have) > 4 {
				have = append(have[:2], "...", have[len(have)-1])
			}
			assert.Equal(t, want, strings.Join(have, " "), typ)
		})
	}
}

// An answer to a repeated request that tells nothing is no answer: the machine that the first one launched is found by its tags, and no second one is launched.
func TestSilentReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{SilentReplays: true})
		lost := 0
		f.cloud.SetFault(func(c awstest.Call) awstest.Fault {
			if c.Action == "CreateFleet" && lost < 2 {
				lost++
				return awstest.Fault{Lost: true}
			}
			return awstest.Fault{}
		})
		p := f.provider(t)
		claim := f.ask(t, p, "a", onDemand)
		var launch cloudprovider.Launch
		var err error
		for range 30 {
			if launch, err = p.Create(t.Context(), claim); err == nil {
				break
			}
			require.True(t, cloudprovider.Advise(err).Unknown, "%v", err)
			time.Sleep(10 * time.Second)
		}
		require.NoError(t, err)
		require.Len(t, f.cloud.Truth(), 1)
		assert.Equal(t, f.cloud.Truth()[0].ID, ec2ID(launch.ID))
	})
}

// Whoever calls Maintain now and then has no launch that waits for types or prices, however long the provider runs.
func TestNoLaunchWaitsForTypesAndPrices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{})
		p := f.provider(t)
		_, err := p.Create(t.Context(), f.ask(t, p, "first", onDemand))
		require.NoError(t, err)
		asked := func() (n int) {
			for _, call := range []string{"EC2.DescribeInstanceTypes", "EC2.DescribeInstanceTypeOfferings", "EC2.DescribeSpotPriceHistory", "Pricing.GetProducts"} {
				n += f.cloud.Calls(call)
			}
			return n
		}
		first := asked()
		launches := 60
		if testing.Short() {
			launches = 40
		}
		for i := range launches {
			time.Sleep(40 * time.Minute)
			_, err := p.Maintain(t.Context(), time.Hour)
			require.NoError(t, err)
			before := asked()
			_, err = p.Create(t.Context(), f.ask(t, p, fmt.Sprint("n", i), onDemand))
			require.NoError(t, err)
			assert.Equal(t, before, asked(), "launch %d", i)
		}
		assert.Greater(t, asked(), 2*first, "they were renewed")
	})
}

// Requests that are shown tell user data by its length and hash, and in full only if that is asked for.
func TestShownRequestsHideUserData(t *testing.T) {
	for _, family := range []ec2.Family{ec2.AL2, ec2.AL2023, ec2.Bottlerocket, ec2.Ubuntu, ec2.Windows2022, ec2.Custom} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, awstest.Config{Version: versionOf(family)})
			c := class()
			c.Family, c.AMIs, c.UserData = family, nil, "#!/bin/sh\necho hush\n"
			switch family {
			case ec2.Custom:
				c.AMIs = byTag("cluster", "harbour")
			case ec2.Bottlerocket:
				c.UserData = "[settings.host-containers.admin]\nuser-data = \"hush\"\n"
			}
			p := f.provider(t, func(o *aws.Options) { o.Classes = aws.FixedClasses{c} })
			requests, err := p.DryRun(t.Context(), []cloudprovider.NodeClaim{f.ask(t, p, "a", onDemand)})
			require.NoError(t, err)
			found := 0
			for _, r := range requests {
				hidden, err := r.JSON()
				require.NoError(t, err)
				full, err := r.JSONWithUserData()
				require.NoError(t, err)
				for _, hit := range regexp.MustCompile(`"UserData": "([^"]+)"`).FindAllStringSubmatch(string(full), -1) {
					found++
					text, err := base64.StdEncoding.DecodeString(hit[1])
					require.NoError(t, err)
					assert.Contains(t, string(text), "hush", family)
					assert.NotContains(t, string(hidden), hit[1])
					assert.Contains(t, string(hidden), fmt.Sprintf("%d bytes, sha256 %x", len(text), sha256.Sum256(text)))
				}
			}
			assert.NotZero(t, found, family)
		})
	}
}
