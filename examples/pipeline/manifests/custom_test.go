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

// The note has paths that --pods takes as they are: planned with all of them, every pod is there.
func TestNotesSayWherePodTemplatesAre(t *testing.T) {
	const pod = "{spec: {containers: [{image: i}]}}"
	text := fmt.Sprintf("{apiVersion: ring.example.com/v1, kind: Ring, metadata: {name: r}, spec: {head: {template: %[1]s}, groups: [{replicas: 2, template: %[1]s}, {replicas: 3, template: %[1]s}]}}", pod)
	files := []manifests.File{{Name: "a.yaml", Data: []byte(text)}}
	s, err := manifests.Parse(files, nil)
	require.NoError(t, err)
	require.Equal(t, []string{
		"skipped 1 object of other kinds: Ring.ring.example.com 1",
		"the pods of Ring.ring.example.com are not planned: say where their pod templates are, as in --pods 'Ring.ring.example.com=spec.groups[].template' --pods 'Ring.ring.example.com=spec.head.template'",
	}, s.Notes)
	_, flags, _ := strings.Cut(s.Notes[1], "as in ")
	o := &manifests.Options{}
	for _, flag := range strings.Split(flags, "--pods ")[1:] {
		where, err := manifests.ParsePodsOf(strings.Trim(flag, "' "))
		require.NoError(t, err)
		o.PodsOf = append(o.PodsOf, where)
	}
	s, err = manifests.Parse(files, o)
	require.NoError(t, err)
	assert.Equal(t, 6, s.CountPods())
	assert.Empty(t, s.Notes)
}

// What is not planned is named with what to do about it, but policies, which only match pods, are not.
func TestNotesOnKindsWithoutPodTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}, spec: {project: p}}":                                                              "what objects of Application.argoproj.io deploy is planned only if the input has it: render charts",
		"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: a}, spec: {values: {template: {spec: {containers: [{image: i}]}}}}}":             "what objects of HelmRelease.helm.toolkit.fluxcd.io deploy",
		"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {generateName: a-}, spec: {templates: [{name: a, container: {image: i}}]}}":                     "the pods of Workflow.argoproj.io are not planned, because only a cluster knows them: add Deployments of their size",
		"{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, metadata: {name: a}, spec: {executor: {instances: 4}}}":                                   "the pods of SparkApplication.sparkoperator.k8s.io are not planned, because",
		"{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: a}, spec: {rules: [{validate: {pattern: {spec: {containers: [{image: '!*:latest'}]}}}}]}}": "",
	} {
		s, err := manifests.Parse([]manifests.File{{Name: "a.yaml", Data: []byte(text)}}, nil)
		require.NoError(t, err, text)
		if want == "" {
			assert.Len(t, s.Notes, 1, text)
			continue
		}
		require.Len(t, s.Notes, 2, text)
		assert.Contains(t, s.Notes[1], want)
	}
}

// A suspended job has no pods. That is said, because whoever plans it may mean it to be resumed.
func TestSuspendedJobsAreNoted(t *testing.T) {
	job := func(kind, name, spec string) string {
		return fmt.Sprintf("apiVersion: batch/v1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n---\n", kind, name, spec)
	}
	const pod = "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}"
	text := job("Job", "a", "{suspend: true, "+pod+"}") + job("Job", "b", "{"+pod+"}") + job("CronJob", "c", "{suspend: true, schedule: '0 1 * * *', jobTemplate: {spec: {"+pod+"}}}")
	s, err := manifests.Parse([]manifests.File{{Name: "a.yaml", Data: []byte(text)}}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"no pods are planned for 2 suspended jobs: CronJob default/c, Job default/a"}, s.Notes)
	require.Equal(t, 1, s.CountPods())
	for i := range 5 {
		text += job("Job", fmt.Sprint("d", i), "{suspend: true, "+pod+"}")
	}
	s, err = manifests.Parse([]manifests.File{{Name: "a.yaml", Data: []byte(text)}}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"no pods are planned for 7 suspended jobs: CronJob default/c, Job default/a, Job default/d0, and 4 more"}, s.Notes)
}

// An object without a template, such as a Rollout with workloadRef, is passed over and named if
// another of its kind has one. A path at which none has one is a mistake.
func TestObjectsWithoutTheTemplate(t *testing.T) {
	rollout := func(name, spec string) string {
		return fmt.Sprintf("{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: %s}, spec: {replicas: 2, %s}}\n---\n", name, spec)
	}
	const has, refers = "template: {spec: {containers: [{image: i}]}}", "workloadRef: {kind: Deployment, name: web}"
	o := &manifests.Options{PodsOf: []manifests.PodsOf{{Kind: "Rollout", Group: "argoproj.io", Path: "spec.template"}}}
	read := func(text string) (*manifests.Snapshot, error) {
		return manifests.Parse([]manifests.File{{Name: "a.yaml", Data: []byte(text)}}, o)
	}
	s, err := read(rollout("a", refers) + rollout("b", has) + rollout("c", refers))
	require.NoError(t, err)
	assert.Equal(t, 2, s.CountPods())
	assert.Equal(t, []string{"2 objects have no pod template at spec.template, so none of their pods come from there: Rollout default/a, Rollout default/c"}, s.Notes)
	_, err = read(rollout("a", refers) + rollout("c", refers))
	assert.ErrorContains(t, err, "a.yaml:1: Rollout default/a: spec.template: the object has no pod template there, nor has any other of its kind")
	assert.ErrorContains(t, err, "Rollout default/c")
	o.PodsOf = append(o.PodsOf, manifests.PodsOf{Kind: "Rollout", Group: "argoproj.io", Path: "spec.tmplate"})
	_, err = read(rollout("b", has))
	assert.ErrorContains(t, err, "spec.tmplate: the object has no pod template there", "one right path does not hide a wrong one")
}

func ExamplePodsOf() {
	where, err := manifests.ParsePodsOf("Rollout.argoproj.io=spec.template")
	fmt.Println(where.Kind, where.Group, where.Path, err)
	// Output: Rollout argoproj.io spec.template <nil>
}
