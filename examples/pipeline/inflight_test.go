package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

const smallPool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  limits: {cpu: 2}
  template: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, requirements: [], startupTaints: [{key: agent, effect: NoSchedule}]}}
---
`

// claim is a launched one of two cores, with more of its metadata, spec and status.
func claim(meta, spec, status string) string {
	return `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: default-x` + meta + `, labels: {karpenter.sh/nodepool: default, topology.kubernetes.io/zone: zone-a}}
spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, requirements: []` + spec + `}
status: {providerID: "cloud://1"` + status + `}
---
`
}

const (
	promised = `, capacity: {cpu: 2, memory: 64Gi, pods: 100}, allocatable: {cpu: 2, memory: 64Gi, pods: 100}`
	done     = `, conditions: [{type: Initialized, status: "True"}]`
)

func machine(meta, spec, cpu string) string {
	return `
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {karpenter.sh/nodepool: default` + meta + `}}
spec: {providerID: "cloud://1"` + spec + `}
status: {capacity: {cpu: ` + cpu + `, memory: 64Gi, pods: 100}}
---
`
}

// What was bought is not bought again while it starts up: until a node is initialized, what was promised of it counts, and
// against the limits of its pool, too.
func TestCapacityInFlightIsNotBoughtAgain(t *testing.T) {
	pods := deployment("web", 2, container("1"))
	tainted := func(keys string) string { return ", taints: [" + keys + "]" }
	const notReady, gpu = "{key: node.kubernetes.io/not-ready, effect: NoExecute}", "{key: gpu, effect: NoSchedule}"
	unregistered := tainted("{key: karpenter.sh/unregistered, effect: NoExecute}")
	for name, c := range map[string]struct {
		cluster         string
		there, unplaced int
	}{
		"a claim without a node":                    {claim("", "", promised), 2, 0},
		"its startup taints are nobody's concern":   {claim("", ", startupTaints: [{key: own, effect: NoSchedule}]", promised), 2, 0},
		"its taints are":                            {claim("", ", taints: ["+gpu+"]", promised), 0, 2},
		"a claim that knows the node's name":        {claim("", "", promised+", nodeName: n1"), 2, 0},
		"a claim that is given back":                {claim(`, deletionTimestamp: "2026-01-01T00:00:00Z"`, "", promised), 0, 2},
		"a claim whose node was there and is gone":  {claim("", "", promised+done), 0, 2},
		"a node that has not registered":            {machine("", unregistered, "2"), 2, 0},
		"a node that was never ready":               {claim("", "", promised) + machine("", tainted(notReady), "2"), 2, 0},
		"the same, known by name":                   {claim("", "", promised+", nodeName: n1") + machine("", tainted(notReady), "2"), 2, 0},
		"a node that is no longer ready":            {claim("", "", promised+done) + machine("", tainted(notReady), "2"), 0, 2},
		"the same, by its label":                    {claim("", "", promised) + machine(`, karpenter.sh/initialized: "true"`, tainted(notReady), "2"), 0, 2},
		"a node with the pool's startup taint":      {claim("", "", promised) + machine("", tainted("{key: agent, effect: NoSchedule}"), "2"), 2, 0},
		"a node with the claim's startup taint":     {claim("", ", startupTaints: [{key: own, effect: NoSchedule}]", promised) + machine("", tainted("{key: own, effect: NoSchedule}"), "2"), 2, 0},
		"a node that says nothing of its resources": {claim("", "", promised) + machine("", "", "0"), 2, 0},
		"a node that will be tainted":               {claim("", ", taints: ["+gpu+"]", promised) + machine("", "", "2"), 0, 2},
		"a node whose taint was taken off since":    {claim("", ", taints: ["+gpu+"]", promised) + machine(`, karpenter.sh/registered: "true"`, "", "2"), 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := pack(t, catalogue(t, "a.2 2 zone-a on-demand 0.1"), smallPool+pods+c.cluster)
			assert.Empty(t, p.NewNodes(), "the limit is spent")
			assert.Len(t, p.Bindings(), c.there)
			unplaced := 0
			for _, u := range p.Unplaced() {
				unplaced += len(u.Pods)
			}
			assert.Equal(t, c.unplaced, unplaced)
		})
	}
}

// The labels and devices that a node is yet to show count as well.
func TestWhatANodeIsYetToShow(t *testing.T) {
	market := catalogue(t, "a.2 2 zone-a on-demand 0.1")
	gpu := deployment("train", 1, "nodeSelector: {topology.kubernetes.io/zone: zone-a}\ncontainers: [{name: main, image: i, resources: {limits: {example.com/gpu: 1}}}]\n")
	node := machine(`, karpenter.sh/registered: "true"`, "", "2")
	assert.Len(t, pack(t, market, anyPool+gpu+node).Unplaced(), 1)
	withGPU := claim("", "", `, allocatable: {cpu: 2, memory: 64Gi, pods: 100, example.com/gpu: 1}`)
	p := pack(t, market, anyPool+gpu+node+withGPU)
	assert.Empty(t, p.Unplaced())
	assert.Equal(t, "n1", p.Problem.Existing[0].Node.Name)
}

// A claim of which nothing is known yet takes a place in its pool, and is named.
func TestAClaimWithoutPromise(t *testing.T) {
	p := pack(t, catalogue(t, "a.2 2 zone-a on-demand 0.1"), anyPool+deployment("web", 1, container("1"))+claim("", "", ""))
	assert.Len(t, p.NewNodes(), 1)
	assert.Contains(t, p.Problem.Notes, "claim default-x does not say what its node will have, so the same capacity may be bought twice: ask its provider for the claim again")
}

// Pods that have a node in prospect keep their room there, and are planned anew where that node is gone.
func TestNominatedPodsKeepTheirRoom(t *testing.T) {
	market := catalogue(t, "a.2 2 zone-a on-demand 0.1")
	pod := func(node string) string {
		return `
