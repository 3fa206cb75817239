package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline/golden"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/live"
)

// cluster has a pool of large machines on demand, a pod that goes to one, a pod that no pool is for, and an empty node.
const cluster = `
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: default, creationTimestamp: "2026-01-01T00:00:00Z"}, spec: {disruption: {consolidateAfter: 0s}, template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, {key: node.kubernetes.io/instance-type, operator: In, values: [m6a.large]}]}}}}
---
{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: default}, spec: {role: nodes, amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{tags: {a: b}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-0, namespace: shop}, spec: {nodeSelector: {disk: fast}, containers: [{name: web, image: web, resources: {requests: {cpu: "1"}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: odd, namespace: other, uid: "1"}, spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: [many]}]}]}}}, containers: [{name: a, image: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web-0, namespace: default}, spec: {nodeSelector: {topology.kubernetes.io/zone: us-east-1b}, containers: [{name: web, image: web, resources: {requests: {cpu: "1"}}}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1, creationTimestamp: "2026-01-01T00:00:00Z", labels: {karpenter.sh/nodepool: default, karpenter.sh/registered: "true", karpenter.sh/initialized: "true", karpenter.sh/capacity-type: on-demand, node.kubernetes.io/instance-type: m6a.large, topology.kubernetes.io/zone: us-east-1a, kubernetes.io/os: linux, kubernetes.io/arch: amd64}}, spec: {providerID: "aws:///us-east-1a/i-0123456789abcdef0"}, status: {allocatable: {cpu: 1930m, memory: 7Gi, pods: "29"}, capacity: {cpu: "2", memory: 8Gi, pods: "29"}, conditions: [{type: Ready, status: "True"}]}}`

func fake() (live.Cluster, error) {
	server := &clienttesting.Fake{}
	lists := map[schema.GroupVersionResource]string{}
	for _, k := range [][3]string{{"v1", "Pod", "pods"}, {"v1", "Node", "nodes"}, {"karpenter.sh/v1", "NodePool", "nodepools"}, {"karpenter.k8s.aws/v1", "EC2NodeClass", "ec2nodeclasses"}} {
		server.Resources = append(server.Resources, &metav1.APIResourceList{GroupVersion: k[0], APIResources: []metav1.APIResource{{Name: k[2], Kind: k[1], Verbs: []string{"list"}}}})
		version, _ := schema.ParseGroupVersion(k[0])
		lists[version.WithResource(k[2])] = k[1] + "List"
	}
	var all []runtime.Object
	for text := range strings.SplitSeq(cluster, "---") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			return live.Cluster{}, err
		}
		if o.GetKind() == "EC2NodeClass" { // which the fake would call ec2nodeclasss
			continue
		}
		all = append(all, o)
	}
	return live.Cluster{Discovery: &fakediscovery.FakeDiscovery{Fake: server}, Objects: fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, all...)}, nil
}

