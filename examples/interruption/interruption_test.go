package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

var update = flag.Bool("update", false, "rewrite the expected output; commit only what you understand")

type result struct {
	stdout, stderr string
	code           int
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := command(strings.NewReader(""))
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	code := inputs.End(&errs, cmd.ExecuteContext(t.Context()))
	return result{out.String(), errs.String(), code}
}

func TestSample(t *testing.T) {
	for _, format := range []string{"table", "json", "yaml"} {
		got := run(t, "--no-timing", "-o", format)
		require.Zero(t, got.code, got.stderr)
		path := filepath.Join("testdata", "sample."+format)
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(got.stdout), 0o600))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), got.stdout)
		assert.Equal(t, got, run(t, "--no-timing", "-o", format))
	}
}

// From a queue the answer is the same as from the file, and the messages stay.
func TestQueue(t *testing.T) {
	cloud, err := awstest.New(awstest.Config{})
	require.NoError(t, err)
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", awstest.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", awstest.SecretAccessKey)
	for line := range strings.Lines(sampleMessages) {
		cloud.Send(line)
	}
	before := cloud.Queued()
	got := run(t, "--no-timing", "-o", "json", "--queue", "harbour", "--endpoint", server.URL)
	require.Zero(t, got.code, got.stderr)
	assert.Equal(t, before, cloud.Queued())
	var fromQueue, fromFile report
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &fromQueue))
	require.NoError(t, json.Unmarshal([]byte(run(t, "--no-timing", "-o", "json").stdout), &fromFile))
	require.Len(t, fromQueue.Problems, 1)
	fromQueue.Problems, fromFile.Problems = nil, nil // they name the messages
	assert.Equal(t, fromFile, fromQueue)

	got = run(t, "--queue", "none", "--endpoint", server.URL)
	assert.Equal(t, inputs.ExitInternal, got.code)
	assert.Contains(t, got.stderr, `"none"`)
}

// Status checks that fail are found without a queue, for the nodes of the cluster only, and their pods are planned for.
func TestStatusChecks(t *testing.T) {
	cloud, err := awstest.New(awstest.Config{})
	require.NoError(t, err)
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", awstest.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", awstest.SecretAccessKey)
	mine := []nodeclass.Term{{Tags: []nodeclass.Tag{{Key: "cluster", Values: []string{"harbour"}}}}}
	reach := cloud.API()
	p, err := aws.New(t.Context(), aws.Options{
		Cluster: "harbour", Region: reach.Region, HTTPClient: reach.HTTPClient, Credentials: reach.Credentials, Undecided: aws.NoHistory,
		Classes: aws.FixedClasses{{Name: "default", Family: ec2.AL2023, Role: "node", AMIs: []nodeclass.Term{{Alias: "al2023@latest"}}, Subnets: mine, SecurityGroups: mine}},
	})
	require.NoError(t, err)
	sold, err := p.InstanceTypes(t.Context(), nodepool.NodePool{})
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		_, err = p.Create(t.Context(), cloudprovider.NodeClaim{Name: name, Token: name, Candidates: cloudprovider.CandidatesOf(sold, requirements.Set{}, nil, requirements.Keys{})[:1]})
		require.NoError(t, err)
	}
	machines := cloud.Truth()
	require.Len(t, machines, 2)
	for _, m := range machines { // the second is nobody's
		cloud.Schedule(m.ID, "instance-retirement", "The instance is running on degraded hardware", time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	first := regexp.MustCompile(`i-[0-9a-f]+`).FindString(sample)
	require.NotEmpty(t, first)
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(sample, first, machines[0].ID)), 0o600))
	got := run(t, "--no-timing", "-o", "json", "-f", file, "--status-checks", "--endpoint", server.URL)
	require.Zero(t, got.code, got.stderr)
	var r report
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	require.Len(t, r.Events, 1)
	assert.Equal(t, "MaintenanceScheduled", r.Events[0].Kind)
	assert.Equal(t, "Drain", r.Events[0].Response)
	assert.Contains(t, r.Events[0].Instance, machines[0].ID)
	cloud.SetFault(func(awstest.Call) awstest.Fault { return awstest.Fault{Code: "UnauthorizedOperation", Message: "no"} })
	got = run(t, "-f", file, "--status-checks", "--endpoint", server.URL)
	assert.Equal(t, inputs.ExitInternal, got.code)
	assert.Contains(t, got.stderr, "allow ec2:DescribeInstanceStatus")
}

// Pods of daemons stay with their node, and what has no place is said, with exit 3.
func TestNoPlace(t *testing.T) {
	text := strings.Replace(sample, "values: [m5, m6a, c6a]", "values: [none]", 1)
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	got := run(t, "--no-timing", "-f", file)
	assert.Equal(t, inputs.ExitNotAll, got.code, got.stderr)
	assert.Contains(t, got.stdout, "no place for shop/search-0")
	assert.NotContains(t, got.stdout, "agent-a")
}

// A displaced pod of another scheduler is named with the reason, and nothing is planned for it.
func TestPodsThatAreNotOursAreNamed(t *testing.T) {
	before, after, ok := strings.Cut(sample, "{name: search-0, namespace: shop}")
	require.True(t, ok)
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(file, []byte(before+"{name: search-0, namespace: shop}"+strings.Replace(after, "nodeName:", "schedulerName: batch\n  nodeName:", 1)), 0o600))
	got := run(t, "--no-timing", "-f", file)
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, "shop/search-0 is not ours to place: scheduler \"batch\" places it\n")
	assert.Contains(t, run(t, "--no-timing", "-f", file, "-o", "json").stdout, `"pod": "shop/search-0"`)
}

