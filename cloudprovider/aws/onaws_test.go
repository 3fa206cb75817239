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
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
)

// sandbox is what the opt-in suite needs of an account that nothing else uses. It launches a few of the smallest machines, tags all that it makes with
// a cluster name of its own, and removes it.
type sandbox struct {
	api.Config
	account     string        // its number
	role        string        // for machines
	tag         string        // key=value of its subnets and security groups
	image       string        // a parameter that holds the id of an image for x86_64
	book        string        // the answer book, to note answers in
	moment      time.Duration // after which what was done is known everywhere
	staticTypes bool          // where reading them takes too long
	lacks       []string      // answers that cannot be provoked
}

// smallest are the types that are bought.
var smallest = []string{"t3.nano", "t3.micro", "t3a.nano", "t4g.nano"}

// Fleets are of so many machines at most, and nothing is launched while more than mostMachines run.
const (
	mostAtOnce   = 4
	mostMachines = 8
)

// The kit on AWS itself, and the errors that can be provoked without harm, recorded in the answer book. Run it by "go test -run TestOnAWS$ -timeout 2h"
// with credentials of a sandbox account in the environment.
func TestOnAWS(t *testing.T) {
	s := sandbox{
		account: os.Getenv("JOINERY_AWS_ACCOUNT"), role: os.Getenv("JOINERY_AWS_ROLE"), tag: os.Getenv("JOINERY_AWS_TAG"),
		image: "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64", book: filepath.Join("api", "answers.yaml"), moment: 10 * time.Second,
	}
	if s.account == "" || s.role == "" || !strings.Contains(s.tag, "=") {
		t.Skip("SKIPPED: set JOINERY_AWS_ACCOUNT to the number of a sandbox account, JOINERY_AWS_ROLE to a role for machines and JOINERY_AWS_TAG to key=value of its subnets and groups")
	}
	s.run(t)
}

// bookCopy is a copy of the answer book, for runs that must not change it.
func bookCopy(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("api", "answers.yaml"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "answers.yaml")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// The same suite on the clouds that are not AWS, so that its own code is tried.
func TestOnAWSSuiteOnAwstest(t *testing.T) {
	book := bookCopy(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, awstest.Config{Types: smallest, Lag: 5 * time.Second, ProfileLag: 12 * time.Second, Boot: 20 * time.Second, Shutdown: 30 * time.Second})
		const image = "/suite/image"
		f.cloud.SetParameter(image, "ami-al2023x86")
		t.Cleanup(func() {
			assert.Empty(t, f.cloud.Truth())
			assert.Empty(t, f.cloud.Templates())
			assert.Empty(t, f.cloud.Profiles())
		})
		sandbox{Config: f.cloud.API(), account: account, role: "node", tag: "cluster=harbour", image: image, book: book, moment: 10 * time.Second}.run(t)
	})
	text, err := os.ReadFile(book)
	require.NoError(t, err)
	assert.Regexp(t, `code: InvalidParameterValue, match: iaminstanceprofile, level: both, .*seen: 2026-01-01}`, string(text), "the fresh profile")
	assert.Regexp(t, `code: OperationNotPermitted, .*seen: 2026-01-01}`, string(text))
	assert.Equal(t, 9, strings.Count(string(text), "seen: "), "and what was provoked")
}

func TestOnAWSSuiteOnMoto(t *testing.T) {
	if testing.Short() {
		t.Skip("moto is slow")
	}
	t.Parallel()
	options, c := motoOptions(t)
	ctx := t.Context()
	group, err := c.EC2.DescribeSecurityGroups(ctx, &ec2sdk.DescribeSecurityGroupsInput{GroupNames: []string{"default"}})
	require.NoError(t, err)
	_, err = c.EC2.CreateTags(ctx, &ec2sdk.CreateTagsInput{Resources: []string{sdk.ToString(group.SecurityGroups[0].GroupId)}, Tags: []ec2types.Tag{{Key: sdk.String("cluster"), Value: sdk.String("harbour")}}})
	require.NoError(t, err)
	s := sandbox{
		Config:  api.Config{Region: options.Region, Endpoint: options.Endpoint, Credentials: options.Credentials, Buckets: options.Buckets, HTTPClient: options.HTTPClient},
		account: "123456789012", role: "node", tag: "cluster=harbour", image: "/nodes/1.33/x86_64", book: bookCopy(t), moment: time.Millisecond, staticTypes: true,
		lacks: []string{"InvalidPlacementGroup.Unknown", "InvalidCapacityReservationId.NotFound"},
	}
	s.run(t)
}

