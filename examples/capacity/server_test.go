package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/plan/capacity"
)

const cluster = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  limits: {cpu: "8"}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: v1
kind: Node
metadata: {name: first, labels: {kubernetes.io/hostname: first}}
status:
  allocatable: {cpu: "4", memory: 16Gi, pods: "20"}
  capacity: {cpu: "4", memory: 16Gi, pods: "20"}
`

// serve is a server of the manifests, and a function that posts to it.
func serve(t *testing.T, more ...string) func(path, body string) (int, map[string]any) {
	t.Helper()
	dir, config := t.TempDir(), ""
	file := filepath.Join(dir, "cluster.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(append([]string{cluster}, more...), "---\n")), 0o600))
	if len(more) > 0 {
		config = filepath.Join(dir, "scheduler.yaml")
		require.NoError(t, os.WriteFile(config, []byte(spreading), 0o600))
	}
	state, defaults, err := read(t.Context(), file, "us-east-1", config)
	require.NoError(t, err)
	web := httptest.NewServer(newServer(state, defaults, func() time.Time { return time.Unix(0, 0).UTC() }).handler())
	t.Cleanup(web.Close)
	return func(path, body string) (int, map[string]any) {
		resp, err := http.Post(web.URL+path, "application/json", strings.NewReader(body)) //nolint:gosec,noctx // the address is that of the test
		if !assert.NoError(t, err) {
			return 0, nil
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		assert.NoError(t, err)
		var out map[string]any
		_ = json.Unmarshal(text, &out) // nil for what is no JSON
		return resp.StatusCode, out
	}
}

func pods(names string, cpu int) string {
	var all []string
	for name := range strings.FieldsSeq(names) {
		all = append(all, fmt.Sprintf(`{"metadata":{"namespace":"shop","name":%q},"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"%d"}}}]}}`, name, cpu))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func TestAnswers(t *testing.T) {
	post := serve(t)
	status, r := post("/ask", `{"pods":`+pods("a b", 2)+`}`)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "fits", r["answer"], r)
	assert.Nil(t, r["state"])
	_, r = post("/ask", `{"pods":`+pods("a", 3)+`,"commit":true}`)
	assert.EqualValues(t, 1, r["state"])
	_, r = post("/ask", `{"state":1,"pods":`+pods("b", 3)+`,"commit":true}`)
	assert.Equal(t, "buy", r["answer"])
	assert.Positive(t, r["lowerBoundPerHour"])
	assert.LessOrEqual(t, r["lowerBoundPerHour"], r["pricePerHour"])
	_, r = post("/ask", `{"state":2,"pods":`+pods("c d", 3)+`}`)
	assert.Equal(t, "impossible", r["answer"])
	text, err := json.Marshal(r["refusals"])
	require.NoError(t, err)
	assert.Contains(t, string(text), "had a limit of 12 cpu")
	_, r = post("/ask", `{"pods":`+pods("b", 3)+`}`)
	assert.Equal(t, "fits", r["answer"], "the first state is as it was")
}

func TestProvisioningRequests(t *testing.T) {
	post := serve(t)
	ask := func(class string, count int) (int, map[string]any) {
		return post("/provisioningrequest", fmt.Sprintf(`{"commit": true, "request": {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
			"metadata": {"namespace": "lab", "name": "train"}, "spec": {"provisioningClassName": %q, "podSets": [{"count": %d, "podTemplateRef": {"name": "worker"}}]}},
			"podTemplates": [{"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"namespace": "lab", "name": "worker"}, "template": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}}}]}`, class, count))
	}
	_, r := ask("check-capacity.autoscaling.x-k8s.io", 2)
	assert.Equal(t, "Pending", r["admissionCheck"], r)
	assert.Nil(t, r["state"], "to check capacity buys nothing")
	_, r = ask("best-effort-atomic-scale-up.autoscaling.x-k8s.io", 2)
	assert.EqualValues(t, 1, r["state"])
	assert.Len(t, r["conditions"], 2)
	status, r := ask("other", 2)
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, r["error"], "provisioningClassName")
}

