package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

// call runs the program.
func call(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := command(strings.NewReader(stdin))
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	code = inputs.End(&errs, cmd.Execute())
	return out.String(), errs.String(), code
}

// types runs the program and reads its JSON.
func types(t *testing.T, stdin string, args ...string) map[string]record {
	t.Helper()
	stdout, stderr, code := call(t, stdin, append(args, "-o", "json")...)
	require.Zero(t, code, stderr)
	var list []record
	require.NoError(t, json.Unmarshal([]byte(stdout), &list))
	out := map[string]record{}
	for _, r := range list {
		out[r.Name] = r
	}
	return out
}

const m5 = "node.kubernetes.io/instance-type in (m5.large)"

func TestOneType(t *testing.T) {
	list := types(t, "", "--requirement", m5)
	require.Len(t, list, 1)
	got := list["m5.large"]
	assert.Equal(t, "amd64", got.Architecture)
	assert.Equal(t, map[string]string{"cpu": "1930m", "memory": "6903Mi", "pods": "29", "ephemeral-storage": "17Gi", "vpc.amazonaws.com/pod-eni": "9", "attachable-volumes-csi-ebs.csi.aws.com": "24"}, got.Allocatable)
	assert.Equal(t, map[string]string{"cpu": "70m", "memory": "574Mi", "ephemeral-storage": "1Gi"}, got.Overhead.KubeReserved)
	assert.Equal(t, map[string]string{}, got.Overhead.SystemReserved)
	assert.Equal(t, "m", got.Labels["karpenter.k8s.aws/instance-category"])
	require.Len(t, got.Offerings, 10)
	assert.Equal(t, offering{Zone: "us-east-1a", CapacityType: "on-demand", PricePerHour: 0.096, Available: true, Prices: "EC2 on-demand us-east-1 of 2026-07-06"}, got.Offerings[0])
	assert.Contains(t, got.Offerings[1].Prices, "(estimated)")
}

func TestRequirementsCombine(t *testing.T) {
	list := types(t, "", "--requirement", "karpenter.k8s.aws/instance-family in (m5, m6g), karpenter.sh/capacity-type in (spot)", "--requirement", "kubernetes.io/arch in (arm64), failure-domain.beta.kubernetes.io/zone in (us-east-1b)")
	assert.NotEmpty(t, list)
	for name, r := range list {
		assert.True(t, strings.HasPrefix(name, "m6g."), name)
		require.Len(t, r.Offerings, 1, name)
		assert.Equal(t, "us-east-1b", r.Offerings[0].Zone)
		assert.Equal(t, "spot", r.Offerings[0].CapacityType)
	}
}

func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		args                []string
		memory, pods, store string
	}{
		"Bottlerocket": {[]string{"--ami-family", "bottlerocket", "--max-pods", "110"}, "6012Mi", "110", "17Gi"},
		"Windows":      {[]string{"--ami-family", "Windows2022"}, "6012Mi", "110", "44Gi"},
		"disk":         {[]string{"--disk", "50Gi"}, "6903Mi", "29", "44Gi"},
		"reserved":     {[]string{"--reserved-enis", "1"}, "6903Mi", "20", "17Gi"},
		"overhead":     {[]string{"--vm-memory-overhead", "0"}, "7518Mi", "29", "17Gi"},
		"per core":     {[]string{"--pods-per-core", "4"}, "6903Mi", "8", "17Gi"},
	} {
		got := types(t, "", append(c.args, "--requirement", m5)...)["m5.large"]
		assert.Equal(t, c.memory, got.Allocatable["memory"], name)
		assert.Equal(t, c.pods, got.Allocatable["pods"], name)
		assert.Equal(t, c.store, got.Allocatable["ephemeral-storage"], name)
	}
	raid := types(t, "", "--raid0", "--requirement", "node.kubernetes.io/instance-type in (i4i.xlarge)")["i4i.xlarge"]
	assert.Equal(t, "937G", raid.Capacity["ephemeral-storage"])
}

const manifest = `
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: default}
spec:
  requirements:
    - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, p3]}
    - {key: team, operator: In, values: [blue]}
  kubeletConfiguration: {maxPods: 20, evictionSoft: {memory.available: 500Mi}, evictionSoftGracePeriod: {memory.available: 1m}}
  providerRef: {name: disks}
---
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: disks}
spec:
  amiFamily: AL2
  subnetSelector: {a: b}
  securityGroupSelector: {a: b}
  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 50Gi}}]
`

