package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pricebench"
)

// TestMain is the program itself where a test starts this binary as one.
func TestMain(m *testing.M) {
	if os.Getenv("BE_LAUNCH") != "" {
		main()
	}
	os.Exit(m.Run())
}

const shopping = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: web}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: node
  subnetSelectorTerms: [{tags: {cluster: harbour}}]
  securityGroupSelectorTerms: [{tags: {cluster: harbour}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 9
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, resources: {requests: {cpu: "1", memory: 1Gi}}}]
`

// shop is a cloud on loopback, and the flags to buy there.
func shop(t *testing.T) (*awstest.Cloud, []string) {
	t.Helper()
	cloud, err := awstest.New(awstest.Config{})
	require.NoError(t, err)
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", awstest.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", awstest.SecretAccessKey)
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(file, []byte(shopping), 0o600))
	return cloud, []string{"-f", file, "--cluster", "harbour", "--endpoint", server.URL, "--lag", "300ms", "--no-timing"}
}

// result is what one run printed and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

func runContext(ctx context.Context, stdin string, args ...string) result {
	var out, errs bytes.Buffer
	cmd := command(strings.NewReader(stdin))
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	code := inputs.End(&errs, cmd.ExecuteContext(ctx))
	return result{out.String(), errs.String(), code}
}

// nothing is left of a purchase.
func nothing(t *testing.T, cloud *awstest.Cloud) {
	t.Helper()
	assert.Empty(t, cloud.Truth())
	assert.Empty(t, cloud.Templates())
	assert.Empty(t, cloud.Profiles())
}

type answer struct {
	Summary struct {
		NewNodes, Plans, Unschedulable int
		PricePerHour                   float64
	}
	NewNodes []struct{ Name, InstanceType, Zone string }
	Launched []struct{ Name, Instance, Image string }
	Refused  []struct{ Name string }
}

func TestLaunchBuysThePlan(t *testing.T) {
	cloud, args := shop(t)
	got := runContext(t.Context(), "y\n", append(args, "-o", "json")...)
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stderr, "[y/N]")
	assert.Contains(t, got.stderr, `cluster "harbour", us-east-1`)
	var b answer
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &b))
	truth := cloud.Truth()
	require.Len(t, truth, b.Summary.NewNodes)
	require.Len(t, b.Launched, len(truth))
	types := map[string]string{}
	for _, m := range truth {
		types["aws:///"+m.Zone+"/"+m.ID] = m.Type
		assert.Equal(t, "web", m.Tags["joinery/pool"])
	}
	for i, l := range b.Launched {
		assert.Equal(t, b.NewNodes[i].InstanceType, types[l.Instance])
	}
	assert.Empty(t, cloud.Templates(), "machines do not need them")
	assert.Len(t, cloud.Profiles(), 1, "machines need it")
}

// Nodes of a plan share fleets as far as the same offerings will do for them, although no two hold the same pods: how many do is logged.
func TestLaunchSharesFleets(t *testing.T) {
	cloud, args := shop(t)
	var b strings.Builder
	b.WriteString(shopping)
	for i, s := range pricebench.Workloads()[0].Draw(400, rand.New(rand.NewPCG(1, 2))) {
		if s.MilliCPU > 3000 || s.MiB > 12000 {
			continue // larger than any type of this cloud
		}
		fmt.Fprintf(&b, "---\n{apiVersion: v1, kind: Pod, metadata: {name: p%d, namespace: shop}, spec: {containers: [{name: a, image: a, resources: {requests: {cpu: %dm, memory: %dMi}}}]}}\n", i, s.MilliCPU, s.MiB)
	}
	require.NoError(t, os.WriteFile(args[1], []byte(b.String()), 0o600))
	got := runContext(t.Context(), "y\n", append(args, "-o", "json")...)
	require.Zero(t, got.code, got.stderr)
	nodes, fleets := len(cloud.Truth()), cloud.Calls("EC2.CreateFleet")
	t.Logf("%d nodes, %d fleet calls: %.1f creates a call", nodes, fleets, float64(nodes)/float64(fleets))
	assert.Less(t, fleets, nodes)
}

// NodeOverlays correct what is planned, what is bought first, and what the bill says.
func TestLaunchFollowsOverlays(t *testing.T) {
	cloud, args := shop(t)
	overlay := filepath.Join(t.TempDir(), "overlay.yaml")
	require.NoError(t, os.WriteFile(overlay, []byte(`
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: agreement}
spec:
  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [r5.large]}]
  price: "0.01"