apiVersion: v1
kind: Pod
metadata: {name: first}
spec: {containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]}
status: {phase: Pending, nominatedNodeName: ` + node + `}
---
`
	}
	for _, node := range []string{"default-x", "n1"} {
		p := pack(t, market, smallPool+pod(node)+deployment("web", 2, container("1"))+claim("", "", promised)+machine("", "", "2"))
		assert.Len(t, p.Bindings(), 1)
		assert.Len(t, p.Problem.Ignored, 1)
	}
	p := pack(t, market, smallPool+pod("gone")+deployment("web", 2, container("1"))+claim("", "", promised))
	assert.Len(t, p.Bindings(), 2)
	assert.Empty(t, p.Problem.Ignored)
}

// A node that attaches so many volumes will not attach more because nobody has counted there yet.
func TestAttachLimitsInFlight(t *testing.T) {
	volumes := `
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: made}
provisioner: disk.example.com
volumeBindingMode: WaitForFirstConsumer
---
`
	web := deployment("web", 3, "volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: made, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]\n"+container("100m"))
	for limit, want := range map[string]int{"": 3, ", attachable-volumes-csi-disk.example.com: 2": 2} {
		p := pack(t, catalogue(t), web+volumes+claim("", "", fmt.Sprintf(", allocatable: {cpu: 2, memory: 64Gi, pods: 100%s}", limit)))
		assert.Len(t, p.Bindings(), want)
	}
}

// A claim without an answer counts as its first candidate, as its own pool has that type, and says so where that cannot be.
func TestPromised(t *testing.T) {
	of := func(pool, cpu string) scheduling.Pool {
		return scheduling.Pool{NodePool: nodepool.NodePool{Name: pool}, Types: []instancetypes.InstanceType{{Name: "a", Capacity: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	}
	asked := cloudprovider.NodeClaim{Name: "x-0", Pool: "x", Candidates: []cloudprovider.Candidate{{Type: "a", Offering: requirements.MustParse(zoneKey + "=zone-b")}, {Type: "b"}}}
	coming, err := pipeline.Promised([]scheduling.Pool{of("other", "1"), of("x", "2")}, asked)
	require.NoError(t, err)
	assert.Equal(t, "2", coming.Capacity.Cpu().String())
	assert.Equal(t, "zone-b", coming.Labels[zoneKey])
	_, err = pipeline.Promised([]scheduling.Pool{of("other", "1")}, asked)
	require.ErrorContains(t, err, `pool "x" has no instance type "a" any more`)
	asked.Requirements = requirements.MustParse(zoneKey + "=zone-a")
	_, err = pipeline.Promised([]scheduling.Pool{of("x", "2")}, asked)
	require.Error(t, err, "they contradict each other")
}

// What a provider answers is planned with as it is.
func TestInstancesInFlight(t *testing.T) {
	asked := cloudprovider.NodeClaim{Name: "default-0", Pool: "default", Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}}
	two := corev1.ResourceList{"cpu": resource.MustParse("2")}
	instance := cloudprovider.Instance{
		ID: "cloud://7", Claim: "default-0", Pool: "default", Labels: map[string]string{zoneKey: "zone-b"},
		Capacity: two, Allocatable: two, State: cloudprovider.Pending,
	}
	bought := pipeline.InFlight(asked, instance)
	assert.False(t, bought.Deleting)
	node := bought.Node()
	require.Equal(t, instance.Node(asked), node, "one node, whoever makes it")
	assert.Equal(t, map[string]string{zoneKey: "zone-b", "karpenter.sh/nodepool": "default", corev1.LabelHostname: "default-0"}, node.Labels)
	assert.Equal(t, "cloud://7", node.Spec.ProviderID)
	node.Labels[zoneKey], node.Spec.Taints[0].Key = "", ""
	assert.Equal(t, "zone-b", instance.Labels[zoneKey])
	assert.Equal(t, "gpu", asked.Taints[0].Key)
	instance.State = cloudprovider.Terminating
	assert.True(t, pipeline.InFlight(asked, instance).Deleting)
}
