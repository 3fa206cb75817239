package aws_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	ec2sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ekssdk "github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	iamsdk "github.com/aws/aws-sdk-go-v2/service/iam"
	sqssdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	ssmsdk "github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/events"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/launch"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/profile"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
)

// motoHome is where "make moto" puts moto, an emulator of AWS that others wrote.
func motoHome(t testing.TB) string {
	t.Helper()
	home, err := filepath.Abs(filepath.Join("..", "..", ".cache", "moto"))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(home, "installed")); err != nil {
		t.Skip(`SKIPPED: moto, the independent emulator, is not installed: run "make moto", which needs Python and pip`)
	}
	return home
}

// toMoto leaves out a filter that moto does not know: all machines there are ours.
type toMoto struct{}

func (toMoto) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	body = regexp.MustCompile(`&Filter\.1\.Name=iam-instance-profile\.arn&Filter\.1\.Value\.1=[^&]*`).ReplaceAll(body, nil)
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return http.DefaultTransport.RoundTrip(r)
}

// listening is the line in which moto says where it is.
var listening = regexp.MustCompile(`Running on (http://127\.0\.0\.1:\d+)`)

// moto starts the emulator on a free port, ends it with the test, and returns clients of it.
func moto(t testing.TB) (*api.Clients, api.Config) {
	t.Helper()
	server := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(motoHome(t), "bin", "moto_server"), "-H", "127.0.0.1", "-p", "0")
	server.Env = append(os.Environ(), "PYTHONUNBUFFERED=1")
	out, err := server.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended by itself
		_ = server.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		found := listening.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		go func() { // or moto blocks once the pipe is full
			_, _ = io.Copy(io.Discard, out)
		}()
		config := api.Config{
			Region: "us-east-1", Endpoint: found[1], Credentials: credentials.NewStaticCredentialsProvider("testing", "testing", ""),
			Buckets: api.NewBuckets(func(string, string, bool) api.Limit { return api.Limit{} }), HTTPClient: &http.Client{Transport: toMoto{}},
		}
		clients, err := api.Connect(t.Context(), config)
		require.NoError(t, err)
		return clients, config
	}
	t.Fatal("moto did not start")
	return nil, api.Config{}
}

// motoOptions furnish the emulator with a cluster and what its nodes need.
func motoOptions(t testing.TB) (aws.Options, *api.Clients) {
	t.Helper()
	c, config := moto(t)
	ctx := t.Context()
	subnets, err := c.EC2.DescribeSubnets(ctx, &ec2sdk.DescribeSubnetsInput{})
	require.NoError(t, err)
	var ids []string
	for _, s := range subnets.Subnets[:3] {
		ids = append(ids, sdk.ToString(s.SubnetId))
	}
	_, err = c.EC2.CreateTags(ctx, &ec2sdk.CreateTagsInput{Resources: ids, Tags: []ec2types.Tag{{Key: sdk.String("cluster"), Value: sdk.String("harbour")}}})
	require.NoError(t, err)
	images, err := c.EC2.DescribeImages(ctx, &ec2sdk.DescribeImagesInput{})
	require.NoError(t, err)
	var parameters []nodeclass.Term
	for _, arch := range []ec2types.ArchitectureValues{ec2types.ArchitectureValuesX8664, ec2types.ArchitectureValuesArm64} {
		i := slices.IndexFunc(images.Images, func(i ec2types.Image) bool { return i.Architecture == arch })
		if i < 0 {
			continue
		}
		name := "/nodes/1.33/" + string(arch)
		parameters = append(parameters, nodeclass.Term{SSMParameter: name})
		_, err = c.SSM.PutParameter(ctx, &ssmsdk.PutParameterInput{Name: sdk.String(name), Type: ssmtypes.ParameterTypeString, Value: images.Images[i].ImageId})
		require.NoError(t, err)
	}
	role, err := c.IAM.CreateRole(ctx, &iamsdk.CreateRoleInput{RoleName: sdk.String("node"), AssumeRolePolicyDocument: sdk.String("{}")})
	require.NoError(t, err)
	_, err = c.EKS.CreateCluster(ctx, &ekssdk.CreateClusterInput{
		Name: sdk.String("harbour"), RoleArn: role.Role.Arn, Version: sdk.String("1.33"), ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: ids},
	})
	require.NoError(t, err)
	_, err = c.SQS.CreateQueue(ctx, &sqssdk.CreateQueueInput{QueueName: sdk.String("harbour")})
	require.NoError(t, err)
	nodes := class()
	nodes.AMIs = parameters
	nodes.SecurityGroups = []nodeclass.Term{{Names: []string{"default"}}} // moto gives machines no other
	return aws.Options{
		Cluster: "harbour", Classes: aws.FixedClasses{nodes}, Queue: "harbour", Region: config.Region, Endpoint: config.Endpoint,
		Credentials: config.Credentials, Buckets: config.Buckets, HTTPClient: config.HTTPClient, Known: &aws.Cluster{Name: "harbour", Endpoint: "https://harbour.example.com", CA: "Y2E=", Version: "1.33", ServiceCIDR: "10.100.0.0/16"},
		StaticPrices: true, Undecided: aws.NoHistory, Lag: time.Second,
	}, c
}

