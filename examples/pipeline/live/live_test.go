package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/live"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// kinds are what a server has, as group/version, kind and resource.
func kinds() [][3]string {
	return [][3]string{
		{"v1", "Pod", "pods"},
		{"v1", "Node", "nodes"},
		{"v1", "ConfigMap", "configmaps"},
		{"v1", "Secret", "secrets"},
		{"v1", "Service", "services"},
		{"policy/v1beta1", "PodDisruptionBudget", "poddisruptionbudgets"},
		{"policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"},
		{"batch/v1beta1", "CronJob", "cronjobs"},
		{"metrics.k8s.io/v1beta1", "Node", "nodes"},
		{"karpenter.sh/v1beta1", "NodePool", "nodepools"},
		{"karpenter.sh/v1", "NodePool", "nodepools"},
		{"other.example/v1", "NodePool", "nodepools"},
	}
}

const objects = `
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, managedFields: [{manager: kubectl}]}, spec: {containers: [{name: web, image: web, resources: {requests: {cpu: "1"}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: api, namespace: shop}, spec: {nodeName: n1, containers: [{name: api, image: api}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: shop}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: shop}}
---
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: default}, spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}}}}
---
{apiVersion: other.example/v1, kind: NodePool, metadata: {name: theirs}}`

type server struct {
	discovery.ServerResourcesInterface
	failed error
}

func (s server) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, lists, err := s.ServerResourcesInterface.ServerGroupsAndResources()
	return groups, lists, errors.Join(err, s.failed)
}

// cluster is an API server in memory. It refuses to list the resources.
func cluster(refused ...string) live.Cluster {
	fake := &clienttesting.Fake{}
	listKinds := map[schema.GroupVersionResource]string{}
	for _, k := range kinds() {
		i := slices.IndexFunc(fake.Resources, func(l *metav1.APIResourceList) bool { return l.GroupVersion == k[0] })
		if i < 0 {
			i = len(fake.Resources)
			fake.Resources = append(fake.Resources, &metav1.APIResourceList{GroupVersion: k[0]})
		}
		fake.Resources[i].APIResources = append(fake.Resources[i].APIResources,
			metav1.APIResource{Name: k[2], Kind: k[1], Verbs: []string{"get", "list"}}, metav1.APIResource{Name: k[2] + "/status", Kind: k[1], Verbs: []string{"get", "list"}})
		gv, _ := schema.ParseGroupVersion(k[0])
		listKinds[gv.WithResource(k[2])] = k[1] + "List"
	}
	var all []runtime.Object
	for text := range strings.SplitSeq(objects, "---") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			panic(err)
		}
		all = append(all, o)
	}
	client := fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds, all...)
	for _, r := range refused {
		client.PrependReactor("list", r, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: r}, "", errors.New("no"))
		})
	}
	return live.Cluster{Discovery: &fakediscovery.FakeDiscovery{Fake: fake}, Objects: client}
}

func ExampleCluster() {
	var list bytes.Buffer
	notes, err := cluster().Export(context.Background(), &list) // with the discovery and the dynamic client of client-go
	if err != nil {
		fmt.Println(err)
		return
	}
	read, err := manifests.Parse([]manifests.File{{Name: "cluster", Data: list.Bytes()}}, nil)
	fmt.Println(len(read.Pods), "pods,", len(read.Nodes), "node,", len(read.NodePools), "pool,", err)
	fmt.Println(notes)
	// Output:
	// 2 pods, 1 node, 1 pool, <nil>
	// [objects of kind CronJob are ignored, because the API server has them in version batch/v1beta1, which is not understood]
}

func export(t *testing.T, c live.Cluster) (text string, notes []string) {
	t.Helper()
	var out bytes.Buffer
	notes, err := c.Export(t.Context(), &out)
	require.NoError(t, err)
	return out.String(), notes
}

// Only what bears on plans is read, each object once, in the version that the server has and that is in use.
func TestExport(t *testing.T) {
	text, notes := export(t, cluster())
	assert.Len(t, notes, 1)
	assert.NotContains(t, text, "managedFields")
	assert.NotContains(t, text, "Secret")
	assert.NotContains(t, text, "Service")
	assert.NotContains(t, text, "theirs")
	assert.Equal(t, 1, strings.Count(text, `"NodePool"`))
	assert.Contains(t, text, `"policy/v1"`)
	assert.Less(t, strings.Index(text, `"api"`), strings.Index(text, `"web"`))
	m, err := manifests.Parse([]manifests.File{{Name: "cluster", Data: []byte(text)}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	require.NoError(t, err)
	assert.Len(t, m.Pods, 2)
	assert.Len(t, m.PodDisruptionBudgets, 1)

	spread := cluster()
	spread.Manifests = &manifests.Options{Spread: []corev1.TopologySpreadConstraint{{}}}
	text, _ = export(t, spread)
	assert.Contains(t, text, `"Service"`)
}

// What may not be listed is said; without pods or nodes there is no plan.
func TestRefusedLists(t *testing.T) {
	text, notes := export(t, cluster("poddisruptionbudgets"))
	assert.NotContains(t, text, "PodDisruptionBudget")
	require.Len(t, notes, 2)
	assert.Contains(t, notes[1], "poddisruptionbudgets are ignored, because they could not be listed: ")
	for _, needed := range []string{"pods", "nodes"} {
		_, err := cluster(needed).Export(t.Context(), &bytes.Buffer{})
		assert.ErrorContains(t, err, "list "+needed+": ")
	}
}

// An aggregated API that is down stops nothing; an API server that does not answer is an error.
func TestDiscovery(t *testing.T) {
	c := cluster()
	c.Discovery = server{c.Discovery, &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("down")}}}
	_, notes := export(t, c)
	require.Len(t, notes, 2)
	assert.Contains(t, notes[0], "metrics.k8s.io/v1beta1")

	c.Discovery = server{cluster().Discovery, errors.New("connection refused")}
	_, err := c.Export(t.Context(), &bytes.Buffer{})
	assert.ErrorContains(t, err, "connection refused")

	c.Discovery = &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	_, err = c.Export(t.Context(), &bytes.Buffer{})
	assert.ErrorContains(t, err, "no kind Pod")
}