// note writes into the answer book that AWS gave an answer today. Lines keep their order and their comments; a new one is the last.
func (s sandbox) note(t *testing.T, level, code, message string) {
	t.Helper()
	row := api.Find(level, code, message, 0)
	text, err := os.ReadFile(s.book)
	require.NoError(t, err)
	today := time.Now().UTC().Format(time.DateOnly)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	at := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "- {code: "+row.Code+",") && strings.Contains(line, "level: "+row.Level+",") && (row.Match == "" || strings.Contains(line, "match: "+row.Match+","))
	})
	if at < 0 {
		at = len(lines)
		status := ", status: 400"
		if level != api.Call {
			status = ""
		}
		lines = append(lines, fmt.Sprintf("- {code: %s, level: %s%s, class: invalid spec, source: none}", code, level, status))
	}
	line := regexp.MustCompile(`, seen: [\d-]+`).ReplaceAllString(lines[at], "")
	lines[at] = strings.TrimSuffix(line, "}") + ", seen: " + today + "}"
	require.NoError(t, os.WriteFile(s.book, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	t.Logf("AWS says %s (%s): %s", code, level, message)
}

// run is the suite.
func (s sandbox) run(t *testing.T) {
	ctx := t.Context()
	clients, err := api.Connect(ctx, s.Config)
	require.NoError(t, err)
	key, value, _ := strings.Cut(s.tag, "=")
	subnets, err := clients.EC2.DescribeSubnets(ctx, &ec2sdk.DescribeSubnetsInput{Filters: []ec2types.Filter{{Name: sdk.String("tag:" + key), Values: []string{value}}}})
	require.NoError(t, err)
	require.NotEmpty(t, subnets.Subnets, "no subnet is tagged %s", s.tag)
	for _, n := range subnets.Subnets {
		require.Equal(t, s.account, sdk.ToString(n.OwnerId), "these credentials are not of the sandbox account")
	}
	cluster := fmt.Sprintf("joinery-suite-%d", time.Now().Unix())
	nodes := nodeclass.NodeClass{
		Name: "suite", Family: ec2.AL2023, Role: s.role, Subnets: byTag(key, value), SecurityGroups: byTag(key, value),
		AMIs: []nodeclass.Term{{SSMParameter: s.image}}, Tags: map[string]string{"purpose": "joinery TestOnAWS, may be deleted"},
	}
	p, err := aws.New(ctx, aws.Options{
		Cluster: cluster, Classes: aws.FixedClasses{nodes}, Undecided: aws.NoHistory, StaticPrices: true, StaticTypes: s.staticTypes,
		Region: s.Region, Endpoint: s.Endpoint, Credentials: s.Credentials, HTTPClient: s.HTTPClient, Buckets: s.Buckets,
		Known: &aws.Cluster{Name: cluster, Endpoint: "https://suite.example.com", CA: "Y2E=", Version: "1.33", ServiceCIDR: "10.100.0.0/16"},
		Adjust: func(_ string, list []instancetypes.InstanceType) []instancetypes.InstanceType { // nothing but the smallest machines can be bought
			for i := range list {
				if !slices.Contains(smallest, list[i].Name) {
					list[i].Offerings = slices.Clone(list[i].Offerings)
					for j := range list[i].Offerings {
						list[i].Offerings[j].Available = false
					}
				}
			}
			return list
		},
		Window: aws.Window{Most: mostAtOnce},
		Lease: func(ctx context.Context) error { // no more than a few at a time
			have, err := running(ctx, clients, cluster)
			if err == nil && len(have) > mostMachines {
				err = fmt.Errorf("%d machines run", len(have))
			}
			return err
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { s.removeAll(context.WithoutCancel(ctx), t, clients, p, cluster) })
	types, err := p.InstanceTypes(ctx, pool())
	require.NoError(t, err)
	ask := requirements.MustOf(requirements.In("node.kubernetes.io/instance-type", smallest...), requirements.In("kubernetes.io/arch", "amd64"), requirements.In("karpenter.sh/capacity-type", "on-demand"))
	claim := cloudprovider.NodeClaim{Name: "suite", Token: cluster, Candidates: cloudprovider.CandidatesOf(types, ask, nil, requirements.Keys{})}
	require.NotEmpty(t, claim.Candidates)

	// A profile that was made a moment ago: the entries of the fleet say so.
	for tries := 1; ; tries++ {
		launch, err := p.Create(ctx, claim)
		if err == nil {
			require.NoError(t, api.Wait(ctx, s.moment))
			require.NoError(t, p.Delete(ctx, launch.ID))
			break
		}
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
		require.Less(t, tries, 30, "%v", err)
		if _, message, ok := strings.Cut(err.Error(), "InvalidParameterValue: "); ok {
			s.note(t, api.Entry, "InvalidParameterValue", message)
		}
		require.NoError(t, api.Wait(ctx, s.moment/2))
	}

	settle := func(ctx context.Context) error { return api.Wait(ctx, 12*s.moment) }
	require.NoError(t, cloudtest.Harness{Provider: p, Many: mostAtOnce, Settle: settle}.Check(ctx))
	s.provoke(t, clients, cluster, sdk.ToString(subnets.Subnets[0].SubnetId))

	other := claim.Clone()
	other.Name, other.Token = "protected", cluster+"-protected"
	launch, err := p.Create(ctx, other)
	require.NoError(t, err)
	protect := func(on bool) {
		_, err := clients.EC2.ModifyInstanceAttribute(ctx, &ec2sdk.ModifyInstanceAttributeInput{InstanceId: sdk.String(ec2ID(launch.ID)), DisableApiTermination: &ec2types.AttributeBooleanValue{Value: sdk.Bool(on)}})
		require.NoError(t, err)
	}
	require.NoError(t, api.Wait(ctx, s.moment))
	protect(true)
	defer protect(false)
	err = p.Delete(ctx, launch.ID)
	require.ErrorIs(t, err, cloudprovider.ErrUnauthorized)
	s.note(t, api.Call, api.Reason(err), err.Error())
}

// provoke asks for what is not there, and notes what is said of it.
func (s sandbox) provoke(t *testing.T, clients *api.Clients, cluster, subnet string) {
	t.Helper()
	ctx, c := t.Context(), clients.EC2
	tags := []ec2types.Tag{{Key: sdk.String(aws.ClusterTag), Value: sdk.String(cluster)}, {Key: sdk.String("kubernetes.io/cluster/" + cluster), Value: sdk.String("owned")}}
	template := func() error {
		_, err := c.CreateLaunchTemplate(ctx, &ec2sdk.CreateLaunchTemplateInput{
			LaunchTemplateName: sdk.String("joinery/" + cluster + "/errors"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: sdk.String("ami-0123456789abcdef0")},
			TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: tags}},
		})
		return err
	}
	require.NoError(t, template())
	for code, call := range map[string]func() error{
		"InvalidInstanceID.NotFound": func() error {
			_, err := c.TerminateInstances(ctx, &ec2sdk.TerminateInstancesInput{InstanceIds: []string{"i-0123456789abcdef0"}})
			return err
		},
		"InvalidLaunchTemplateName.NotFoundException": func() error {
			_, err := c.DescribeLaunchTemplates(ctx, &ec2sdk.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{cluster}})
			return err
		},
		"InvalidSubnetID.NotFound": func() error {
			_, err := c.DescribeSubnets(ctx, &ec2sdk.DescribeSubnetsInput{SubnetIds: []string{"subnet-0123456789abcdef0"}})
			return err
		},
		"InvalidAMIID.NotFound": func() error {
			_, err := c.DescribeImages(ctx, &ec2sdk.DescribeImagesInput{ImageIds: []string{"ami-0123456789abcdef0"}})
			return err
		},
		"InvalidPlacementGroup.Unknown": func() error {
			_, err := c.DescribePlacementGroups(ctx, &ec2sdk.DescribePlacementGroupsInput{GroupNames: []string{cluster}})
			return err
		},
		"InvalidCapacityReservationId.NotFound": func() error {
			_, err := c.DescribeCapacityReservations(ctx, &ec2sdk.DescribeCapacityReservationsInput{CapacityReservationIds: []string{"cr-0123456789abcdef0"}})
			return err
		},
		"InvalidLaunchTemplateName.AlreadyExistsException": template,
	} {
		if slices.Contains(s.lacks, code) {
			continue
		}
		a, message, ok := api.AnswerOf(call())
		if assert.True(t, ok, code) {
			assert.Equal(t, code, a.Code, "the answer book expects another answer")
			s.note(t, api.Call, a.Code, message)
		}
	}
	fleet, err := c.CreateFleet(ctx, &ec2sdk.CreateFleetInput{
		Type: ec2types.FleetTypeInstant, TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: sdk.Int32(1), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeOnDemand},
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: sdk.String("joinery/" + cluster + "/errors"), Version: sdk.String("1")},
			Overrides:                   []ec2types.FleetLaunchTemplateOverridesRequest{{InstanceType: "t3.nano", SubnetId: sdk.String(subnet)}},
		}},
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeFleet, Tags: tags}, {ResourceType: ec2types.ResourceTypeInstance, Tags: tags}},
	})
	if a, message, ok := api.AnswerOf(err); ok {
		s.note(t, api.Call, a.Code, message)
		return
	}
	require.NoError(t, err)
	for _, e := range fleet.Errors {
		s.note(t, api.Entry, sdk.ToString(e.ErrorCode), sdk.ToString(e.ErrorMessage))
	}
}

