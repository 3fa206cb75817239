package manifests_test

import (
	"bytes"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// TestSameAsKubernetesYAML holds every typed object of the valid manifests against what the Kubernetes project's own YAML
// package makes of it. Only what this package means to do differently is evened out: the namespace and managed fields.
func TestSameAsKubernetesYAML(t *testing.T) {
	files, err := filepath.Glob("testdata/valid/*.yaml")
	require.NoError(t, err)
	compared := 0
	for _, file := range files {
		body, _ := wanted(t, file)
		for document := range bytes.SplitSeq(body, []byte("\n---\n")) {
			s, err := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: document}}, nil)
			if err != nil || bytes.Contains(document, []byte("List\n")) || bytes.HasPrefix(document, []byte("{")) {
				continue // a document that needs its neighbours, a list, or a stream
			}
			for _, got := range objects(s) {
				want := reflect.New(reflect.TypeOf(got).Elem()).Interface().(metav1.Object)
				require.NoError(t, yaml.Unmarshal(document, want), file)
				want.SetManagedFields(nil)
				if got.GetNamespace() == metav1.NamespaceDefault {
					want.SetNamespace(metav1.NamespaceDefault)
				}
				assert.Equal(t, canonical(t, want), canonical(t, got), file)
				compared++
			}
		}
	}
	assert.Greater(t, compared, 25)
}

// canonical writes an object as YAML, so that quantities are compared by value and not by how they were parsed.
func canonical(t *testing.T, o any) string {
	t.Helper()
	text, err := yaml.Marshal(o)
	require.NoError(t, err)
	return string(text)
}

func objects(s *manifests.Snapshot) []metav1.Object {
	var all []metav1.Object
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		if f := v.Field(i); v.Type().Field(i).IsExported() && f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Pointer {
			for j := range f.Len() {
				all = append(all, f.Index(j).Interface().(metav1.Object))
			}
		}
	}
	return all
}
