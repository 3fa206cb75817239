package nodepool_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A pool made in Go is the one of a manifest that says as little.
func TestNewIsTheManifestThatSaysNothing(t *testing.T) {
	want, err := nodepool.Decode([]byte(`{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "web"}, "spec": {"template": {"spec": {
		"nodeClassRef": {"group": "g", "kind": "Class", "name": "c"},
		"requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]}}}}`))
	require.NoError(t, err)
	want.Metadata, want.NodeClass = metav1.ObjectMeta{}, nodepool.NodeClassRef{}
	assert.Equal(t, want, nodepool.New("web", requirements.In("kubernetes.io/arch", "arm64")))
}

func TestYAMLIsToldFromBrokenJSON(t *testing.T) {
	_, err := nodepool.Decode([]byte("apiVersion: karpenter.sh/v1\nkind: NodePool\n"))
	require.ErrorContains(t, err, "is this YAML?")
	_, err = nodepool.Decode([]byte(` {"apiVersion": `))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "YAML")
}