// running are the cluster's machines that have not been ended, as EC2 shows them.
func running(ctx context.Context, clients *api.Clients, cluster string) ([]string, error) {
	var ids []string
	pages := ec2sdk.NewDescribeInstancesPaginator(clients.EC2, &ec2sdk.DescribeInstancesInput{Filters: []ec2types.Filter{
		{Name: sdk.String("tag:" + aws.ClusterTag), Values: []string{cluster}}, {Name: sdk.String("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped"}},
	}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				ids = append(ids, sdk.ToString(i.InstanceId))
			}
		}
	}
	return ids, nil
}

// removeAll ends and deletes all that carries the cluster's name. Machines are looked for by means of its own.
func (s sandbox) removeAll(ctx context.Context, t *testing.T, clients *api.Clients, p *aws.Provider, cluster string) {
	t.Helper()
	for range 10 { // what was launched last may not show yet
		ids, err := running(ctx, clients, cluster)
		assert.NoError(t, err)
		for _, id := range ids {
			_, err := clients.EC2.TerminateInstances(ctx, &ec2sdk.TerminateInstancesInput{InstanceIds: []string{id}})
			assert.NoError(t, err, "end %s by hand", id)
		}
		assert.NoError(t, api.Wait(ctx, s.moment))
	}
	left, err := running(ctx, clients, cluster)
	assert.NoError(t, err)
	assert.Empty(t, left, "end them by hand")
	_, err = p.Maintain(ctx, 0) // launch templates and profiles
	assert.NoError(t, err)
}
