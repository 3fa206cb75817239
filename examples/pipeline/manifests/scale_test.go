package manifests_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {%selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 500m, memory: 1Gi}}}]}}}\n---\n"

// An autoscaler keeps its target within its bounds, which the plan does, too, and a note says it.
func TestAutoscalers(t *testing.T) {
	const scaler = "apiVersion: autoscaling/%s\nkind: HorizontalPodAutoscaler\nmetadata: {name: auto, namespace: %s}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: %k, name: web}, %b}\n"
	for name, c := range map[string]struct {
		replicas, version, namespace, kind, bounds string
		want                                       int
		note                                       string
	}{
		"no replicas":   {"", "v2", "shop", "Deployment", "minReplicas: 6, maxReplicas: 40", 6, "1 HorizontalPodAutoscaler decides how many pods run: Deployment shop/web is planned with 6 pods and not 1 (auto keeps 6 to 40)"},
		"fewer":         {"replicas: 2, ", "v1", "shop", "Deployment", "targetCPUUtilizationPercentage: 50, minReplicas: 3, maxReplicas: 4", 3, "3 pods and not 2 (auto keeps 3 to 4)"},
		"more":          {"replicas: 9, ", "v2", "shop", "Deployment", "minReplicas: 3, maxReplicas: 4", 4, "4 pods and not 9"},
		"within":        {"replicas: 4, ", "v2", "shop", "Deployment", "maxReplicas: 5", 4, "is planned with 4 pods (auto keeps 1 to 5)"},
		"switched off":  {"replicas: 0, ", "v2", "shop", "Deployment", "minReplicas: 3, maxReplicas: 4", 0, ""},
		"another place": {"", "v2", "ops", "Deployment", "minReplicas: 3, maxReplicas: 4", 1, "skipped 1 object of other kinds: HorizontalPodAutoscaler.autoscaling 1"},
		"another kind":  {"", "v2", "shop", "StatefulSet", "minReplicas: 3, maxReplicas: 4", 1, "skipped 1 object"},
	} {
		text := strings.Replace(web, "%", c.replicas, 1) + strings.NewReplacer("%s\nkind", c.version+"\nkind", "%s", c.namespace, "%k", c.kind, "%b", c.bounds).Replace(scaler)
		s := parse(t, text)
		assert.Equal(t, c.want, s.CountPods(), name)
		if notes := strings.Join(s.Notes, "\n"); c.note == "" {
			assert.Empty(t, notes, name)
		} else {
			assert.Contains(t, notes, c.note, name)
		}
	}
}

// A plan counts no ResourceQuota, so a note says which of them the pods exceed.
func TestResourceQuotas(t *testing.T) {
	const quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: %n, namespace: shop}\nspec: {%s}\n---\n"
	with := func(name, spec string) string { return strings.NewReplacer("%n", name, "%s", spec).Replace(quota) }
	text := strings.Replace(web, "%", "replicas: 6, ", 1) + with("a", "hard: {requests.cpu: '2', memory: 6Gi, count/pods: '5', limits.cpu: '1', services: '1'}") +
		with("b", "hard: {pods: '6'}") + with("c", "scopes: [BestEffort], hard: {pods: '1'}") + with("d", "hard: {count/deployments.apps: '0'}") + with("e", "")
	s := parse(t, text)
	require.Equal(t, 6, s.CountPods())
	assert.Equal(t, []string{
		"ResourceQuota shop/a refuses some of the pods that are planned, because plans do not count quotas: count/pods 6 of 5, requests.cpu 3 of 2, 6 pods without limits.cpu, which the quota makes compulsory",
		"4 ResourceQuotas are not counted: shop/b, shop/c, shop/d, and 1 more",
	}, s.Notes)
	_, err := manifests.Parse([]manifests.File{{Name: "a.yaml", Data: []byte(with("a", "hard: {pods: many}"))}}, nil)
	require.NoError(t, err, "what is not used is not checked")
}

// Quotas count what an API server stores: requests from limits and from LimitRanges, and overhead.
func TestQuotasCountAdmittedPods(t *testing.T) {
	const others = `{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: shop}, spec: {limits: [{type: Container, defaultRequest: {memory: 1Gi}}]}}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata}, handler: kata, overhead: {podFixed: {cpu: 250m}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}, spec: {runtimeClassName: kata, containers: [{name: c, resources: {limits: {cpu: 2, nvidia.com/gpu: 1}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: runs, namespace: shop}, spec: {nodeName: n1, containers: [{name: c, resources: {limits: {cpu: 2}}}]}, status: {phase: Running}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
`
	quota := func(name, spec string) string {
		return "{apiVersion: v1, kind: ResourceQuota, metadata: {name: " + name + ", namespace: shop}, spec: " + spec + "}\n---\n"
	}
	s := parse(t, others+quota("a", "{hard: {requests.cpu: 4, limits.cpu: 4250m, requests.nvidia.com/gpu: 0, requests.memory: 1Mi}}")+quota("b", "{hard: {pods: 0}, scopes: [Other]}"))
	assert.Equal(t, []string{
		"ResourceQuota shop/a refuses some of the pods that are planned, because plans do not count quotas: requests.cpu 4.25 of 4, requests.memory 1024Mi of 1Mi, requests.nvidia.com/gpu 1 of 0",
		"1 ResourceQuota is not counted: shop/b",
		"it is not known which pods these scopes of ResourceQuotas mean: Other of shop/b",
	}, s.Notes)
}