// Whatever a client sends has a status and a text, and holds nothing.
func TestBadQuestions(t *testing.T) {
	post := serve(t)
	for body, want := range map[string]int{
		"":                                http.StatusBadRequest,
		"{":                               http.StatusBadRequest,
		`{"pods":[]}`:                     http.StatusBadRequest,
		`{"pods":[null]}`:                 http.StatusBadRequest,
		`{"pods":[{}]}`:                   http.StatusBadRequest,
		`{"pods":` + pods("a a", 1) + "}": http.StatusBadRequest,
		`{"state":7,"pods":` + pods("a", 1) + "}":                               http.StatusGone,
		`{"state":-1,"pods":` + pods("a", 1) + "}":                              http.StatusGone,
		`{"pods":[{"spec":{"nodeName":"first"}}]}`:                              http.StatusBadRequest,
		`{"pods":[{"metadata":{"name":"` + strings.Repeat("x", 5<<20) + `"}}]}`: http.StatusRequestEntityTooLarge,
	} {
		status, r := post("/ask", body)
		assert.Equal(t, want, status, "%.60s", body)
		assert.NotEmpty(t, r["error"], "%.60s", body)
		assert.NotContains(t, r["error"], "strictjson", "%.60s", body)
	}
	for _, body := range []string{"{}", `{"podTemplates":[null]}`, `{"request":{"kind":"Pod"}}`} {
		status, _ := post("/provisioningrequest", body)
		assert.Equal(t, http.StatusBadRequest, status, body)
	}
	status, _ := post("/nothing", "{}")
	assert.Equal(t, http.StatusNotFound, status)
}

// What a question says and no object has is an error with its field, as in files: it would be answered as if it were not
// there.
func TestQuestionsAreReadStrictly(t *testing.T) {
	post := serve(t)
	const ask, request = "/ask", "/provisioningrequest"
	pod, good := func(spec string) string { return `{"metadata":{"namespace":"shop","name":"a"},"spec":` + spec + "}" }, pods("a", 1)
	wish := `{"apiVersion":"autoscaling.x-k8s.io/v1","kind":"ProvisioningRequest","metadata":{"namespace":"shop","name":"r"},"spec":{"provisioningClassName":"check-capacity.autoscaling.x-k8s.io","podSets":[{"count":1,"podTemplateRef":{"name":"a"}}]}}`
	template := func(spec string) string {
		return `[{"metadata":{"namespace":"shop","name":"a"},"template":{"spec":` + spec + "}}]"
	}
	for _, c := range []struct{ path, body, want string }{
		{ask, `{"pods":[` + pod(`{"contaners":[]}`) + "]}", `pods[0].spec.contaners: unknown field "contaners": did you mean "containers"?`},
		{ask, `{"pods":` + good + `,"comit":true}`, "comit"},
		{ask, `{"pods":[` + pod(`{"containers":[{"name":"a","resources":{"request":{"cpu":"1"}}}]}`) + "]}", "pods[0].spec.containers[0].resources.request"},
		{ask, `{"pods":[` + pod(`{"containers":[]}`) + "]}", "pods[0].spec.containers: a pod needs at least one container"},
		{ask, `{"pods":[{}]}`, "pods[0].spec.containers: a pod needs at least one container"},
		{ask, `{"pods":[null]}`, "pods[0]"},
		{ask, `{"pods":` + good + "} {}", "after"},
		{ask, `{"pods":` + good + `,"pods":[]}`, "twice"},
		{ask, `{"pods":[` + pod(`{"containers":[{"name":"a","resources":{"requests":{"cpu":"1 core"}}}]}`) + "]}", "pods[0].spec.containers[0].resources.requests"},
		{request, `{"request":` + strings.Replace(wish, "podSets", "podsets", 1) + `,"podTemplates":` + template(`{"containers":[{"name":"a"}]}`) + "}", "request.spec.podsets"},
		{request, `{"request":` + wish + `,"podTemplates":` + template(`{"contaners":[]}`) + "}", "podTemplates[0].template.spec.contaners"},
		{request, `{"request":` + wish + `,"podTemplates":` + template(`{"containers":[]}`) + "}", "podTemplates[0].template.spec.containers: a pod needs at least one container"},
		{request, `{"podTemplates":` + template(`{"containers":[{"name":"a"}]}`) + "}", "request: want a ProvisioningRequest"},
	} {
		status, r := post(c.path, c.body)
		assert.Equal(t, http.StatusBadRequest, status, c.body)
		assert.Contains(t, r["error"], c.want)
	}
	// What a newer cluster writes to the status of an object is no mistake of the client.
	live := strings.Replace(pod(`{"containers":[{"name":"a"}]}`), `"spec"`, `"status":{"later":1},"spec"`, 1)
	status, r := post(ask, `{"pods":[`+live+"]}")
	assert.Equal(t, http.StatusOK, status, r)
	status, r = post(request, `{"request":`+wish+`,"podTemplates":`+template(`{"containers":[{"name":"a"}]}`)+"}")
	assert.Equal(t, http.StatusOK, status, r)
}

