package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

const podDocument = `apiVersion: v1
kind: Pod
metadata:
  name: web-%d
  namespace: shop
  labels:
    app: web
    tier: front
spec:
  containers:
  - name: web
    image: example.com/web:1.2.3
    resources:
      requests:
        cpu: 250m
        memory: 512Mi
      limits:
        memory: 512Mi
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: DoNotSchedule
    labelSelector:
      matchLabels:
        app: web
`

func podDocuments(n int) []byte {
	var b strings.Builder
	for i := range n {
		b.WriteString("---\n")
		fmt.Fprintf(&b, podDocument, i)
	}
	return []byte(b.String())
}

func podList(n int) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nitems:\n")
	for i := range n {
		item := strings.ReplaceAll(strings.TrimSuffix(fmt.Sprintf(podDocument, i), "\n"), "\n", "\n  ")
		b.WriteString("- " + item + "\n")
	}
	b.WriteString("kind: List\nmetadata:\n  resourceVersion: \"\"\n")
	return []byte(b.String())
}

// BenchmarkRead reads pods as separate documents and as one exported list.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{10, 1000, 10000, 100000} {
		for _, form := range []struct {
			name string
			make func(int) []byte
		}{{"documents", podDocuments}, {"list", podList}} {
			b.Run(fmt.Sprintf("%s/pods=%d", form.name, n), func(b *testing.B) {
				data := form.make(n)
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					s, err := manifests.Parse([]manifests.File{{Name: "pods.yaml", Data: data}}, nil)
					require.NoError(b, err)
					require.Len(b, s.Pods, n)
				}
			})
		}
	}
}

// BenchmarkDeployments reads 400 deployments of 250 pods each and walks over all the pods.
func BenchmarkDeployments(b *testing.B) {
	var text strings.Builder
	for i := range 400 {
		fmt.Fprintf(&text, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app-%[1]d}
spec:
  replicas: 250
  selector: {matchLabels: {app: app-%[1]d}}
  template:
    metadata: {labels: {app: app-%[1]d}}
    spec:
      containers:
      - name: main
        resources: {requests: {cpu: 100m, memory: 128Mi}}
`, i)
	}
	data := []byte(text.String())
	b.ReportAllocs()
	for b.Loop() {
		s, err := manifests.Parse([]manifests.File{{Name: "apps.yaml", Data: data}}, nil)
		require.NoError(b, err)
		n := 0
		for range s.AllPods() {
			n++
		}
		require.Equal(b, 100_000, n)
	}
}