`), 0o600))
	got := runContext(t.Context(), "y\n", append(args, "-f", overlay, "-o", "json")...)
	require.Zero(t, got.code, got.stderr)
	assert.NotContains(t, got.stderr, "left out")
	var b answer
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &b))
	truth := cloud.Truth()
	require.NotEmpty(t, truth)
	for _, m := range truth {
		assert.Equal(t, "r5.large", m.Type)
	}
	assert.InDelta(t, 0.01*float64(len(truth)), b.Summary.PricePerHour, 1e-9)
	for _, fields := range cloud.Fleets() {
		assert.Equal(t, "prioritized", fields["OnDemandOptions.AllocationStrategy"])
	}
}

// Nothing is bought for pods that run only together while some of them cannot, and the others are bought for as without them.
func TestLaunchBuysNoPartOfAGroup(t *testing.T) {
	cloud, args := shop(t)
	job := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(job, []byte(`
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 3}
---
apiVersion: v1
kind: Pod
metadata: {name: train-0, labels: {scheduling.x-k8s.io/pod-group: train}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: train-1, labels: {scheduling.x-k8s.io/pod-group: train}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
`), 0o600))
	var with, without answer
	got := runContext(t.Context(), "y\n", append(args, "-f", job, "-o", "json")...)
	require.Equal(t, inputs.ExitNotAll, got.code, got.stderr)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &with))
	bought := len(cloud.Truth())
	_, args = shop(t)
	got = runContext(t.Context(), "y\n", append(args, "-o", "json")...)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &without))
	assert.Len(t, without.NewNodes, bought)
	assert.Equal(t, without.NewNodes, with.NewNodes)
	assert.Equal(t, 2, with.Summary.Unschedulable)
}

// What was bought before EC2 refused the rest of a group is given back in the same run.
func TestLaunchKeepsNoPartOfAGroup(t *testing.T) {
	cloud, args := shop(t)
	text := strings.Replace(shopping, "karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]", "node.kubernetes.io/instance-type, operator: In, values: [m5.large]", 1)
	text, _, _ = strings.Cut(text, "---\napiVersion: apps/v1")
	text += "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: train}\nspec: {minMember: 4}\n"
	for i := range 4 {
		text += fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: train-%d, labels: {scheduling.x-k8s.io/pod-group: train}}\n"+
			"spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1500m}}}]}\n", i)
	}
	file := filepath.Join(t.TempDir(), "train.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	args[1] = file
	for i, zone := range cloud.Zones() {
		cloud.SetCapacity("m5.large", zone, "on-demand", 2*min(1, max(0, 1-i)))
	}
	got := runContext(t.Context(), "", append(args, "--yes", "-o", "json")...)
	require.Equal(t, inputs.ExitNotAll, got.code, got.stderr)
	assert.Equal(t, 2, strings.Count(got.stderr, "given back: "), got.stderr)
	assert.Empty(t, cloud.Truth())
	assert.Empty(t, cloud.Templates())
	var a answer
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &a))
	assert.Empty(t, a.NewNodes)
	assert.Equal(t, 4, a.Summary.Unschedulable)
	assert.Contains(t, got.stdout, "bought and given back: 2 nodes that no pod could use")
}

func TestLaunchAsksFirst(t *testing.T) {
	for _, answer := range []string{"n\n", "\n", "", "maybe\n"} {
		cloud, args := shop(t)
		got := runContext(t.Context(), answer, args...)
		assert.Equal(t, inputs.ExitNotAll, got.code)
		assert.Contains(t, got.stderr, "nothing was bought")
		assert.Empty(t, got.stdout)
		assert.Zero(t, cloud.Calls("EC2.CreateFleet"))
		nothing(t, cloud)
	}
}

// What EC2 has none of is planned around, and what that costs is asked for again.
func TestLaunchSurvivesRefusals(t *testing.T) {
	cloud, args := shop(t)
	first := runContext(t.Context(), "", append(args, "--dry-run", "-o", "json")...)
	require.Zero(t, first.code, first.stderr)
	cheap := []string{"m5.large", "m5.xlarge", "m6g.large", "m6a.large", "c5.large", "c5.xlarge", "c6a.xlarge"}
	for _, typ := range cheap {
		for _, zone := range cloud.Zones() {
			cloud.SetCapacity(typ, zone, "on-demand", 0)
		}
	}
	got := runContext(t.Context(), strings.Repeat("yes\n", 9), append(args, "-o", "json")...)
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stderr, "EC2 refused a part")
	var b answer
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &b))
	assert.Greater(t, b.Summary.Plans, 1)
	assert.NotEmpty(t, b.Refused)
	require.NotEmpty(t, cloud.Truth())
	for _, m := range cloud.Truth() {
		assert.Equal(t, "r5.large", m.Type)
	}
	assert.Len(t, cloud.Truth(), b.Summary.NewNodes)

	again, args := shop(t)
	for _, typ := range cheap {
		for _, zone := range again.Zones() {
			again.SetCapacity(typ, zone, "on-demand", 0)
		}
	}
	got = runContext(t.Context(), "y\nn\n", args...)
	assert.Equal(t, inputs.ExitNotAll, got.code, got.stderr)
	nothing(t, again)
}

func TestDryRunChangesNothing(t *testing.T) {
	cloud, args := shop(t)
	got := runContext(t.Context(), "", append(args, "--dry-run")...)
	require.Zero(t, got.code, got.stderr)
	var shown struct {
		Requests []struct {
			Service, Action string
			Input           map[string]any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &shown))
	var actions []string
	for _, r := range shown.Requests {
		actions = append(actions, r.Service+"."+r.Action)
	}
	require.Equal(t, []string{"IAM.CreateInstanceProfile", "IAM.AddRoleToInstanceProfile", "EC2.CreateLaunchTemplate", "EC2.CreateFleet"}, actions)
	fleet := shown.Requests[len(shown.Requests)-1].Input
	assert.Equal(t, "instant", fleet["Type"])
	for action, n := range cloud.CallsByAction() {
		_, name, _ := strings.Cut(action, ".")
		assert.True(t, strings.HasPrefix(name, "Describe") || strings.HasPrefix(name, "Get"), "%s was called %d times", action, n)
	}
	nothing(t, cloud)

	again := runContext(t.Context(), "", append(args, "--dry-run")...)
	assert.Equal(t, strip(got.stdout), strip(again.stdout), "but for the time in the records")
}

// strip takes the records out, which hold the time of the fleet.
func strip(text string) string {
	var kept []string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.Contains(line, `"Value"`) || i == 0 || !strings.Contains(lines[i-1], "joinery/claims-") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// Whenever it is interrupted: nothing is left.
func TestLaunchInterrupted(t *testing.T) {
	calls := 0
	cloud, args := shop(t)
	require.Zero(t, runContext(t.Context(), "y\n", args...).code)
	calls = cloud.Calls("")
	require.Greater(t, calls, 8)
	for n := 1; n <= calls; n++ {
		cloud, args := shop(t)
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		cloud.SetFault(func(awstest.Call) awstest.Fault {
			if seen++; seen == n {
				cancel()
			}
			return awstest.Fault{}
		})
		got := runContext(ctx, "y\n", args...)
		cancel()
		if got.code == 0 { // too late
			assert.Greater(t, n, calls-3)
			assert.NotEmpty(t, cloud.Truth())
			continue
		}
		assert.Equal(t, inputs.ExitInternal, got.code, got.stderr)
		assert.Contains(t, got.stderr, "interrupted; everything was given back", "call %d", n)
		nothing(t, cloud)
	}
}

// The same with the real signal, in the middle of the fleet, whose answer never comes.
func TestLaunchControlC(t *testing.T) {
	cloud, args := shop(t)
	program := exec.CommandContext(t.Context(), os.Args[0], append(args, "--yes")...)
	program.Env = append(os.Environ(), "BE_LAUNCH=1")
	var errs bytes.Buffer
	program.Stderr = &errs
	started := make(chan struct{})
	cloud.SetFault(func(c awstest.Call) awstest.Fault {
		if c.Action != "CreateFleet" || c.N > 1 {
			return awstest.Fault{}
		}
		<-started
		assert.NoError(t, program.Process.Signal(os.Interrupt))
		time.Sleep(100 * time.Millisecond)
		return awstest.Fault{Lost: true}
	})
	require.NoError(t, program.Start())
	close(started)
	require.Error(t, program.Wait())
	assert.Equal(t, inputs.ExitInternal, program.ProcessState.ExitCode(), errs.String())
	assert.Contains(t, errs.String(), "given back: aws:///")
	nothing(t, cloud)
}

func TestLaunchNamesWhatIsMissing(t *testing.T) {
	_, args := shop(t)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no cluster":           {[]string{"-f", args[1]}, "want --cluster"},
		"no manifests":         {[]string{"--cluster", "harbour"}, "want -f"},
		"asked on stdin":       {[]string{"-f", "-", "--cluster", "harbour"}, "add --yes"},
		"a catalogue of files": {append([]string{"--instance-types", "x"}, args...), "leave out --instance-types"},
		"what the CLI printed": {append([]string{"--aws", "x"}, args...), "leave out --instance-types"},
		"a strategy":           {append([]string{"--strategy", "magic"}, args...), "--strategy"},
		"a negative wait":      {slices.Concat(args, []string{"--lag", "-1s"}), "--lag -1s: want a duration"},
		"a wider table":        {append([]string{"-o", "wide"}, args...), "want one of table, json, yaml"},
		"a flag of a dry run":  {append([]string{"--show-user-data"}, args...), "want --dry-run"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runContext(t.Context(), "", test.args...)
			assert.Equal(t, inputs.ExitInput, got.code)
			assert.Contains(t, got.stderr, test.want)
		})
	}
	text := strings.Replace(shopping, "name: default}\nspec:\n  ami", "name: other}\nspec:\n  ami", 1)
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	got := runContext(t.Context(), "", append([]string{"-f", file}, args[2:]...)...)
	assert.Equal(t, inputs.ExitInput, got.code, got.stderr)
}

// A dry run needs credentials. Without them nothing is bought, so nothing is said to be given back.
func TestWithoutCredentials(t *testing.T) {
	_, args := shop(t)
	none := filepath.Join(t.TempDir(), "none")
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for flag, want := range map[string]string{"--dry-run": "a dry run asks EC2 what is for sale, too", "--yes": "nothing was bought"} {
		got := runContext(t.Context(), "", append(slices.Clone(args), flag)...)
		assert.Equal(t, 1, got.code, got.stderr)
		assert.Contains(t, got.stderr, want)
		assert.NotContains(t, got.stderr, "given back")
	}
}