func TestManifests(t *testing.T) {
	list := types(t, manifest, "-f", "-")
	got := list["m5.large"]
	assert.Equal(t, "20", got.Allocatable["pods"])
	assert.Equal(t, "44Gi", got.Allocatable["ephemeral-storage"])
	assert.Equal(t, "6503Mi", got.Allocatable["memory"], "soft eviction counts in v1alpha5")
	for name, r := range list {
		assert.Regexp(t, `^(m5|p3)\.`, name)
		for _, o := range r.Offerings {
			assert.Equal(t, "on-demand", o.CapacityType, "the provider's default")
		}
	}
	assert.True(t, list["p3.2xlarge"].Retired)
	assert.True(t, list["p3.2xlarge"].Offerings[0].Available, "retired, but named")

	_, stderr, code := call(t, manifest, "-f", "-", "--pool", "defalt")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, `did you mean "default"?`)
	_, stderr, code = call(t, manifest+"---\n"+strings.Replace(manifest[:strings.Index(manifest, "---")], "name: default", "name: other", 1), "-f", "-")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, "choose one by --pool: default, other")
	alone := manifest[strings.Index(manifest, "---"):]
	assert.Equal(t, "44Gi", types(t, alone, "-f", "-", "--requirement", m5)["m5.large"].Allocatable["ephemeral-storage"], "a node class alone will do")
}

func TestOrder(t *testing.T) {
	family := []string{"--requirement", "karpenter.k8s.aws/instance-family in (c5, r5)", "--limit", "3"}
	for sort, want := range map[string]string{
		"price":  "c5.large, r5.large, c5.xlarge",
		"name":   "c5.12xlarge, c5.18xlarge, c5.24xlarge",
		"cpu":    "c5.large, r5.large, c5.xlarge",
		"memory": "c5.large, c5.xlarge, c5.2xlarge",
	} {
		stdout, stderr, code := call(t, "", append(family, "--sort", sort, "-o", "json")...)
		require.Zero(t, code)
		assert.Contains(t, stderr, "more types")
		var list []record
		require.NoError(t, json.Unmarshal([]byte(stdout), &list))
		var names []string
		for _, r := range list {
			names = append(names, r.Name)
		}
		assert.Equal(t, want, strings.Join(names, ", "), sort)
	}
}

func TestCatalogueFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	kwok := file("kwok.json", `[{"name":"c-4x","architecture":"amd64","resources":{"cpu":"4"},"offerings":[{"Price":0.1,"Requirements":[{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot"]}]}]}]`)
	got := types(t, "", "--instance-types", kwok, "--requirement", "karpenter.kwok.sh/instance-family in (c)")
	assert.Equal(t, "4", got["c-4x"].Allocatable["cpu"])
	assert.InDelta(t, 0.1, got["c-4x"].Offerings[0].PricePerHour, 1e-12)

	described := file("answer.json", `{"InstanceTypes":[{"InstanceType":"m5.large","VCpuInfo":{"DefaultVCpus":2},"MemoryInfo":{"SizeInMiB":8192},"ProcessorInfo":{"SupportedArchitectures":["x86_64"]},
	  "SupportedVirtualizationTypes":["hvm"],"SupportedUsageClasses":["on-demand"],"NetworkInfo":{"MaximumNetworkInterfaces":3,"Ipv4AddressesPerInterface":10}}]}`)
	got = types(t, "", "--describe-instance-types", described)
	require.Len(t, got, 1)
	assert.Equal(t, "6903Mi", got["m5.large"].Allocatable["memory"])
	assert.Equal(t, "9", got["m5.large"].Allocatable["vpc.amazonaws.com/pod-eni"], "from the embedded catalogue")
	assert.InDelta(t, 0.096, got["m5.large"].Offerings[0].PricePerHour, 1e-12)

	_, stderr, code := call(t, "", "--instance-types", file("bad.json", `[{"nam":"x"}]`))
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, `did you mean "name"?`)
	_, stderr, code = call(t, "", "--describe-instance-types", file("bad2.json", `{}`))
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, "InstanceTypes")
	_, _, code = call(t, "", "--instance-types", filepath.Join(dir, "missing.json"))
	assert.Equal(t, 2, code)
}

