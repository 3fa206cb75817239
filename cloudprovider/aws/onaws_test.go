package aws_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
)

// sandbox is what the opt-in suite needs of an account that nothing else uses. It launches a few of the smallest machines, tags all that it makes with
// a cluster name of its own, and removes it.
type sandbox struct {
	account, role, subnetTag string
	types                    []string
}

func optIn(t *testing.T) sandbox {
	t.Helper()
	s := sandbox{account: os.Getenv("JOINERY_AWS_ACCOUNT"), role: os.Getenv("JOINERY_AWS_ROLE"), subnetTag: os.Getenv("JOINERY_AWS_TAG"), types: []string{"t3.nano", "t3.micro", "t3a.nano", "t4g.nano"}}
	if s.account == "" || s.role == "" || s.subnetTag == "" {
		t.Skip("SKIPPED: set JOINERY_AWS_ACCOUNT to the number of a sandbox account, JOINERY_AWS_ROLE to a role for machines and JOINERY_AWS_TAG to key=value of its subnets and groups")
	}
	return s
}

// mostMachines is the most that may run at a time.
const mostMachines = 4

// seen notes in the answer book that AWS gave an answer today. Lines keep their order and their comments.
func seen(t *testing.T, level, code, message string) {
	t.Helper()
	row := api.Find(level, code, message, 0)
	path := filepath.Join("api", "answers.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	today, found := time.Now().UTC().Format(time.DateOnly), false
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "- {code: "+row.Code+",") || !strings.Contains(line, "level: "+row.Level+",") || row.Match != "" && !strings.Contains(line, "match: "+row.Match+",") {
			continue
		}
		line = regexp.MustCompile(`, seen: [\d-]+`).ReplaceAllString(line, "")
		lines[i], found = strings.TrimSuffix(line, "}")+", seen: "+today+"}", true
		break
	}
	if !found {
		lines = append(lines[:len(lines)-1], fmt.Sprintf("- {code: %s, level: %s, status: 400, class: invalid spec, source: none, seen: %s} # a new word: sort it in", code, level, today), "")
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	t.Logf("AWS says %s (%s): %s", code, level, message)
}