// What an API server refuses is refused, and what it takes has an answer, whichever question the pod is part of. The pods are judged
// by the same check as those of files.
func TestQuestionsAreCheckedAsFiles(t *testing.T) {
	post := serve(t)
	const main = `"containers":[{"name":"c","image":"i"}]`
	counts := map[bool]int{}
	for _, c := range []struct{ metadata, spec string }{
		{`"name":"a"`, main},
		{`"generateName":"a-"`, main},
		{`"name":"a.b","namespace":"x","uid":"1","resourceVersion":"2","managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}]`, main},
		{`"name":"A_B"`, main},
		{`"name":""`, main},
		{`"generateName":"A-"`, main},
		{`"name":"a","namespace":"X Y"`, main},
		{`"name":"a","labels":{"a b":"c"}`, main},
		{`"name":"a","labels":{"a":"b c"}`, main},
		{`"name":"a"`, `"containers":[]`},
		{`"name":"a"`, `"containers":[{"name":"c"},{"name":"c"}]`},
		{`"name":"a"`, `"containers":[{"name":"c","ports":[{"containerPort":99999}]}]`},
		{`"name":"a"`, `"containers":[{"name":"c","ports":[{"containerPort":80,"hostPort":80}]}]`},
		{`"name":"a"`, `"containers":[{"name":"c","volumeMounts":[{"name":"none","mountPath":"/a"}]}]`},
		{`"name":"a"`, `"containers":[{"name":"c","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}}]`},
		{`"name":"a"`, `"containers":[{"name":"c","resources":{"requests":{"cpu":"-2"}}}]`},
		{`"name":"a"`, `"containers":[{"name":"c","resources":{"requests":{"foo":"1"}}}]`},
		{`"name":"a"`, `"containers":[{"name":"c","resources":{"requests":{"example.com/gpu":"1"}}}]`},
		{`"name":"a"`, main + `,"restartPolicy":"Sometimes"`},
		{`"name":"a"`, main + `,"restartPolicy":"Never"`},
		{`"name":"a"`, main + `,"nodeSelector":{"a":"b c"}`},
		{`"name":"a"`, main + `,"tolerations":[{"operator":"Exists","key":"a","value":"b"}]`},
		{`"name":"a"`, main + `,"tolerations":[{"operator":"Exists","key":"a"}]`},
		{`"name":"a"`, main + `,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone"}]`},
		{`"name":"a"`, main + `,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"}]`},
		{`"name":"a"`, main + `,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}`},
		{`"name":"a"`, main + `,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"In"}]}]}}}`},
		{`"name":"a"`, main + `,"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":""}]}}`},
	} {
		pod := fmt.Sprintf(`{"metadata":{%s},"spec":{%s}}`, c.metadata, c.spec)
		for body, file := range map[string]string{
			`/ask {"pods":[` + pod + "]}": `{"apiVersion":"v1","kind":"Pod",` + pod[1:],
			`/provisioningrequest {"request":` + wish(c.metadata) + `,"podTemplates":[{"metadata":{` + c.metadata + `},"template":` + pod + "}]}": `{"apiVersion":"v1","kind":"PodTemplate","metadata":{` + c.metadata + `},"template":` + pod + "}",
		} {
			_, fault := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: []byte(file)}}, nil)
			path, body, _ := strings.Cut(body, " ")
			status, r := post(path, body)
			assert.Equal(t, fault == nil, status == http.StatusOK, "%s\n%v\n%v", body, fault, r)
			counts[fault == nil]++
		}
	}
	assert.Greater(t, counts[true], 10)
	for pod, want := range map[string]string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{` + main + `}}`: "pods[0]: want a Pod",
		`{"apiVersion":"v2","kind":"Pod","metadata":{"name":"a"},"spec":{` + main + `}}`:             `pods[0].apiVersion: "v2" has no Pod`,
		`{"kind":"PodList","items":[]}`: "pods[0]: want a Pod",
		`[]`:                            "pods[0]: want an object",
		`{"metadata":{"name":"a"},"spec":{` + main + `}},{"metadata":{"name":"a"},"spec":{` + main + `}}`: "pods[1].metadata.name: Pod default/a is given twice, first at pods[0]",
	} {
		status, r := post("/ask", `{"pods":[`+pod+"]}")
		assert.Equal(t, http.StatusBadRequest, status, pod)
		assert.Contains(t, r["error"], want)
	}
	for body, want := range map[string]string{
		`/ask []`: "the question: want an object, got a list",
		`/provisioningrequest {"request":{"spec":{}}}`: `provisioning: the request: apiVersion "" and kind "": want a ProvisioningRequest of autoscaling.x-k8s.io`,
	} {
		path, body, _ := strings.Cut(body, " ")
		_, r := post(path, body)
		text, _, _ := strings.Cut(fmt.Sprint(r["error"]), "\n")
		assert.Equal(t, want, text)
	}
}

// wish is a request for a pod of the template with this metadata.
func wish(metadata string) string {
	name := "a-0" // that is generated
	if _, rest, ok := strings.Cut(metadata, `"name":"`); ok {
		name, _, _ = strings.Cut(rest, `"`)
	}
	namespace := "default"
	if strings.Contains(metadata, `"namespace":"x"`) {
		namespace = "x"
	}
	return `{"apiVersion":"autoscaling.x-k8s.io/v1","kind":"ProvisioningRequest","metadata":{"namespace":"` + namespace + `","name":"r"},"spec":{"provisioningClassName":"check-capacity.autoscaling.x-k8s.io","podSets":[{"count":1,"podTemplateRef":{"name":"` + name + `"}}]}}`
}

