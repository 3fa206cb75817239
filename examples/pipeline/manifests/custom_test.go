package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// An object of an unknown kind is counted under its group. If the kind makes pods, it is named, and planned once the path to its pod template is
// given.
func TestKindsThatMakePods(t *testing.T) {
	const pod = "{metadata: {labels: {a: b}}, spec: {containers: [{image: i, resources: {requests: {cpu: 1500m}}}]}}"
	for name, c := range map[string]struct {
		text, path string
		pods       []string
		note       string
	}{
		"template":       {"{apiVersion: apps.example.com/v1, kind: Canary, metadata: {name: web, namespace: shop}, spec: {replicas: 3, template: %s}}", "Canary.apps.example.com=spec.template", []string{"shop/web-0", "shop/web-1", "shop/web-2"}, "Canary.apps.example.com"},
		"no replicas":    {"{apiVersion: run.example.com/v1, kind: Service, metadata: {name: web}, spec: {template: %s}}", "Service.run.example.com=spec.template", []string{"default/web-0"}, "Service.run.example.com"},
		"groups":         {"{apiVersion: ray.example.com/v1, kind: Ring, metadata: {name: r}, spec: {groups: [{replicas: 2, template: %[1]s}, {replicas: 0, template: %[1]s}, {template: %[1]s}]}}", "Ring.ray.example.com=spec.groups[].template", []string{"default/r-0", "default/r-1", "default/r-2-0"}, "Ring.ray.example.com"},
		"jobs of a set":  {"{apiVersion: set.example.com/v1, kind: Sets, metadata: {name: s}, spec: {jobs: [{replicas: 2, template: {spec: {parallelism: 2, template: %s}}}]}}", "Sets.set.example.com=spec.jobs[].template.spec.template", []string{"default/s-0", "default/s-1", "default/s-2", "default/s-3"}, "Sets.set.example.com"},
		"a kind's own":   {"{apiVersion: kafka.strimzi.io/v1beta2, kind: Kafka, metadata: {name: k}, spec: {kafka: {replicas: 3}}}\n# %s", "", nil, "Kafka.kafka.strimzi.io"},
		"makes no pods":  {"{apiVersion: scale.example.com/v1, kind: Scaler, metadata: {name: s}, spec: {replicas: 3, containers: [a]}}\n# %s", "", nil, ""},
		"not told where": {"{apiVersion: apps.example.com/v1, kind: Canary, metadata: {name: web}, spec: {template: %s}}", "Canary.other.example.com=spec.template", nil, "Canary.apps.example.com"},
	} {
		files := []manifests.File{{Name: "a.yaml", Data: []byte(fmt.Sprintf(c.text, pod))}}
		s, err := manifests.Parse(files, nil)
		require.NoError(t, err, name)
		assert.Zero(t, s.CountPods(), name)
		notes := strings.Join(s.Notes, "\n")
		assert.Contains(t, notes, "skipped 1 object of other kinds", name)
		if c.note == "" {
			assert.NotContains(t, notes, "are not planned", name)
		} else {
			assert.Contains(t, notes, "the pods of "+c.note+" are not planned", name)
		}
		if c.path == "" {
			continue
		}
		where, err := manifests.ParsePodsOf(c.path)
		require.NoError(t, err)
		s, err = manifests.Parse(files, &manifests.Options{PodsOf: []manifests.PodsOf{where}})
		require.NoError(t, err, name)
		var pods []string
		for p := range s.AllPods() {
			pods = append(pods, p.Namespace+"/"+p.Name)
			assert.Equal(t, "1500m", p.Spec.Containers[0].Resources.Requests.Cpu().String())
			assert.Equal(t, map[string]string{"a": "b"}, p.Labels)
		}
		assert.Equal(t, c.pods, pods, name)
	}
	files := []manifests.File{{Name: "a.yaml", Data: []byte("{apiVersion: apps.example.com/v1, kind: Canary, metadata: {name: web},\n spec: {template: {spec: {containers: [{image: i,\n  resources: {requests: {cpu: lots}}}]}}}}")}}
	_, err := manifests.Parse(files, &manifests.Options{PodsOf: []manifests.PodsOf{{Kind: "Canary", Group: "apps.example.com", Path: "spec.template"}}})
	assert.ErrorContains(t, err, "a.yaml:3: Canary default/web: spec.template.spec.containers[0].resources.requests.cpu")
	_, err = manifests.Parse(files, &manifests.Options{PodsOf: []manifests.PodsOf{{Kind: "Canary", Group: "apps.example.com", Path: "spec.pods"}}})
	assert.ErrorContains(t, err, "the object has no pod template there")
	for _, text := range []string{"Rollout", "Rollout=", "=spec", "Rollout.x=spec..template"} {
		_, err := manifests.ParsePodsOf(text)
		assert.ErrorContains(t, err, "want KIND.GROUP=PATH", text)
	}
}

func ExamplePodsOf() {
	where, err := manifests.ParsePodsOf("Rollout.argoproj.io=spec.template")
	fmt.Println(where.Kind, where.Group, where.Path, err)
	// Output: Rollout argoproj.io spec.template <nil>
}