// The kit on AWS itself, and the errors that can be provoked without harm, recorded in the answer book. Run it by "go test -run TestOnAWS -timeout 2h"
// with credentials of a sandbox account in the environment.
func TestOnAWS(t *testing.T) {
	s := optIn(t)
	ctx := t.Context()
	clients, err := api.Connect(ctx, api.Config{})
	require.NoError(t, err)
	key, value, _ := strings.Cut(s.subnetTag, "=")
	subnets, err := clients.EC2.DescribeSubnets(ctx, &ec2sdk.DescribeSubnetsInput{Filters: []ec2types.Filter{{Name: sdk.String("tag:" + key), Values: []string{value}}}})
	require.NoError(t, err)
	require.NotEmpty(t, subnets.Subnets, "no subnet is tagged %s", s.subnetTag)
	for _, n := range subnets.Subnets {
		require.Equal(t, s.account, sdk.ToString(n.OwnerId), "these credentials are not of the sandbox account")
	}
	cluster := fmt.Sprintf("joinery-suite-%d", time.Now().Unix())
	t.Cleanup(func() { removeAll(context.WithoutCancel(ctx), t, clients, cluster) })
	nodes := nodeclass.NodeClass{
		Name: "suite", Family: ec2.AL2023, Role: s.role, Subnets: byTag(key, value), SecurityGroups: byTag(key, value),
		AMIs: []nodeclass.Term{{SSMParameter: "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"}}, Tags: map[string]string{"purpose": "joinery TestOnAWS, may be deleted"},
	}
	options := aws.Options{
		Cluster: cluster, Classes: aws.FixedClasses{nodes}, Undecided: aws.NoHistory, StaticPrices: true,
		Known: &aws.Cluster{Name: cluster, Endpoint: "https://suite.example.com", CA: "Y2E=", Version: "1.33", ServiceCIDR: "10.100.0.0/16"},
		Adjust: func(list []instancetypes.InstanceType) []instancetypes.InstanceType { // nothing but the smallest machines can be bought
			for i := range list {
				if !slices.Contains(s.types, list[i].Name) {
					list[i].Offerings = slices.Clone(list[i].Offerings)
					for j := range list[i].Offerings {
						list[i].Offerings[j].Available = false
					}
				}
			}
			return list
		},
	}
	p, err := aws.New(ctx, options)
	require.NoError(t, err)
	types, err := p.InstanceTypes(ctx, pool())
	require.NoError(t, err)
	ask := requirements.MustOf(requirements.In("node.kubernetes.io/instance-type", s.types...), requirements.In("kubernetes.io/arch", "amd64"))
	claim := cloudprovider.NodeClaim{Name: "suite", Token: cluster, Candidates: cloudprovider.CandidatesOf(types, ask, nil, requirements.Keys{})}
	require.NotEmpty(t, claim.Candidates)

	t.Run("a profile that was made a moment ago", func(t *testing.T) {
		for {
			launch, err := p.Create(ctx, claim)
			if err == nil {
				require.NoError(t, p.Delete(ctx, launch.ID))
				return
			}
			require.ErrorIs(t, err, cloudprovider.ErrNotReady)
			seen(t, api.Entry, "InvalidParameterValue", err.Error())
			require.NoError(t, api.Wait(ctx, 5*time.Second))
		}
	})
	t.Run("kit", func(t *testing.T) {
		settle := func(ctx context.Context) error { return api.Wait(ctx, 2*time.Minute) }
		require.NoError(t, cloudtest.Harness{Provider: p, Many: mostMachines, Settle: settle}.Check(ctx))
	})
	t.Run("errors", func(t *testing.T) {
		note := func(err error) {
			t.Helper()
			a, message, ok := api.AnswerOf(err)
			if assert.True(t, ok, "%v", err) {
				seen(t, api.Call, a.Code, message)
			}
		}
		_, err := clients.EC2.TerminateInstances(ctx, &ec2sdk.TerminateInstancesInput{InstanceIds: []string{"i-0123456789abcdef0"}})
		note(err)
		_, err = clients.EC2.DescribeLaunchTemplates(ctx, &ec2sdk.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{cluster}})
		note(err)
		_, err = clients.EC2.DescribeSubnets(ctx, &ec2sdk.DescribeSubnetsInput{SubnetIds: []string{"subnet-0123456789abcdef0"}})
		note(err)
		_, err = clients.EC2.DescribeImages(ctx, &ec2sdk.DescribeImagesInput{ImageIds: []string{"ami-0123456789abcdef0"}})
		note(err)
		_, err = clients.EC2.DescribePlacementGroups(ctx, &ec2sdk.DescribePlacementGroupsInput{GroupNames: []string{cluster}})
		note(err)
		_, err = clients.EC2.DescribeCapacityReservations(ctx, &ec2sdk.DescribeCapacityReservationsInput{CapacityReservationIds: []string{"cr-0123456789abcdef0"}})
		note(err)
		template := &ec2sdk.CreateLaunchTemplateInput{
			LaunchTemplateName: sdk.String("joinery/" + cluster + "/errors"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: sdk.String("ami-0123456789abcdef0")},
		}
		_, err = clients.EC2.CreateLaunchTemplate(ctx, template)
		require.NoError(t, err)
		again := *template
		again.ClientToken = nil
		_, err = clients.EC2.CreateLaunchTemplate(ctx, &again)
		note(err)
		fleet, err := clients.EC2.CreateFleet(ctx, &ec2sdk.CreateFleetInput{
			Type: ec2types.FleetTypeInstant, TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: sdk.Int32(1), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeOnDemand},
			LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
				LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: template.LaunchTemplateName, Version: sdk.String("1")},
				Overrides:                   []ec2types.FleetLaunchTemplateOverridesRequest{{InstanceType: "t3.nano", SubnetId: subnets.Subnets[0].SubnetId}},
			}},
		})
		if err != nil {
			note(err)
			return
		}
		for _, e := range fleet.Errors {
			seen(t, api.Entry, sdk.ToString(e.ErrorCode), sdk.ToString(e.ErrorMessage))
		}
	})
	t.Run("termination protection", func(t *testing.T) {
		other := claim.Clone()
		other.Name, other.Token = "protected", cluster+"-protected"
		launch, err := p.Create(ctx, other)
		require.NoError(t, err)
		protect := func(on bool) {
			_, err := clients.EC2.ModifyInstanceAttribute(ctx, &ec2sdk.ModifyInstanceAttributeInput{InstanceId: sdk.String(ec2ID(launch.ID)), DisableApiTermination: &ec2types.AttributeBooleanValue{Value: sdk.Bool(on)}})
			require.NoError(t, err)
		}
		protect(true)
		defer protect(false)
		err = p.Delete(ctx, launch.ID)
		require.Error(t, err)
		seen(t, api.Call, api.Reason(err), err.Error())
	})
}

// removeAll ends and deletes all that carries the cluster's name, by means of its own.
func removeAll(ctx context.Context, t *testing.T, clients *api.Clients, cluster string) {
	t.Helper()
	own := []ec2types.Filter{{Name: sdk.String("tag:" + aws.ClusterTag), Values: []string{cluster}}, {Name: sdk.String("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped"}}}
	for range 10 { // what was launched last may not show yet
		out, err := clients.EC2.DescribeInstances(ctx, &ec2sdk.DescribeInstancesInput{Filters: own})
		require.NoError(t, err)
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				_, err := clients.EC2.TerminateInstances(ctx, &ec2sdk.TerminateInstancesInput{InstanceIds: []string{sdk.ToString(i.InstanceId)}})
				assert.NoError(t, err, "end %s by hand", sdk.ToString(i.InstanceId))
			}
		}
		require.NoError(t, api.Wait(ctx, 10*time.Second))
	}
	templates, err := clients.EC2.DescribeLaunchTemplates(ctx, &ec2sdk.DescribeLaunchTemplatesInput{Filters: []ec2types.Filter{{Name: sdk.String("launch-template-name"), Values: []string{"joinery/" + cluster + "/*"}}}})
	require.NoError(t, err)
	for _, l := range templates.LaunchTemplates {
		_, err := clients.EC2.DeleteLaunchTemplate(ctx, &ec2sdk.DeleteLaunchTemplateInput{LaunchTemplateId: l.LaunchTemplateId})
		assert.NoError(t, err)
	}
	p, err := aws.New(ctx, aws.Options{Cluster: cluster, Classes: aws.FixedClasses{{Name: "suite"}}, Undecided: aws.NoHistory})
	require.NoError(t, err)
	_, err = p.Maintain(ctx, 0)
	assert.NoError(t, err)
}
