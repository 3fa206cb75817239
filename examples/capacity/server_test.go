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
	"github.com/joinery-sdk/joinery/examples/plan/capacity"
)

const manifests = `
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
func serve(t *testing.T) func(path, body string) (int, map[string]any) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(file, []byte(manifests), 0o600))
	state, err := read(t.Context(), file, "us-east-1")
	require.NoError(t, err)
	web := httptest.NewServer(newServer(state, func() time.Time { return time.Unix(0, 0).UTC() }).handler())
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
			"podTemplates": [{"metadata": {"namespace": "lab", "name": "worker"}, "template": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}}}]}`, class, count))
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
	}
	for _, body := range []string{"{}", `{"podTemplates":[null]}`, `{"request":{"kind":"Pod"}}`} {
		status, _ := post("/provisioningrequest", body)
		assert.Equal(t, http.StatusBadRequest, status, body)
	}
	status, _ := post("/nothing", "{}")
	assert.Equal(t, http.StatusNotFound, status)
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
}