func run(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: here, contexts: [{name: here, context: {cluster: here, namespace: shop}}], clusters: [{name: here, cluster: {server: "https://127.0.0.1:1"}}]}`), 0o600))
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &file
	return golden.Run(t, command(flags, fake), args...)
}

// An error says which file is missing: the one that --kubeconfig names, not standard input.
func TestNoKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nowhere")
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &file
	for _, args := range [][]string{{"why-pending"}, {"plan"}, {"consolidate"}, {"export"}} {
		_, errs, code := golden.Run(t, command(flags, connect(flags)), args...)
		assert.Equal(t, inputs.ExitInternal, code, args)
		assert.Contains(t, errs, "read the cluster: stat "+file+": no such file or directory", args)
	}
}

// A pod is looked for in the namespace of the flag, or else of the context, as kubectl does it.
func TestWhyPending(t *testing.T) {
	out, errs, code := run(t, "why-pending", "web-0")
	assert.Equal(t, inputs.ExitNotAll, code, errs)
	assert.Contains(t, out, "shop/web-0 asks cpu 1")
	assert.Contains(t, out, "disk")
	out, errs, code = run(t, "why-pending", "pod/web-0", "-n", "default")
	assert.Equal(t, inputs.ExitOK, code, errs)
	assert.Contains(t, out, "goes to new node default-0: m6a.large in us-east-1b")
	out, errs, code = run(t, "why-pending")
	assert.Equal(t, inputs.ExitNotAll, code, errs)
	assert.Contains(t, out, "1 of 3 pods placed")
	assert.Contains(t, out, "other/odd can't be placed: it cannot be read: ", "a pod that an API server has stored stops no other")
	assert.Contains(t, out, "shop/web-0 can't be placed")
	_, errs, code = run(t, "why-pending", "web-1")
	assert.Equal(t, inputs.ExitInput, code)
	assert.Contains(t, errs, `did you mean "shop/web-0"`)
}

func TestPlan(t *testing.T) {
	out, errs, code := run(t, "plan", "--no-timing")
	assert.Equal(t, inputs.ExitNotAll, code, errs)
	assert.Contains(t, out, "1 new node")
	pool := filepath.Join(t.TempDir(), "pool.yaml")
	require.NoError(t, os.WriteFile(pool, []byte(`{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: fast}, spec: {template: {metadata: {labels: {disk: fast}}, spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m6a.large]}]}}}}`), 0o600))
	out, errs, code = run(t, "plan", "--diff", pool)
	assert.Equal(t, inputs.ExitOK, code, errs)
	assert.Contains(t, out, "shop/web-0 gains a place")
	_, errs, code = run(t, "plan", "-f", "nowhere")
	assert.Equal(t, inputs.ExitInput, code)
	assert.Contains(t, errs, "nowhere")
}

// A word or a flag that the plugin does not know is refused, with what may have been meant and where there is help.
func TestBadUsage(t *testing.T) {
	for want, args := range map[string][]string{
		`"plna": no such command (did you mean "plan"?) (see kubectl joinery --help)`:              {"plna"},
		`"why-pendng": no such command (did you mean "why-pending"?) (see kubectl joinery --help)`: {"why-pendng"},
		`"zzzzzzzz": no such command (see kubectl joinery --help)`:                                 {"zzzzzzzz"},
		`in -f (see kubectl joinery export --help)`:                                                {"export", "-f", "x"},
		`(see kubectl joinery plan --help)`:                                                        {"plan", "everything"},
		"--context: -f names files, so no cluster is read; leave it out, or add -f -":              {"plan", "-f", "x", "--context", "here"},
		"-f names files, so no cluster is read":                                                    {"why-pending", "--context", "here", "-f", "x", "web-0"},
		"--sample names a built-in sample: leave out -f":                                           {"plan", "--sample", "refusals"},
		`--namespace "nope": it says where a pod is; name the pod, too`:                            {"why-pending", "-n", "nope"},
		`--namespace "nope": a plan has the pods of all namespaces; leave it out`:                  {"plan", "-n", "nope"},
		`--namespace "no": a plan has the pods of all namespaces; leave it out`:                    {"consolidate", "-n", "no"},
		`--namespace "": a plan has the pods of all namespaces; leave it out`:                      {"export", "--namespace", ""},
	} {
		out, errs, code := run(t, args...)
		assert.Equal(t, inputs.ExitInput, code, args)
		assert.Empty(t, out, args)
		assert.Contains(t, errs, want, args)
	}
}

func TestConsolidate(t *testing.T) {
	out, errs, code := run(t, "consolidate", "--method", "emptiness")
	assert.Equal(t, inputs.ExitOK, code, errs)
	assert.Contains(t, out, "emptiness  n1")
}

// What is exported is read by the programs.
func TestExport(t *testing.T) {
	out, errs, code := run(t, "export")
	require.Equal(t, inputs.ExitOK, code, errs)
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
	want, _, _ := run(t, "plan", "--no-timing")
	_, errs, code = run(t, "plan", "--no-timing", "-f", file)
	assert.Equal(t, inputs.ExitInput, code, "a file is held to what it should be")
	assert.Contains(t, errs, "operator Gt needs an integer")
	got, errs, code := run(t, "plan", "--no-timing", "-f", "-")
	assert.Equal(t, inputs.ExitNotAll, code, errs)
	assert.Equal(t, want, got)
	_, errs, code = run(t, "export", "-o", "table")
	assert.Equal(t, inputs.ExitInput, code)
	assert.Contains(t, errs, "want one of yaml, json")
}

// Without a cluster nothing is planned, and the sample is not taken for it.
func TestNoCluster(t *testing.T) {
	for _, args := range [][]string{{"why-pending"}, {"plan"}, {"consolidate"}, {"export"}} {
		cmd := command(genericclioptions.NewConfigFlags(true), func() (live.Cluster, error) { return live.Cluster{}, errors.New("no configuration") })
		out, errs, code := golden.Run(t, cmd, args...)
		assert.Equal(t, inputs.ExitInternal, code, args)
		assert.Empty(t, out)
		assert.Contains(t, errs, "no configuration")
	}
}
