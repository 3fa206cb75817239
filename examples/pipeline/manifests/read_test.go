package manifests_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

func parse(t *testing.T, text string) *manifests.Snapshot {
	t.Helper()
	s, err := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: []byte(text)}}, nil)
	require.NoError(t, err)
	return s
}

func TestReadDirectoryAndStdin(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	pod := func(name string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"},"spec":{"containers":[{}]}}`
	}
	write("b.yaml", pod("b"))
	write("a.JSON", pod("a"))
	write("c.yml", pod("c"))
	write("notes.txt", "not a manifest")
	write("below/d.yaml", pod("d"))
	s, err := manifests.Read([]string{"-", dir}, &manifests.Options{Stdin: strings.NewReader(pod("in"))})
	require.NoError(t, err)
	assert.Equal(t, []string{"default/a", "default/b", "default/c", "default/d", "default/in"}, names(s.Pods))
	at, ok := s.Position("Pod", "default", "b")
	assert.True(t, ok)
	assert.Equal(t, filepath.Join(dir, "b.yaml")+":1", at.String())
	at, ok = s.Position("Pod", "default", "d")
	assert.True(t, ok)
	assert.Equal(t, filepath.Join(dir, "below", "d.yaml")+":1", at.String())
}

// TestReadLink reads the directory that a link leads to, and hidden ones neither there nor elsewhere.
func TestReadLink(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".v1", ".git"), 0o755))
	pod := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{}]}}`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".v1", "a.yaml"), pod, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".v1", ".git", "b.yaml"), pod, 0o644))
	current := filepath.Join(dir, "current")
	require.NoError(t, os.Symlink(".v1", current))
	s, err := manifests.Read([]string{current}, nil)
	require.NoError(t, err)
	at, ok := s.Position("Pod", "default", "a")
	assert.True(t, ok)
	assert.Equal(t, filepath.Join(current, "a.yaml")+":1", at.String())
}

func TestDuplicateNamesBothFiles(t *testing.T) {
	pod := []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{}]}\n")
	_, err := manifests.Parse([]manifests.File{{Name: "a.yaml", Data: pod}, {Name: "b.yaml", Data: append([]byte("\n# again\n"), pod...)}}, nil)
	assert.EqualError(t, err, "b.yaml:3: Pod default/web: metadata.name: the object is given twice, first at a.yaml:1")
}

// TestOrderDoesNotMatter reads all valid manifests that can stand together, shuffled and on one core and two.
func TestOrderDoesNotMatter(t *testing.T) {
	var documents []string
	for _, name := range []string{
		"deployment-live", "deployment-without-replicasets", "statefulset", "jobs", "cronjobs", "storage", "overlay",
		"provisioner-every-field", "priorities", "replicaset-and-controller", "daemonset", "nodeclaim-live",
	} {
		body, _ := wanted(t, "testdata/valid/"+name+".yaml")
		documents = append(documents, strings.Split(string(body), "\n---\n")...)
	}
	want := ""
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		runtime.GOMAXPROCS(1 + round%2)
		rng.Shuffle(len(documents), func(i, j int) { documents[i], documents[j] = documents[j], documents[i] })
		s := parse(t, strings.Join(documents, "\n---\n"))
		for i := range s.NodeClasses {
			s.NodeClasses[i].Position = manifests.Position{}
		}
		got, err := json.Marshal([]any{describe(s), s.Pods, s.Workloads, s.NodePools})
		require.NoError(t, err)
		if want == "" {
			want = string(got)
		}
		require.Equal(t, want, string(got))
	}
	runtime.GOMAXPROCS(runtime.NumCPU())
}

// TestLargeList reads an export that is cut into its items, and one whose look misleads the cut.
func TestLargeList(t *testing.T) {
	const n = 1000
	require.Equal(t, n, manifests.CutItems(podList(n)))
	require.Zero(t, manifests.CutItems(podList(10)), "small lists are not worth it")
	s := parse(t, string(podList(n)))
	assert.Len(t, s.Pods, n)
	at, _ := s.Position("Pod", "shop", "web-1")
	assert.Equal(t, "x.yaml:28", at.String())

	misleading := strings.Replace(string(podList(n)), "  metadata:\n    name: web-7\n", "  metadata:\n    annotations: {note: \"one\n- two\"}\n    name: web-7\n", 1)
	s = parse(t, misleading)
	require.Len(t, s.Pods, n)
	i := slices.IndexFunc(s.Pods, func(p *corev1.Pod) bool { return p.Name == "web-7" })
	assert.Equal(t, "one - two", s.Pods[i].Annotations["note"])

	commented := strings.Replace(string(podList(n)), "- apiVersion: v1\n", "# the first\n\n- apiVersion: v1\n", 1)
	require.Equal(t, n, manifests.CutItems([]byte(commented)))
	require.Len(t, parse(t, commented).Pods, n)

	other := strings.Replace(string(podList(n)), "kind: List\n", "kind: Lists\n", 1)
	require.Zero(t, manifests.CutItems([]byte(other)))
	require.Empty(t, parse(t, other).Pods)

	anchored := strings.Replace(string(podList(n)), "cpu: 250m", "cpu: &cpu 250m", 1)
	anchored = strings.Replace(anchored, "cpu: 250m", "cpu: *cpu", 1)
	require.Len(t, parse(t, anchored).Pods, n)

	wrong := strings.Replace(string(podList(n)), "  spec:\n    containers:", "  spec:\n    container:", 1)
	_, err := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: []byte(wrong)}}, nil)
	require.Error(t, err)
	assert.Contains(t, err.Error(), `x.yaml:12: Pod shop/web-0: spec.container: unknown field "container": did you mean "containers"?`)
}

func TestWorkloadShares(t *testing.T) {
	s := parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: d-1}
spec:
  replicas: 1000000
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main}]}
`)
	require.Len(t, s.Workloads, 1)
	w := s.Workloads[0]
	assert.Equal(t, 1_000_000, s.CountPods())
	count := 0
	for p := range w.Pods() {
		if count++; count == 1 {
			assert.Equal(t, "web-0", p.Name)
			assert.Equal(t, "shop", p.Namespace)
			assert.Equal(t, "web", p.OwnerReferences[0].Name)
			assert.Same(t, &w.Template.Spec.Containers[0], &p.Spec.Containers[0])
		}
		if count == 10 {
			break
		}
	}
	assert.Empty(t, w.Template.Name)
}

