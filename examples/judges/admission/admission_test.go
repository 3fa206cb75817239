package admission_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// strategies are what an API server does with an object that is created, by kind.
func strategies() map[string]rest.RESTCreateStrategy {
	return map[string]rest.RESTCreateStrategy{
		"Pod": pod.Strategy, "Node": node.Strategy, "Namespace": namespace.Strategy, "LimitRange": limitrange.Strategy,
		"ReplicationController": replicationcontroller.Strategy, "PersistentVolume": persistentvolume.Strategy,
		"PersistentVolumeClaim": persistentvolumeclaim.Strategy, "Deployment": deployment.Strategy, "ReplicaSet": replicaset.Strategy,
		"StatefulSet": statefulset.Strategy, "DaemonSet": daemonset.Strategy, "Job": job.Strategy, "CronJob": cronjob.Strategy,
		"PodDisruptionBudget": poddisruptionbudget.Strategy, "PriorityClass": priorityclass.Strategy, "RuntimeClass": runtimeclass.Strategy,
		"StorageClass": storageclass.Strategy, "CSINode": csinode.Strategy, "CSIDriver": csidriver.Strategy,
	}
}

// server is what an API server says of a manifest that kubectl sends it, with the strict validation of fields that is kubectl's default.
func server(ctx context.Context, text string) error {
	strict := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return err
	}
	object, kind, err := strict.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return err
	}
	legacyscheme.Scheme.Default(object)
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
	if err != nil {
		return err
	}
	strategy, ok := strategies()[kind.Kind]
	if !ok {
		return fmt.Errorf("the test has no strategy for %s", kind)
	}
	meta := internal.(metav1.ObjectMetaAccessor).GetObjectMeta()
	rest.FillObjectMetaSystemFields(meta)
	where := metav1.NamespaceNone
	if strategy.NamespaceScoped() {
		where = metav1.NamespaceDefault
		meta.SetNamespace(where)
	}
	ctx = genericapirequest.WithNamespace(ctx, where)
	ctx = genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{APIGroup: kind.Group, APIVersion: kind.Version})
	return rest.BeforeCreate(strategy, ctx, internal)
}

// row is one manifest: what stands in the place of the @ of its table's text. Both sides must say the same of it, unless differs says
// why not.
type row struct{ text, differs string }

type table struct {
	name, template string
	rows           []row
}

func TestManifestsAgreeWithTheAPIServer(t *testing.T) {
	count, refused := 0, 0
	unreadable := map[string]bool{`resources: {requests: {cpu: .inf}}`: true, `resources: {requests: {cpu: .nan}}`: true} // before there is an object
	for _, table := range slices.Concat(pods(), others()) {
		require.Contains(t, table.template, "@")
		require.NoError(t, server(t.Context(), strings.Replace(table.template, "@", "", 1)), "%s: the template by itself", table.name)
		for _, r := range table.rows {
			text := strings.Replace(table.template, "@", r.text, 1)
			theirs := server(t.Context(), text)
			_, ours := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: []byte(text)}}, nil)
			count++
			if theirs != nil {
				refused++
			}
			switch same := (theirs == nil) == (ours == nil); {
			case r.differs != "" && same:
				assert.Failf(t, "they agree now", "%s: %s: %v / %v", table.name, r.text, theirs, ours)
			case r.differs == "" && !same:
				assert.Failf(t, "not what an API server says", "%s: %s\nserver: %v\nhere:   %v", table.name, r.text, theirs, ours)
			}
			if problem := (*manifests.Problem)(nil); ours != nil && errors.As(ours, &problem) {
				assert.NotZero(t, problem.Position.Line, "%s: %s: %v", table.name, r.text, ours)
				if !unreadable[r.text] {
					assert.NotEmpty(t, problem.Object, "%s: %s: %v", table.name, r.text, ours)
					assert.NotEmpty(t, problem.Path, "%s: %s: %v", table.name, r.text, ours)
				}
			}
		}
	}
	assert.Greater(t, refused, count/4)
	assert.Greater(t, count-refused, count/4)
}