// The kit, as far as an emulator without shortages allows it.
func TestMotoConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("moto is slow")
	}
	t.Parallel()
	options, _ := motoOptions(t)
	options.StaticTypes = true // reading a thousand types takes moto a quarter of a minute
	p, err := aws.New(t.Context(), options)
	require.NoError(t, err)
	require.NoError(t, cloudtest.Harness{Provider: p, Many: 5}.Check(t.Context()))
}

// What the provider made is read by the emulator's own means, not by ours.
func TestMotoEverydayCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("moto is slow")
	}
	t.Parallel()
	options, c := motoOptions(t)
	options.Known = nil // EKS tells
	p, err := aws.New(t.Context(), options)
	require.NoError(t, err)
	ctx := t.Context()
	types, err := p.InstanceTypes(ctx, pool())
	require.NoError(t, err)
	ask := requirements.MustOf(requirements.In("node.kubernetes.io/instance-type", "m5.large", "m6g.large"), requirements.In("karpenter.sh/capacity-type", "on-demand"))
	candidates := cloudprovider.CandidatesOf(types, ask, nil, requirements.Keys{})
	require.NotEmpty(t, candidates)
	var claims []cloudprovider.NodeClaim
	for _, name := range []string{"a", "b", "c"} {
		claims = append(claims, cloudprovider.NodeClaim{Name: name, Token: name + "-token", Pool: "web", Candidates: candidates})
	}
	made := map[string]string{}
	for i, r := range p.CreateMany(ctx, claims) {
		require.NoError(t, r.Err)
		made[claims[i].Name] = r.Launch.ID[strings.LastIndex(r.Launch.ID, "/")+1:]
	}

	t.Run("templates", func(t *testing.T) {
		out, err := c.EC2.DescribeLaunchTemplates(ctx, &ec2sdk.DescribeLaunchTemplatesInput{})
		require.NoError(t, err)
		require.Len(t, out.LaunchTemplates, 2, "one for each image")
		for _, l := range out.LaunchTemplates {
			assert.True(t, strings.HasPrefix(sdk.ToString(l.LaunchTemplateName), launch.Prefix("harbour")))
			versions, err := c.EC2.DescribeLaunchTemplateVersions(ctx, &ec2sdk.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: l.LaunchTemplateId})
			require.NoError(t, err)
			require.Len(t, versions.LaunchTemplateVersions, 1)
			data := versions.LaunchTemplateVersions[0].LaunchTemplateData
			assert.Equal(t, profile.Name("us-east-1", "harbour", "node"), sdk.ToString(data.IamInstanceProfile.Name))
			assert.Equal(t, ec2types.LaunchTemplateHttpTokensStateRequired, data.MetadataOptions.HttpTokens)
			require.Len(t, data.BlockDeviceMappings, 1)
			assert.Equal(t, int32(20), sdk.ToInt32(data.BlockDeviceMappings[0].Ebs.VolumeSize))
			assert.Equal(t, ec2types.VolumeTypeGp3, data.BlockDeviceMappings[0].Ebs.VolumeType)
		}
	})
	t.Run("fleet and tags", func(t *testing.T) {
		fleets, err := c.EC2.DescribeFleets(ctx, &ec2sdk.DescribeFleetsInput{})
		require.NoError(t, err)
		require.Len(t, fleets.Fleets, 1, "three claims of one shape")
		out, err := c.EC2.DescribeInstances(ctx, &ec2sdk.DescribeInstancesInput{})
		require.NoError(t, err)
		n := 0
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				n++
				tags := map[string]string{}
				for _, tag := range i.Tags {
					tags[sdk.ToString(tag.Key)] = sdk.ToString(tag.Value)
				}
				assert.Equal(t, "owned", tags["kubernetes.io/cluster/harbour"])
				assert.Equal(t, "web", tags["joinery/pool"])
				assert.Contains(t, tags, "joinery/seal-00")
				assert.Contains(t, []ec2types.InstanceType{"m5.large", "m6g.large"}, i.InstanceType)
			}
		}
		assert.Equal(t, 3, n)
	})
	t.Run("another provider knows whose they are", func(t *testing.T) {
		options.StaticTypes = true
		other, err := aws.New(ctx, options)
		require.NoError(t, err)
		list, err := other.List(ctx)
		require.NoError(t, err)
		have := map[string]string{}
		for _, i := range list {
			have[i.Claim] = i.ID[strings.LastIndex(i.ID, "/")+1:]
			assert.Equal(t, i.Claim+"-token", i.Token)
		}
		assert.Equal(t, made, have)
	})
	t.Run("profile", func(t *testing.T) {
		out, err := c.IAM.GetInstanceProfile(ctx, &iamsdk.GetInstanceProfileInput{InstanceProfileName: sdk.String(profile.Name("us-east-1", "harbour", "node"))})
		require.NoError(t, err)
		require.Len(t, out.InstanceProfile.Roles, 1)
		assert.Equal(t, "node", sdk.ToString(out.InstanceProfile.Roles[0].RoleName))
	})
	t.Run("queue", func(t *testing.T) {
		url, err := c.SQS.GetQueueUrl(ctx, &sqssdk.GetQueueUrlInput{QueueName: sdk.String("harbour")})
		require.NoError(t, err)
		event, err := json.Marshal(map[string]any{
			"version": "0", "id": "e-1", "source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", "time": "2026-01-01T00:00:00Z",
			"detail": map[string]string{"instance-id": made["b"], "instance-action": "terminate"},
		})
		require.NoError(t, err)
		send := func(body string) {
			_, err = c.SQS.SendMessage(ctx, &sqssdk.SendMessageInput{QueueUrl: url.QueueUrl, MessageBody: sdk.String(body)})
			require.NoError(t, err)
		}
		for _, body := range []string{string(event), "no JSON", `{"version":"0","id":"e-2","source":"aws.s3","detail-type":"Object Created","time":"2026-01-01T00:00:00Z"}`} {
			send(body)
		}
		list, cursor, err := p.Interruptions(ctx, "")
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, interruption.SpotInterrupted, list[0].Kind)
		assert.True(t, strings.HasSuffix(list[0].Instance, made["b"]))
		send("what the reading needs not wait for")
		_, _, err = p.Interruptions(ctx, cursor)
		require.NoError(t, err)
		left, err := c.SQS.GetQueueAttributes(ctx, &sqssdk.GetQueueAttributesInput{QueueUrl: url.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll}})
		require.NoError(t, err)
		assert.Equal(t, "0", left.Attributes["ApproximateNumberOfMessages"])
		assert.Equal(t, "0", left.Attributes["ApproximateNumberOfMessagesNotVisible"])
	})
	t.Run("names of nodes", func(t *testing.T) {
		list, err := p.List(ctx)
		require.NoError(t, err)
		for _, i := range list {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + i.Claim}, Spec: corev1.NodeSpec{ProviderID: i.ID}, Status: corev1.NodeStatus{Capacity: i.Capacity}}
			require.NoError(t, p.Registered(ctx, i.ID, node))
		}
		out, err := c.EC2.DescribeTags(ctx, &ec2sdk.DescribeTagsInput{Filters: []ec2types.Filter{{Name: sdk.String("key"), Values: []string{"Name"}}, {Name: sdk.String("resource-type"), Values: []string{"instance"}}}})
		require.NoError(t, err)
		have := map[string]string{}
		for _, tag := range out.Tags {
			have[strings.TrimPrefix(sdk.ToString(tag.Value), "node-")] = sdk.ToString(tag.ResourceId)
		}
		assert.Equal(t, made, have)
	})
	t.Run("status checks", func(t *testing.T) {
		source, err := events.Open(ctx, c, events.Options{StatusChecks: true})
		require.NoError(t, err)
		list, err := source.Checks(ctx, owner{})
		require.NoError(t, err)
		assert.Empty(t, list, "machines of an emulator are in good health")
	})
	t.Run("terminate", func(t *testing.T) {
		list, err := p.List(ctx)
		require.NoError(t, err)
		for _, i := range list {
			require.NoError(t, p.Delete(ctx, i.ID))
		}
		out, err := c.EC2.DescribeInstances(ctx, &ec2sdk.DescribeInstancesInput{Filters: []ec2types.Filter{{Name: sdk.String("instance-state-name"), Values: []string{"pending", "running"}}}})
		require.NoError(t, err)
		assert.Empty(t, out.Reservations)
	})
	t.Run("templates are collected", func(t *testing.T) {
		gone, err := p.Maintain(ctx, 0)
		require.NoError(t, err)
		assert.Len(t, gone, 3, "two templates and the profile")
		out, err := c.EC2.DescribeLaunchTemplates(ctx, &ec2sdk.DescribeLaunchTemplatesInput{})
		require.NoError(t, err)
		assert.Empty(t, out.LaunchTemplates)
	})
}

// owner owns no machines.
type owner struct{}

func (owner) Owns(context.Context, []string) (map[string]string, error) { return nil, nil }
func (owner) Reserved() map[string]string                               { return nil }