// TestNewestReplicaSetNamesTheHash lets the pods to come carry the hash that selectors with matchLabelKeys ask for.
func TestNewestReplicaSetNamesTheHash(t *testing.T) {
	body, _ := wanted(t, "testdata/valid/deployment-live.yaml")
	s := parse(t, string(body))
	require.Len(t, s.Workloads, 1)
	assert.Equal(t, map[string]string{"app": "web", "pod-template-hash": "6d4b75cb6d"}, s.Workloads[0].Template.Labels)
}

func TestStatefulSetVolumes(t *testing.T) {
	s := parse(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: main}]
      volumes: [{name: data, emptyDir: {}}, {name: tmp, emptyDir: {}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 10Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-db-1}
spec: {volumeName: pv-1}
`)
	all := pods(s)
	require.Len(t, all, 2)
	require.Len(t, all[0].Spec.Volumes, 2)
	assert.Equal(t, "tmp", all[0].Spec.Volumes[0].Name)
	require.NotNil(t, all[0].Spec.Volumes[1].Ephemeral)
	assert.Equal(t, "fast", *all[0].Spec.Volumes[1].Ephemeral.VolumeClaimTemplate.Spec.StorageClassName)
	require.NotNil(t, all[1].Spec.Volumes[1].PersistentVolumeClaim)
	assert.Equal(t, "data-db-1", all[1].Spec.Volumes[1].PersistentVolumeClaim.ClaimName)
	assert.Nil(t, all[1].Spec.Volumes[1].Ephemeral)
}

func TestMaxPods(t *testing.T) {
	text := []byte("{apiVersion: v1, kind: ReplicationController, metadata: {name: a}, spec: {replicas: 11, template: {spec: {containers: [{}]}}}}")
	_, err := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: text}}, &manifests.Options{MaxPods: 10})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "it has 11 pods")
	_, err = manifests.Parse([]manifests.File{{Name: "x.yaml", Data: text}}, &manifests.Options{MaxPods: 11})
	require.NoError(t, err)
}

type fieldError struct{ path, detail string }

func (e *fieldError) Error() string           { return "class: " + e.path + ": " + e.detail }
func (e *fieldError) Field() (string, string) { return e.path, e.detail }

// TestClassDecoder shows that a decoder's errors are reported at their lines.
func TestClassDecoder(t *testing.T) {
	text := "apiVersion: example.com/v1\nkind: TestNodeClass\nmetadata: {name: a}\nspec:\n  size: big\n"
	files := []manifests.File{{Name: "x.yaml", Data: []byte(text)}}
	s, err := manifests.Parse(files, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"skipped 1 object of other kinds: TestNodeClass.example.com 1"}, s.Notes)

	good := func(raw json.RawMessage) (any, error) { return len(raw), nil }
	s, err = manifests.Parse(files, &manifests.Options{Classes: map[string]manifests.ClassDecoder{"TestNodeClass": good}})
	require.NoError(t, err)
	require.Len(t, s.NodeClasses, 1)
	assert.JSONEq(t, `{"apiVersion":"example.com/v1","kind":"TestNodeClass","metadata":{"name":"a"},"spec":{"size":"big"}}`, string(s.NodeClasses[0].Raw))
	assert.Equal(t, len(s.NodeClasses[0].Raw), s.NodeClasses[0].Value)
	assert.Equal(t, "example.com/v1", s.NodeClasses[0].APIVersion)

	bad := func(json.RawMessage) (any, error) {
		return nil, errors.Join(&fieldError{"spec.size", "want a number"}, fmt.Errorf("it is too old"))
	}
	_, err = manifests.Parse(files, &manifests.Options{Classes: map[string]manifests.ClassDecoder{"TestNodeClass": bad}})
	assert.EqualError(t, err, "x.yaml:1: TestNodeClass a: it is too old\nx.yaml:5: TestNodeClass a: spec.size: want a number")
}

// TestNamesakes keeps apart the pods of controllers of one name; in a cluster only those of the StatefulSet are numbered.
func TestNamesakes(t *testing.T) {
	const controller = "---\napiVersion: apps/v1\nkind: %s\nmetadata: {name: web}\nspec: {replicas: 2, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{}]}}}\n"
	s := parse(t, fmt.Sprintf(controller+controller+controller, "ReplicaSet", "Deployment", "StatefulSet"))
	var got []string
	for _, p := range pods(s) {
		got = append(got, p.OwnerReferences[0].Kind+" "+p.Name)
	}
	assert.Equal(t, []string{"StatefulSet web-0", "StatefulSet web-1", "Deployment web-2", "Deployment web-3", "ReplicaSet web-4", "ReplicaSet web-5"}, got)
}

// TestListsOfKinds reads what the API itself answers: items that leave out what their list says, and lists in a list.
func TestListsOfKinds(t *testing.T) {
	s := parse(t, `
apiVersion: v1
kind: List
items:
- apiVersion: karpenter.sh/v1
  kind: NodePoolList
  items:
  - {metadata: {name: a}, spec: {template: {spec: {requirements: []}}}}
  - {metadata: {name: b}, spec: {template: {spec: {requirements: []}}}}
- {apiVersion: v1, kind: PodList, items: null}
- {apiVersion: v1, kind: PodList, items: [{metadata: {name: web}, spec: {containers: [{}]}}]}
`)
	require.Len(t, s.NodePools, 2)
	assert.Equal(t, "b", s.NodePools[1].Name)
	require.Len(t, s.Pods, 1)
	assert.Equal(t, "v1 Pod", s.Pods[0].APIVersion+" "+s.Pods[0].Kind)
}

func TestEdgesOfControllers(t *testing.T) {
	s := parse(t, `
{apiVersion: batch/v1, kind: Job, metadata: {name: none}, spec: {parallelism: 0, completions: 0, template: {spec: {restartPolicy: Never, containers: [{}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: queue}, spec: {parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: ending}, spec: {parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{}]}}}, status: {succeeded: 1}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: zero}, spec: {replicas: 0, template: {spec: {containers: [{}]}}}}
---
{apiVersion: example.com/v1, kind: Menu, metadata: {name: m}, items: [{apiVersion: v1, kind: Pod}]}
---
{apiVersion: v1, kind: List}
`)
	var got []string
	for _, p := range pods(s) {
		got = append(got, p.Name)
	}
	assert.Equal(t, []string{"queue-0", "queue-1"}, got)
	assert.Equal(t, []string{
		"skipped 2 objects of other kinds: List 1, Menu.example.com 1",
		"1 controller has no spec.selector, which a cluster requires",
	}, s.Notes)
}

// TestEndsOfJobs knows what ends a Job, and that a run of a CronJob is a run however many of its pods are left.
func TestEndsOfJobs(t *testing.T) {
	const job = "---\n{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {template: {spec: {restartPolicy: Never, containers: [{}]}}}, status: {conditions: [{type: %s, status: %q}]}}\n"
	s := parse(t, fmt.Sprintf(job+job+job+job, "failed", "Failed", "True", "complete", "Complete", "True", "not-yet", "Complete", "False", "ending", "FailureTarget", "True")+`
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: cron}, spec: {schedule: "@daily", jobTemplate: {spec: {parallelism: 2, completions: 2, template: {spec: {restartPolicy: Never, containers: [{}]}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: cron-29000000-a, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: cron-29000000, uid: j, controller: true}]}
spec: {containers: [{}]}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: past}, spec: {schedule: "@daily", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{}]}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: past-29000000-a, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: past-29000000, uid: j, controller: true}]}
spec: {containers: [{}]}
status: {phase: Failed}
`)
	var got []string
	for _, w := range s.Workloads {
		for p := range w.Pods() {
			got = append(got, p.Name)
		}
	}
	assert.Equal(t, []string{"ending-0", "not-yet-0", "past-0"}, got)
}

// Charts are rendered into folders of folders, with tests among what is installed.
func TestRenderedCharts(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	pod := func(name, hook string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, annotations: {helm.sh/hook: %q}}\nspec: {containers: [{name: main, image: i}]}\n", name, hook)
	}
	write("shop/templates/web.yaml", pod("web", ""))
	write("shop/charts/cache/templates/cache.yaml", pod("cache", "post-install"))
	write("shop/templates/tests/connection.yaml", pod("connection", "test"))
	write("shop/templates/tests/older.yaml", pod("older", "post-upgrade, test-success"))
	write("shop/templates/clean.yaml", pod("clean", "pre-delete"))
	write("shop/templates/undo.yaml", pod("undo", "post-rollback,pre-rollback"))
	write("shop/templates/set-up.yaml", pod("set-up", "pre-delete,pre-install"))
	write(".git/config.yaml", "nonsense")
	write("shop/values.yaml", "replicas: 2\nkind: web\nimage: {tag: a}\n")
	write("shop/Chart.yaml", "apiVersion: v2\nname: shop\n")
	write("compose.yml", "services: {web: {image: i}}\n")
	write("dashboard.json", `[{"panels": []}]`)
	write("agent/values.yaml", "kind: DaemonSet\nupdateStrategy: {type: RollingUpdate}\n")
	write("network.yml", "Resources:\n  Role: {Type: Role, Name: !Sub '${Stage}-role', Of: !Ref Stage}\n")
	write("start.yaml", "MIME-Version: 1.0\n--BOUNDARY\n\t@nothing\n")
	s, err := manifests.Read([]string{dir}, nil)
	require.NoError(t, err)
	var names []string
	for _, p := range s.Pods {
		names = append(names, p.Name)
	}
	require.Equal(t, []string{"cache", "set-up", "web"}, names)
	require.Equal(t, []string{"left out 4 hooks, which only helm test, delete or rollback runs: Pod default/clean, Pod default/connection, Pod default/older, Pod default/undo", fmt.Sprintf("skipped 7 files without a Kubernetes object: %s, %s, %s, and 4 more",
		filepath.Join(dir, "agent/values.yaml"), filepath.Join(dir, "compose.yml"), filepath.Join(dir, "dashboard.json"))}, s.Notes)
	_, err = manifests.Read([]string{filepath.Join(dir, "compose.yml")}, nil)
	require.ErrorContains(t, err, "the object has no kind") // whoever names a file means it
	for name, want := range map[string]string{"agent/values.yaml": "apiVersion: the object has none", "network.yml": "is not supported", "start.yaml": "not YAML"} {
		_, err = manifests.Read([]string{filepath.Join(dir, name)}, nil)
		require.ErrorContains(t, err, want)
	}
	write("shop/templates/forgotten.yaml", "kind: Pod\nmetadata: {name: forgotten}\nspec: {containers: [{name: main, image: i}]}\n")
	_, err = manifests.Read([]string{dir}, nil)
	require.ErrorContains(t, err, "Pod forgotten: apiVersion: the object has none")
}

// The templates of a chart are one mistake. Other mistakes in their files are not theirs.
func TestTemplatesOfADirectoryAreOneProblem(t *testing.T) {
	head, inner := "{{- if .Values.on }}\n", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\n"
	files := []manifests.File{
		{Name: "shop/templates/a.yaml", Data: []byte(head + inner + "---\n" + inner + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n")},
		{Name: "shop/templates/b.yaml", Data: []byte(inner)},
		{Name: "shop/templates/c.yaml", Data: []byte(inner + "---\n" + inner)},
		{Name: "till/templates/a.yaml", Data: []byte(head + inner)},
	}
	_, err := manifests.Parse(files, nil)
	const rest = "{{ is a placeholder of a template: render charts with helm template, kustomizations with kubectl kustomize"
	require.EqualError(t, err, "shop/templates/a.yaml:1: "+rest+"; likewise 1 more place of this file and 2 more files of this directory\n"+
		"shop/templates/a.yaml:15: Pod default/a: spec.containers: a pod needs at least one container\n"+
		"till/templates/a.yaml:1: "+rest)
}

// What kustomize reads is no manifest, whatever it says of itself and however it is given. What else is in its folder must not be planned
// as if it were all.
func TestKustomizationsAreNamed(t *testing.T) {
	const web = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main, image: i}]}\n"
	kind := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		for _, text := range []string{"resources: [web.yaml]\n", kind + "resources: [web.yaml]\n", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n", "namespace: {{ shop }}\n", "kind: Kustomization\n"} {
			for _, below := range []string{"", "overlays/large"} {
				dir := t.TempDir()
				folder := filepath.Join(dir, below)
				require.NoError(t, os.MkdirAll(folder, 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(web), 0o600))
				at := filepath.Join(folder, name)
				require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
				for _, arg := range []string{dir, at} {
					_, err := manifests.Read([]string{arg}, nil)
					require.ErrorContains(t, err, at, "%s %q", arg, text)
					require.ErrorContains(t, err, "kubectl kustomize")
					require.NotContains(t, err.Error(), "\n")
				}
			}
		}
	}
	_, err := manifests.Read([]string{"-"}, &manifests.Options{Stdin: strings.NewReader(kind)})
	require.ErrorContains(t, err, "a kustomization is not a manifest")
	dir := t.TempDir() // Flux's object of that name is one of a cluster
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\n"), 0o600))
	_, err = manifests.Read([]string{dir}, nil)
	require.NoError(t, err)
}

// A chart is one mistake, wherever its placeholders are: also those that YAML can read, in quotes or comments, and those of its own charts.
func TestChartsAreNamed(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: main, image: %s}]}\n"
	for file, text := range map[string]string{
		"templates/a.yaml":              fmt.Sprintf(pod, "{{ .Release.Name }}", "i"),
		"templates/b.yaml":              fmt.Sprintf(pod, "a", `"{{ .Values.image }}"`),
		"templates/c.yaml":              "# {{- if .Values.on }}\n" + fmt.Sprintf(pod, "a", "i") + "# {{- end }}\n",
		"templates/sub/d.yaml":          "{{ range .Values.all }}\n---\n" + fmt.Sprintf(pod, "a", "i") + "{{ end }}\n",
		"charts/cache/templates/e.yaml": "{{- if .Values.on }}\n" + fmt.Sprintf(pod, "a", "i") + "{{- end }}\n",
	} {
		dir := t.TempDir()
		write := func(name, text string) {
			path := filepath.Join(dir, "shop", name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		write("Chart.yaml", "apiVersion: v2\nname: shop\n")
		write("charts/cache/Chart.yaml", "apiVersion: v2\nname: cache\n")
		write("values.yaml", "on: true\n")
		write("templates/plain.yaml", fmt.Sprintf(pod, "plain", "i"))
		_, err := manifests.Read([]string{dir}, nil)
		require.NoError(t, err, "plain manifests")
		write(file, text)
		for _, root := range []string{dir, filepath.Join(dir, "shop")} {
			_, err = manifests.Read([]string{root}, nil)
			shop := filepath.Join(dir, "shop")
			require.EqualError(t, err, fmt.Sprintf("%s: a chart is not a manifest, and %s has placeholders: pipe the output of helm template %s to -f -",
				filepath.Join(shop, "Chart.yaml"), filepath.Join(shop, filepath.FromSlash(file)), shop))
		}
		_, err = manifests.Read([]string{filepath.Join(dir, "shop", filepath.FromSlash(file))}, nil)
		if file == "templates/a.yaml" {
			require.ErrorContains(t, err, "render charts with helm template", "a file that is named")
		}
	}
}

// A repository has a base and its overlays, and kubectl applies them one after the other.
func TestTheLastOfADirectoryCounts(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, replicas ...int) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		var text strings.Builder
		for _, n := range replicas {
			fmt.Fprintf(&text, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: %d, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: i}]}}}\n", n)
		}
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	}
	write("base/web.yaml", 1)
	write("overlays/large/web.yaml", 5)
	write("overlays/small/web.yaml", 2)
	s, err := manifests.Read([]string{dir}, nil)
	require.NoError(t, err)
	require.Equal(t, 2, s.CountPods())
	require.Equal(t, []string{fmt.Sprintf("if a directory has an object several times, the last one counts: Deployment default/web (%s, before in %s)",
		filepath.Join(dir, "overlays/small/web.yaml"), filepath.Join(dir, "overlays/large/web.yaml"))}, s.Notes)
	_, err = manifests.Read([]string{filepath.Join(dir, "base/web.yaml"), filepath.Join(dir, "overlays/small/web.yaml")}, nil)
	require.ErrorContains(t, err, "the object is given twice") // whoever names two files means both
	s, err = manifests.Read([]string{filepath.Join(dir, "base")}, &manifests.Options{Replace: []string{filepath.Join(dir, "overlays")}})
	require.NoError(t, err)
	require.Equal(t, 2, s.CountPods())
	write("overlays/small/web.yaml", 2, 3)
	s, err = manifests.Read([]string{dir}, nil)
	require.NoError(t, err, "kubectl apply takes it")
	require.Equal(t, 3, s.CountPods())
	require.Equal(t, []string{fmt.Sprintf("if a directory has an object several times, the last one counts: Deployment default/web (%s:7, before on line 2)",
		filepath.Join(dir, "overlays/small/web.yaml"))}, s.Notes)
	_, err = manifests.Read([]string{filepath.Join(dir, "overlays/small/web.yaml")}, nil)
	require.ErrorContains(t, err, "the object is given twice")
}

// A Deployment without a selector beside one of the same name with a selector is a patch of it, wherever it is found: a cluster takes
// only one of them. Alone it is a sketch of a Deployment, and planned.
func TestPatchesOfControllers(t *testing.T) {
	for kind, required := range map[string]string{"Deployment": "", "StatefulSet": "serviceName: web, ", "DaemonSet": "", "ReplicaSet": ""} {
		for _, patch := range []string{"a-patch.yaml", "z-patch.yaml"} {
			dir := t.TempDir()
			write := func(name, selector, containers string) {
				text := fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: web}\nspec: {%s%stemplate: {metadata: {labels: {app: web}}, spec: {%s}}}\n", kind, required, selector, containers)
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			write(patch, "", "containers: [{name: main, image: i}]")
			_, err := manifests.Read([]string{dir}, nil)
			require.NoError(t, err)
			write("base.yaml", "selector: {matchLabels: {app: web}}, ", "containers: [{name: main, image: i}]")
			_, err = manifests.Read([]string{dir}, nil)
			require.ErrorContains(t, err, fmt.Sprintf("%s:1: %s default/web: spec.selector: required; a patch is not a manifest: ", filepath.Join(dir, patch), kind))
			assert.NotContains(t, err.Error(), "\n")

			write(patch, "", "priorityClassName: high")
			_, err = manifests.Read([]string{dir}, nil)
			require.ErrorContains(t, err, "a pod needs at least one container; a patch is not a manifest: ")
			assert.NotContains(t, err.Error(), "\n", "once is enough")
		}
	}
}

// kubectl create takes objects with the beginning of a name, and files of several makers that were put together.
func TestFilesAsTheyAre(t *testing.T) {
	made := "apiVersion: v1\nkind: Pod\nmetadata: {generateName: web-}\nspec: {containers: [{name: main, image: i}]}\n"
	mark := "\xef\xbb\xbf"
	text := mark + made + mark + "---\n" + made + "---\n" + mark + made + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web-1}\nspec: {containers: [{name: main, image: i}]}\n"
	s, err := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: []byte(text)}}, nil)
	require.EqualError(t, err, "x.yaml:16: Pod default/web-1: metadata.name: the object is given twice, first at x.yaml:6")
	require.Nil(t, s)
	s, err = manifests.Parse([]manifests.File{{Name: "x.yaml", Data: []byte(mark + made + mark + "---\n" + made + "---\n" + mark + made)}}, nil)
	require.NoError(t, err)
	require.Len(t, s.Pods, 3)
	for i, p := range s.Pods {
		require.Equal(t, fmt.Sprint("web-", i), p.Name)
	}
}

// What holds nothing was meant to hold something: a pipe has broken, or a chart rendered nothing.
func TestEmptyInput(t *testing.T) {
	for text, bad := range map[string]bool{"": true, "\n# nothing\n---\n": true, "apiVersion: v1\nkind: List\nitems: []\n": false} {
		_, err := manifests.Read([]string{"-"}, &manifests.Options{Stdin: strings.NewReader(text)})
		if bad {
			require.EqualError(t, err, "-: the input contains no manifest")
		} else {
			require.NoError(t, err)
		}
	}
}

// A cluster may be newer than this program: what its API server has stored is no mistake of a person. The fields are not read, and a
// note says so. Without the marks of a server, the same text is a typo.
func TestFieldsOfANewerCluster(t *testing.T) {
	const server = "uid: 8f14e45f-0000-4000-8000-000000000001, resourceVersion: \"17\""
	text := func(marks string) []manifests.File {
		var b strings.Builder
		for _, name := range []string{"a", "b"} {
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, %s}\nspec: {later: 1, containers: [{name: c, image: c, soon: {}}, {name: d, image: d, soon: {}}]}\n", name, marks)
		}
		fmt.Fprintf(&b, "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: c, %s}\nspec: {template: {spec: {later: [], restartPolicy: Never, containers: [{name: c, image: c}]}}}\n", marks)
		return []manifests.File{{Name: "x.yaml", Data: []byte(b.String())}}
	}
	s, err := manifests.Parse(text(server), nil)
	require.NoError(t, err)
	assert.Len(t, s.Pods, 2)
	assert.Len(t, s.Pods[0].Spec.Containers, 2)
	assert.Contains(t, s.Notes, "fields that this version does not know are not read: Job spec.template.spec.later 1, Pod spec.containers.soon 4, Pod spec.later 2")

	for _, marks := range []string{"labels: {}", "uid: a", "resourceVersion: \"17\"", "uid: \"\", resourceVersion: \"\""} {
		_, err = manifests.Parse(text(marks), nil)
		require.ErrorContains(t, err, `unknown field "later"`, marks)
	}

	// A wrong type is a mistake, whoever has stored it.
	_, err = manifests.Parse([]manifests.File{{Name: "x.yaml", Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a, " + server + "}\nspec: {containers: 1}\n")}}, nil)
	require.ErrorContains(t, err, "spec.containers")
}
