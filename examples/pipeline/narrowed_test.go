package pipeline_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// What a pod asks for counts, also where its volumes leave it nothing and a volume that the plan does not use is given to it in the end: a node
// that is bought for it has the labels that its agents set, and those of its type.
func TestAPodWithALateVolumeIsHeldToItsLabels(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "a.4 4 zone-b on-demand 0.2")
	const around = anyPool + `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: here}
provisioner: disk.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: there}
provisioner: disk.example.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [zone-b]}]}]
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: disk.example.com}
spec: {storageCapacity: true}
---
apiVersion: storage.k8s.io/v1
kind: CSIStorageCapacity
metadata: {name: here, namespace: kube-system}
storageClassName: here
capacity: 2Gi
nodeTopology: {matchLabels: {topology.kubernetes.io/zone: zone-a}}
---
apiVersion: storage.k8s.io/v1
kind: CSIStorageCapacity
metadata: {name: there, namespace: kube-system}
storageClassName: there
capacity: 2Gi
nodeTopology: {matchLabels: {topology.kubernetes.io/zone: zone-b}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: free}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 2Gi}
  csi: {driver: disk.example.com, volumeHandle: h}
  storageClassName: here
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: first}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: here}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: one}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: here}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: two}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: there}
`
	const volumes = "volumes: [{name: one, persistentVolumeClaim: {claimName: one}}, {name: two, persistentVolumeClaim: {claimName: two}}]"
	taken := single("default", "first", "app: first", "priority: 1000, nodeSelector: {topology.kubernetes.io/zone: zone-b}, volumes: [{name: v, persistentVolumeClaim: {claimName: first}}]")
	taken = strings.Replace(taken, "cpu: ", "cpu: 100", 1) // too large for every type, so it uses no volume
	for _, asks := range []string{
		"", "{key: karpenter.sh/registered, operator: DoesNotExist}", "{key: karpenter.sh/initialized, operator: NotIn, values: ['true']}",
		"{key: kubernetes.io/os, operator: DoesNotExist}", "{key: node.kubernetes.io/instance-type, operator: NotIn, values: [a.4]}",
		"{key: karpenter.sh/nodepool, operator: NotIn, values: [default]}",
	} {
		spec := volumes
		if asks != "" {
			spec += ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [" + asks + "]}]}}}"
		}
		packed := pack(t, market, around+taken+single("default", "web", "app: web", spec))
		var placed []string
		for _, b := range packed.Bindings() {
			placed = append(placed, b.Pod.Name)
		}
		if asks == "" {
			assert.Equal(t, []string{"web"}, placed, "the volume in zone-b is free in the end")
		} else {
			assert.Empty(t, placed, asks)
		}
	}
}

// The bound is of the pods: what Options.Within excludes counts there, with labels that nothing else names.
func TestBoundsCountWhatACallerExcludes(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "a.4 4 zone-b on-demand 0.1")
	s := read(t, market, strings.Replace(anyPool, "template: {", "template: {metadata: {labels: {example.com/disk: fast}}, ", 1)+single("default", "web", "app: web", `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
  {matchExpressions: [{key: example.com/disk, operator: In, values: [fast]}, {key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]},
  {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-a]}]}]}}}`))
	free, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	require.InDelta(t, 0.1, free.Cost().Dollars(), 1e-9)
	held, err := plan.Make(t.Context(), s, &plan.Options{Scheduling: &scheduling.Options{Within: func(*corev1.Pod) requirements.Set {
		return requirements.MustParse("topology.kubernetes.io/zone=zone-a")
	}}})
	require.NoError(t, err)
	require.InDelta(t, 0.2, held.Cost().Dollars(), 1e-9)
	assert.LessOrEqual(t, held.Bound.Price, free.Cost())
}