func TestBadUsage(t *testing.T) {
	for want, args := range map[string][]string{
		`did you mean "price"?`:                             {"--sort", "prices"},
		`did you mean "us-east-1"?`:                         {"--region", "us-esat-1"},
		`did you mean "AL2023"?`:                            {"--ami-family", "AL2024"},
		`did you mean "karpenter.k8s.aws/instance-family"?`: {"--requirement", "karpenter.k8s.aws/instance-famly in (m5)"},
		`no type has the label "instance-category" (did you mean "karpenter.k8s.aws/instance-category"?)`: {"--requirement", "instance-category in (m)"},
		"--requirement:":                         {"--requirement", "a in ("},
		"nothing in common":                      {"--requirement", "a in (b)", "--requirement", "a in (c)"},
		"unknown flag":                           {"--nope"},
		"--limit -1":                             {"--limit", "-1"},
		"--max-pods -1":                          {"--max-pods", "-1"},
		"--disk \"huge\"":                        {"--disk", "huge"},
		`--vm-memory-overhead "2": want a share`: {"--vm-memory-overhead", "2"},
		`--reserved-enis "-1": want a count`:     {"--reserved-enis", "-1"},
		"want one of table":                      {"-o", "xml"},
		`'node.kubernetes.io/instance-type in (m5.large)', and name files with -f`:  {"m5.large"},
		`'karpenter.k8s.aws/instance-family in (m6a)', and name files with -f`:      {"m6a"},
		`'karpenter.k8s.aws/instance-family in (m6a)', and name files with -f (see`: {"m6a.*"},
		"-f has the node class: leave out --ami-family, --reserved-enis, --disk, --raid0 and --vm-memory-overhead": {
			"-f", "x", "--ami-family", "AL2", "--reserved-enis", "1", "--disk", "50Gi", "--raid0", "--vm-memory-overhead", "0.1",
		},
		"--instance-types says what its types leave for pods: leave out --disk and --max-pods": {"--instance-types", "x", "--disk", "50Gi", "--max-pods", "9"},
		"--pool chooses a pool of files: want -f, too":                                         {"--pool", "default"},
		"--pods and --scheduler-config are about pods":                                         {"--scheduler-config", "x"},
		"--instance-types and --region cannot be combined":                                     {"--instance-types", "x", "--region", "eu-west-1"},
		`"m5,c5": choose types with --requirement, and name files with -f (see `:               {"m5,c5"},
	} {
		stdout, stderr, code := call(t, "", args...)
		assert.Equal(t, 2, code, "%s: %s", args, stderr)
		assert.Contains(t, stderr, want)
		assert.Empty(t, stdout, "%s", args)
	}
}

func TestNothingFoundSaysWhy(t *testing.T) {
	for want, ask := range map[string]string{
		`no type has "m5.larg" (did you mean "m5.large"?)`: "node.kubernetes.io/instance-type in (m5.larg)",
		"is a zone of region us-west-2":                    "topology.kubernetes.io/zone in (us-west-2a)",
		"is not offered in us-east-1, but in":              "node.kubernetes.io/instance-type in (hpc6a.48xlarge)",
	} {
		stdout, stderr, code := call(t, "", "--requirement", ask, "-o", "json")
		assert.Zero(t, code)
		assert.Equal(t, "[]\n", stdout)
		assert.Contains(t, stderr, want)
	}
	stdout, _, _ := call(t, "", "--requirement", "node.kubernetes.io/instance-type in (m5.larg)")
	assert.Equal(t, "no types\n", stdout)
}

func TestFormats(t *testing.T) {
	args := []string{"--requirement", "karpenter.k8s.aws/instance-category in (p, inf), kubernetes.io/arch in (amd64)"}
	table, _, code := call(t, "", args...)
	require.Zero(t, code)
	for _, want := range []string{"TYPE", "8 h100", "inferentia2", "retired", "available", "EC2 on-demand us-east-1 of 2026-07-06"} {
		assert.Contains(t, table, want)
	}
	single, _, code := call(t, "", "--requirement", "node.kubernetes.io/instance-type in (m5.large)")
	require.Zero(t, code)
	assert.Contains(t, single, "\n1 type, 1 available   ")
	wide, _, _ := call(t, "", append(args, "-o", "wide")...)
	assert.Contains(t, wide, "OVERHEAD CPU")
	fromYAML, _, _ := call(t, "", append(args, "-o", "yaml")...)
	asJSON, _, _ := call(t, "", append(args, "-o", "json", "--no-timing")...)
	converted, err := yaml.YAMLToJSON([]byte(fromYAML))
	require.NoError(t, err)
	assert.JSONEq(t, asJSON, string(converted))
	again, _, _ := call(t, "", append(args, "-o", "json")...)
	assert.Equal(t, asJSON, again, "same input, same bytes")
	only, _, _ := call(t, "", append(args, "--available", "-o", "json")...)
	assert.Contains(t, asJSON, `"retired"`)
	assert.False(t, strings.Contains(only, `"retired"`), "retired types are not available unless named")
}