// Nothing is bought for the displaced pods of a group that cannot be whole again.
func TestDisplacedPodsOfAGroup(t *testing.T) {
	text := sample
	for _, name := range []string{"cart-0", "cart-1"} {
		text = strings.Replace(text, "{name: "+name+", namespace: shop}", "{name: "+name+", namespace: shop, labels: {scheduling.x-k8s.io/pod-group: cart}}", 1)
	}
	for minimum, want := range map[string]int{"2": inputs.ExitOK, "3": inputs.ExitNotAll} {
		file := filepath.Join(t.TempDir(), "cluster.yaml")
		group := "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: cart, namespace: shop}\nspec: {minMember: " + minimum + "}\n"
		require.NoError(t, os.WriteFile(file, []byte(text+group), 0o600))
		got := run(t, "--no-timing", "-f", file)
		assert.Equal(t, want, got.code, got.stderr)
		assert.Equal(t, want == inputs.ExitNotAll, strings.Contains(got.stdout, "no place for shop/cart-0"))
	}
}

func TestMalformedFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"two sources":   {[]string{"--queue", "a", "--messages", "b"}, "cannot be combined"},
		"no queue":      {[]string{"--endpoint", "http://127.0.0.1:1"}, "add --queue"},
		"no such file":  {[]string{"--messages", "none.jsonl"}, "none.jsonl"},
		"nothing":       {[]string{"--most", "0"}, "want 1 or more"},
		"unknown flag":  {[]string{"--kueue", "a"}, "--kueue"},
		"stray":         {[]string{"now"}, "now"},
		"no such input": {[]string{"-f", "none.yaml"}, "none.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, test.args...)
			assert.Equal(t, inputs.ExitInput, got.code)
			assert.Contains(t, got.stderr, test.want)
			assert.Empty(t, got.stdout)
		})
	}
}

// Many events about one node drain it once.
func TestEventsAboutOneNode(t *testing.T) {
	line, _, _ := strings.Cut(sampleMessages, "\n")
	file := filepath.Join(t.TempDir(), "events.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat(line+"\n", 40)), 0o600))
	got := run(t, "--no-timing", "-o", "json", "--messages", file)
	require.Zero(t, got.code, got.stderr)
	var r report
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	assert.Equal(t, 40, r.Summary.Events)
	assert.Equal(t, 1, r.Summary.Drained)
	pods := 0
	for _, n := range r.Replacements {
		pods += len(n.Pods)
	}
	for _, n := range r.Existing {
		pods += len(n.Pods)
	}
	assert.Equal(t, 2, pods)
}

// Messages are found in every form in which AWS prints them, and each is counted once.
func TestFormsOfMessages(t *testing.T) {
	list := strings.Split(strings.TrimSpace(sampleMessages), "\n")
	var values, bodies, notes []any
	pretty := ""
	for _, line := range list {
		var v any
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		text, err := json.MarshalIndent(v, "", "    ")
		require.NoError(t, err)
		pretty += string(text) + "\n"
		values = append(values, v)
		bodies = append(bodies, map[string]any{"MessageId": "m", "ReceiptHandle": "h", "Body": line})
		notes = append(notes, map[string]any{"Type": "Notification", "TopicArn": "arn", "Message": line})
	}
	marshal := func(v any) string {
		text, err := json.MarshalIndent(v, "", "  ")
		require.NoError(t, err)
		return string(text)
	}
	read := func(text string) (report, result) {
		file := filepath.Join(t.TempDir(), "messages")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		got := run(t, "--no-timing", "-o", "json", "--messages", file)
		var r report
		if got.stdout != "" {
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
		}
		return r, got
	}
	want, _ := read(sampleMessages)
	for name, text := range map[string]string{
		"one a line":      sampleMessages,
		"with CRLF":       strings.ReplaceAll(sampleMessages, "\n", "\r\n"),
		"as documented":   pretty,
		"a list":          marshal(values),
		"answer of SQS":   marshal(map[string]any{"Messages": bodies}),
		"several answers": marshal(map[string]any{"Messages": bodies[:1]}) + "\n" + marshal(map[string]any{"Messages": bodies[1:]}),
		"by SNS":          marshal(notes),
		"byte order mark": "\xef\xbb\xbf" + sampleMessages,
	} {
		got, end := read(text)
		assert.Zero(t, end.code, "%s: %s", name, end.stderr)
		assert.Equal(t, want.Summary, got.Summary, name)
		assert.Equal(t, want.Events, got.Events, name)
	}
	half, end := read("broken { line\n" + sampleMessages)
	assert.Zero(t, end.code, end.stderr)
	assert.Equal(t, 1+want.Summary.Malformed, half.Summary.Malformed)
	assert.Equal(t, want.Events, half.Events)
	for _, text := range []string{"no message\nat all\n", `{"some": "object"}`, "instance i-1 is going away"} {
		_, end := read(text)
		assert.Equal(t, inputs.ExitInput, end.code, text)
		assert.Contains(t, end.stderr, "no part of it is a message")
	}
}