// Old states are forgotten, and the first is not.
func TestStatesAreBounded(t *testing.T) {
	post := serve(t)
	for i := range mostStates + 3 {
		_, r := post("/ask", fmt.Sprintf(`{"pods":%s,"commit":true}`, pods(fmt.Sprint("p", i), 1)))
		assert.EqualValues(t, i+1, r["state"])
	}
	status, _ := post("/ask", `{"state":1,"pods":`+pods("a", 1)+`}`)
	assert.Equal(t, http.StatusGone, status)
	status, _ = post("/ask", `{"pods":`+pods("a", 1)+`}`)
	assert.Equal(t, http.StatusOK, status)
}

// Clients at the same time have the answers that each would have alone.
func TestClientsAtOnce(t *testing.T) {
	post := serve(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 20 {
				_, r := post("/ask", `{"pods":`+pods(fmt.Sprintf("p-%d-%d", i, k), 1+k%3)+`}`)
				assert.Equal(t, string(capacity.Fits), r["answer"])
			}
		})
	}
	all.Wait()
}

func TestUsage(t *testing.T) {
	var out, problems bytes.Buffer
	assert.Equal(t, inputs.ExitInput, run(t.Context(), nil, &out, &problems))
	assert.Contains(t, problems.String(), "want -f")
	assert.Equal(t, inputs.ExitInput, run(t.Context(), []string{"-f", filepath.Join(t.TempDir(), "none")}, &out, &problems))
	assert.Equal(t, inputs.ExitInput, run(t.Context(), []string{"-nonsense"}, &out, &problems))
	assert.Equal(t, inputs.ExitOK, run(t.Context(), []string{"version"}, &out, &problems))
	assert.True(t, strings.HasPrefix(out.String(), "capacity "), out.String())
}

// The address is said once it is open, and not if it cannot be.
func TestAddressThatCannotBeOpened(t *testing.T) {
	var out, problems bytes.Buffer
	assert.Equal(t, inputs.ExitInternal, run(t.Context(), []string{"-f", "../gate/testdata/before", "-listen", "foo"}, &out, &problems))
	assert.Empty(t, out.String())
	assert.Contains(t, problems.String(), "foo: missing port in address")
}

// A pod without a namespace is in default, in answers as in errors.
func TestPodsWithoutNamespace(t *testing.T) {
	post := serve(t)
	const pod = `{"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "%s"}}}]}}`
	_, r := post("/ask", `{"pods":[`+fmt.Sprintf(pod, "1")+`]}`)
	assert.Contains(t, fmt.Sprint(r["places"]), "default/a")
	_, r = post("/ask", `{"pods":[`+fmt.Sprintf(pod, "1000")+`]}`)
	assert.Contains(t, fmt.Sprint(r["refusals"]), "[default/a]")
}

const spreading = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
`

// Pods without spread constraints get those of kube-scheduler's configuration, in questions as in ProvisioningRequests.
func TestDefaultSpread(t *testing.T) {
	const service = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}}}\n"
	const pod = `{"metadata": {"name": "%s", "namespace": "shop", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "100m"}}}]}}`
	request := `{"request": {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": {"name": "r", "namespace": "shop"}, "spec": {"provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io", "podSets": [{"podTemplateRef": {"name": "web"}, "count": 2}]}},
		"podTemplates": [{"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "web", "namespace": "shop"}, "template": ` + fmt.Sprintf(pod, "") + `}]}`
	for more, nodes := range map[string]int{"": 0, service: 2} { // the node that is there is in no zone
		var files []string
		if more != "" {
			files = []string{more}
		}
		post := serve(t, files...)
		status, reply := post("/ask", `{"pods": [`+fmt.Sprintf(pod, "a")+","+fmt.Sprintf(pod, "b")+`]}`)
		require.Equal(t, http.StatusOK, status, reply)
		assert.Len(t, reply["nodes"], nodes)
		status, reply = post("/provisioningrequest", request)
		require.Equal(t, http.StatusOK, status, reply)
		assert.Len(t, reply["nodes"], nodes)
	}
}
