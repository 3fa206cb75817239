package pipeline_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
)

// catalogue has one offering a line: type, cpu, zone, capacity type, price. Memory is four GiB a CPU.
func catalogue(t *testing.T, offers ...string) *pipeline.Market {
	t.Helper()
	var names []string
	cpu, offerings := map[string]string{}, map[string][]string{}
	for _, o := range offers {
		f := strings.Fields(o)
		require.Len(t, f, 5, o)
		if _, ok := cpu[f[0]]; !ok {
			names = append(names, f[0])
		}
		cpu[f[0]] = f[1]
		offerings[f[0]] = append(offerings[f[0]], fmt.Sprintf(`{"Price":%s,"Available":true,"Requirements":[
			{"key":"topology.kubernetes.io/zone","operator":"In","values":[%q]},{"key":"karpenter.sh/capacity-type","operator":"In","values":[%q]}]}`, f[4], f[2], f[3]))
	}
	var types []string
	for _, n := range names {
		types = append(types, fmt.Sprintf(`{"name":%q,"architecture":"amd64","operatingSystems":["linux"],
			"resources":{"cpu":%q,"memory":"64Gi","pods":"100"},"offerings":[%s]}`, n, cpu[n], strings.Join(offerings[n], ",")))
	}
	m, err := pipeline.KWOKMarket("test", []byte("["+strings.Join(types, ",")+"]"))
	require.NoError(t, err)
	return m
}

// read makes a snapshot of manifests.
func read(t *testing.T, market *pipeline.Market, text string) scheduling.Snapshot {
	t.Helper()
	m, err := manifests.Parse([]manifests.File{{Name: "test.yaml", Data: []byte(text)}}, nil)
	require.NoError(t, err)
	s, _, err := pipeline.Snapshot(m, market)
	require.NoError(t, err)
	return s
}

// plan reads manifests and packs them.
func pack(t *testing.T, market *pipeline.Market, text string) *plan.Plan {
	t.Helper()
	return packWith(t, market, text, nil)
}

// atAnyPrice keeps preferences wherever pods can be placed with them.
func atAnyPrice() *scheduling.Options {
	price := math.Inf(1)
	return &scheduling.Options{PreferencePrice: &price}
}

func packWith(t *testing.T, market *pipeline.Market, text string, options *scheduling.Options) *plan.Plan {
	t.Helper()
	packed, err := plan.Make(t.Context(), read(t, market, text), &plan.Options{Scheduling: options})
	require.NoError(t, err)
	require.NoError(t, packed.Instance.Check(packed.Packing.Layout))
	require.NoError(t, packed.Instance.VerifyBound(packed.Packing))
	require.NoError(t, packed.Bound.Verify())
	return packed
}

const anyPool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {template: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, requirements: []}}}
---
`

func deployment(name string, replicas int, spec string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  replicas: %d
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec:
%s
---
`, name, replicas, name, name, indent(spec))
}

func indent(s string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n      ")
}

func container(cpu string) string {
	return fmt.Sprintf("containers: [{name: main, image: i, resources: {requests: {cpu: %s}}}]\n", cpu)
}

func spreadBy(keys ...string) string {
	out := "topologySpreadConstraints:\n"
	for _, k := range keys {
		out += fmt.Sprintf("- {maxSkew: 1, topologyKey: %s, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}\n", k)
	}
	return out
}

const (
	zoneKey     = corev1.LabelTopologyZone
	capacityKey = instancetypes.LabelCapacityType
)

// count is how many pods whose names start with the prefix stand at each value of a label.
func count(t *testing.T, p *plan.Plan, prefix, key string) map[string]int {
	t.Helper()
	nodes := p.NewNodes()
	out := map[string]int{}
	for _, n := range nodes {
		for _, pod := range n.Pods {
			if strings.HasPrefix(pod.Name, prefix) {
				out[n.Labels[key]]++
			}
		}
	}
	return out
}

func TestSpreadOverTwoKeysWithOneCombinationMissing(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "a.4 4 zone-a spot 0.1", "a.4 4 zone-b on-demand 0.2", "a.4 4 zone-b spot 0.1", "a.4 4 zone-c on-demand 0.2")
	p := pack(t, market, anyPool+deployment("web", 18, spreadBy(zoneKey, capacityKey)+container("1")))
	assert.Empty(t, p.Unplaced())
	assert.Equal(t, map[string]int{"zone-a": 6, "zone-b": 6, "zone-c": 6}, count(t, p, "web", zoneKey))
	assert.Equal(t, map[string]int{"on-demand": 9, "spot": 9}, count(t, p, "web", capacityKey))
}

func TestAZoneThatOnlySmallTypesOffer(t *testing.T) {
	market := catalogue(t, "small 1 zone-c on-demand 0.01", "a.8 8 zone-a on-demand 0.4", "a.8 8 zone-b on-demand 0.4")
	text := anyPool + deployment("web", 12, spreadBy(zoneKey)+container("2"))
	assert.Empty(t, pack(t, market, text).Unplaced())
	// Pods that could go there are kept out, for a node in the zone would make it count.
	p := pack(t, market, text+deployment("tiny", 5, container("100m")))
	assert.Empty(t, p.Unplaced())
	assert.NotContains(t, count(t, p, "tiny", zoneKey), "zone-c")
}

func TestAZoneThatOnlyATaintedPoolOffers(t *testing.T) {
	market := catalogue(t, "a.8 8 zone-c on-demand 0.4", "b.8 8 zone-a on-demand 0.4", "b.8 8 zone-b on-demand 0.4")
	pools := `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: tainted}
spec: {template: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, taints: [{key: batch, effect: NoSchedule}], requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [a.8]}]}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {template: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [b.8]}]}}}
---
`
	assert.Empty(t, pack(t, market, pools+deployment("web", 12, spreadBy(zoneKey)+container("2"))).Unplaced())
}

func affinity(kind, app, key string) string {
	return fmt.Sprintf("affinity: {%s: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: %s, labelSelector: {matchLabels: {app: %s}}}]}}\n", kind, key, app)
}

var twoZones = []string{"a.4 4 zone-a on-demand 0.2", "a.4 4 zone-b on-demand 0.2"}

func TestAffinityInEitherOrder(t *testing.T) {
	for _, names := range [][2]string{{"cache", "web"}, {"web", "cache"}} {
		p := pack(t, catalogue(t, twoZones...), anyPool+
			deployment(names[0], 3, affinity("podAffinity", names[1], zoneKey)+container("1"))+
			deployment(names[1], 2, `nodeSelector: {topology.kubernetes.io/zone: zone-b}`+"\n"+container("1")))
		assert.Empty(t, p.Unplaced())
		assert.Equal(t, map[string]int{"zone-b": 3}, count(t, p, names[0], zoneKey))
	}
}

// What others can only follow in one zone goes there, though nothing asks it to.
func TestTargetsGoWhereTheirFollowersCan(t *testing.T) {
	p := pack(t, catalogue(t, twoZones...), anyPool+deployment("target", 1, container("1"))+
		deployment("follower", 2, "nodeSelector: {topology.kubernetes.io/zone: zone-b}\n"+affinity("podAffinity", "target", zoneKey)+container("500m")))
	assert.Empty(t, p.Unplaced())
	assert.Equal(t, map[string]int{"zone-b": 1}, count(t, p, "target", zoneKey))
}

// A node on its way out takes nothing, and what runs there is planned elsewhere, but for what stays with the node.
func TestPodsOfANodeThatIsBeingRemovedArePlannedElsewhere(t *testing.T) {
	node := func(meta, taints string) string {
		return fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: old, labels: {kubernetes.io/hostname: old}%s}
spec: {%s}
status: {allocatable: {cpu: 16, memory: 64Gi, pods: 100}}
---
`, meta, taints)
	}
	pod := func(name, meta, phase string) string {
		return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s%s}
spec: {nodeName: old, containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]}
status: {phase: %s}
---
`, name, meta, phase)
	}
	owner := func(kind string) string {
		return fmt.Sprintf(", ownerReferences: [{apiVersion: apps/v1, kind: %s, name: o, uid: u, controller: true}]", kind)
	}
	gone := `, deletionTimestamp: "2026-01-01T00:00:00Z"`
	pods := pod("web", "", "Running") + pod("agent", owner("DaemonSet"), "Running") + pod("static", owner("Node"), "Running") +
		pod("leaving", gone, "Running") + pod("db-0", owner("StatefulSet")+gone, "Running") + pod("done", "", "Succeeded")
	market := catalogue(t, "a.8 8 zone-a on-demand 0.1")
	for _, removed := range []string{node(gone, ""), node("", "taints: [{key: karpenter.sh/disrupted, effect: NoSchedule}]")} {
		packed := pack(t, market, anyPool+removed+pods)
		nodes := packed.NewNodes()
		require.Len(t, nodes, 1)
		var names []string
		for _, p := range nodes[0].Pods {
			names = append(names, p.Name)
		}
		require.Equal(t, []string{"db-0", "web"}, names)
		require.Contains(t, packed.Problem.Notes, "node old is being removed and takes no pods; pods planned elsewhere: 2")
	}
	require.Empty(t, pack(t, market, anyPool+node("", "")+pods).Bindings(), "a node that stays keeps its pods")
}

// A preference to keep away from pods that are pending too is kept whoever is placed first, and even where the cheapest
// place for both is the same.
func TestPreferencesAboutPendingPodsAreKept(t *testing.T) {
	market := catalogue(t, "a.8 8 zone-a on-demand 0.1", "a.8 8 zone-b on-demand 0.2")
	for _, cpus := range [][2]string{{"1", "2"}, {"2", "1"}} {
		packed := packWith(t, market, anyPool+deployment("quiet", 1, fmt.Sprintf("affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "+
			"[{weight: 1, podAffinityTerm: {topologyKey: %s, labelSelector: {matchLabels: {app: loud}}}}]}}\n", zoneKey)+container(cpus[0]))+
			deployment("loud", 1, spreadBy(zoneKey)+container(cpus[1])), atAnyPrice())
		require.Empty(t, packed.Unplaced())
		require.Len(t, packed.NewNodes(), 2)
		require.NotEqual(t, count(t, packed, "quiet", zoneKey), count(t, packed, "loud", zoneKey))
	}
}

// Where nothing can be bought, what is there goes to the pods of the highest priority, however large, and among equals to as
// many as it holds.
func TestPriorityDecidesWhoGetsTheRoomThatIsLeft(t *testing.T) {
	classes := ""
	for name, value := range map[string]int{"lowest": 0, "low": 1, "high": 2} {
		classes += fmt.Sprintf("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s}\nvalue: %d\n---\n", name, value)
	}
	for small, want := range map[string]int{"high": 3, "low": 3, "lowest": 2} {
		packed := pack(t, catalogue(t), classes+`
apiVersion: v1
kind: Node
metadata: {name: only, labels: {kubernetes.io/hostname: only}}
status: {allocatable: {cpu: 4, memory: 64Gi, pods: 100}}
---
`+deployment("big", 2, "priorityClassName: low\n"+container("2"))+deployment("small", 3, "priorityClassName: "+small+"\n"+container("1")))
		require.Len(t, packed.Bindings(), want)
	}
}

// A ratio divides pods over a label's values as exactly as whole pods can be, with those that run already, and whatever
// the prices say.
func TestRatiosDivideTheWhole(t *testing.T) {
	market := catalogue(t, "a.8 8 zone-a on-demand 1", "a.8 8 zone-a spot 0.1")
	web := func(n int, text string) string {
		return strings.Replace(deployment("web", n, container("1")), "labels: {app: web}}", fmt.Sprintf("labels: {app: web}, annotations: {joinery-sdk.dev/ratio: %q}}", text), 1)
	}
	packed := pack(t, market, anyPool+web(10, "karpenter.sh/capacity-type: on-demand=2, spot=3"))
	require.Equal(t, map[string]int{"on-demand": 4, "spot": 6}, count(t, packed, "web", capacityKey))
	packed = pack(t, market, anyPool+web(4, "web; karpenter.sh/capacity-type: on-demand=1, spot=2"))
	require.Equal(t, map[string]int{"on-demand": 1, "spot": 3}, count(t, packed, "web", capacityKey))

	running := `
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1, karpenter.sh/capacity-type: spot}}
status: {allocatable: {cpu: 2, memory: 64Gi, pods: 2}}
---
`
	for i := range 2 {
		running += fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: old-%d, annotations: {joinery-sdk.dev/ratio: "karpenter.sh/capacity-type: on-demand=1, spot=1"}}
spec: {nodeName: n1, containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]}
status: {phase: Running}
---
`, i)
	}
	packed = pack(t, market, anyPool+running+web(4, "karpenter.sh/capacity-type: on-demand=1, spot=1"))
	require.Equal(t, map[string]int{"on-demand": 3, "spot": 1}, count(t, packed, "web", capacityKey), "two of six run on spot")

	// A share that cannot be bought is not made up by the others.
	packed = pack(t, catalogue(t, "a.8 8 zone-a spot 0.1"), anyPool+web(4, "karpenter.sh/capacity-type: on-demand=1, spot=1"))
	require.Equal(t, map[string]int{"spot": 2}, count(t, packed, "web", capacityKey))
	require.Len(t, packed.Unplaced(), 1)
	require.Contains(t, packed.Unplaced()[0].Reasons()[0].Detail, "ratio karpenter.sh/capacity-type: on-demand=1, spot=1")
}

// What pods follow must be where the last of a chain can be, although each link could be elsewhere and cheaper.
func TestTheWholeChainGoesWhereItsLastLinkCan(t *testing.T) {
	near := func(app string) string {
		return fmt.Sprintf("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: %s, labelSelector: {matchLabels: {app: %s}}}]}}\n", zoneKey, app)
	}
	market := catalogue(t, "a.8 8 zone-a on-demand 0.1", "a.8 8 zone-b on-demand 0.2", "a.8 8 zone-c on-demand 0.3")
	packed := pack(t, market, anyPool+deployment("root", 2, container("2"))+deployment("stem", 2, near("root")+container("1"))+
		deployment("leaf", 2, "nodeSelector: {topology.kubernetes.io/zone: zone-c}\n"+near("stem")+container("500m")))
	require.Empty(t, packed.Unplaced())
	require.Positive(t, count(t, packed, "root", zoneKey)["zone-c"])
	require.Positive(t, count(t, packed, "stem", zoneKey)["zone-c"])
	require.Equal(t, map[string]int{"zone-c": 2}, count(t, packed, "leaf", zoneKey))
}

func TestAntiAffinityBothWays(t *testing.T) {
	p := pack(t, catalogue(t, twoZones...), anyPool+deployment("loud", 1, affinity("podAntiAffinity", "quiet", zoneKey)+container("2"))+deployment("quiet", 4, container("1")))
	assert.Empty(t, p.Unplaced())
	loud, quiet := count(t, p, "loud", zoneKey), count(t, p, "quiet", zoneKey)
	for zone := range loud {
		assert.NotContains(t, quiet, zone)
	}
	// By hostname it holds for each node, in both directions.
	p = pack(t, catalogue(t, twoZones...), anyPool+deployment("loud", 1, affinity("podAntiAffinity", "quiet", corev1.LabelHostname)+container("1"))+deployment("quiet", 3, container("1")))
	assert.Empty(t, p.Unplaced())
	require.Len(t, p.NewNodes(), 2)
}

func TestAGroupThatMustShareANode(t *testing.T) {
	together := affinity("podAffinity", "web", corev1.LabelHostname)
	p := pack(t, catalogue(t, "a.4 4 zone-a on-demand 0.2", "a.8 8 zone-a on-demand 0.5"), anyPool+deployment("web", 6, together+container("1")))
	assert.Empty(t, p.Unplaced())
	require.Len(t, p.NewNodes(), 1, "two small nodes would be cheaper, and wrong")
	// A group that outgrows the largest node: as many as fit, and the others are refused.
	p = pack(t, catalogue(t, "a.8 8 zone-a on-demand 0.5"), anyPool+deployment("web", 10, together+container("1")))
	require.Len(t, p.Unplaced(), 1)
	assert.Len(t, p.Unplaced()[0].Pods, 2)
	require.Len(t, p.NewNodes(), 1)
}

func TestFollowersShareTheNodesOfWhatTheyFollow(t *testing.T) {
	p := pack(t, catalogue(t, "a.4 4 zone-a on-demand 0.2"), anyPool+deployment("main", 2, affinity("podAntiAffinity", "main", corev1.LabelHostname)+container("2"))+
		deployment("helper", 4, affinity("podAffinity", "main", corev1.LabelHostname)+container("900m")))
	assert.Empty(t, p.Unplaced())
	require.Len(t, p.NewNodes(), 2)
	for _, b := range p.NewNodes() {
		assert.Len(t, b.Pods, 3)
	}
}

func TestHostPortsAreOneANode(t *testing.T) {
	port := "containers: [{name: main, image: i, ports: [{containerPort: 80, hostPort: 8080}], resources: {requests: {cpu: 100m}}}]"
	p := pack(t, catalogue(t, "a.4 4 zone-a on-demand 0.2"), anyPool+deployment("web", 3, port))
	assert.Empty(t, p.Unplaced())
	assert.Len(t, p.NewNodes(), 3)
	// Addresses of their own do not meet; the wildcard meets all of them.
	on := func(ip string) string { return strings.ReplaceAll(port, "hostPort", "hostIP: "+ip+", hostPort") }
	p = pack(t, catalogue(t, "a.4 4 zone-a on-demand 0.2"), anyPool+deployment("a", 1, on("10.0.0.1"))+deployment("b", 1, on("10.0.0.2"))+deployment("c", 1, on("0.0.0.0")))
	assert.Len(t, p.NewNodes(), 2)
}

func TestPreferencesAreKeptWhilePossible(t *testing.T) {
	prefer := `affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
  {weight: 10, preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}]}},
  {weight: 90, preference: {matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}}]}}
`
	offers := []string{"a.4 4 zone-a on-demand 0.2", "a.4 4 zone-a spot 0.1", "a.4 4 zone-b on-demand 0.2"}
	p := packWith(t, catalogue(t, offers...), anyPool+deployment("web", 1, prefer+container("1")), atAnyPrice())
	assert.Equal(t, map[string]int{"spot": 1}, count(t, p, "web", capacityKey), "the lighter one was given up, as both together cannot be had")
	gone, kept := p.GivenUp(p.Bindings()[0].Pod)
	require.Len(t, gone, 1)
	assert.Equal(t, "preferred node affinity: topology.kubernetes.io/zone in (zone-b)", gone[0])
	require.Len(t, kept, 1)
	p = packWith(t, catalogue(t, append(offers, "a.4 4 zone-b spot 0.15")...), anyPool+deployment("web", 1, prefer+container("1")), atAnyPrice())
	assert.Equal(t, map[string]int{"zone-b": 1}, count(t, p, "web", zoneKey))
}

// The plan does not depend on the order of anything that is read.
func TestTheOrderOfInputDoesNotMatter(t *testing.T) {
	docs := []string{anyPool, deployment("web", 6, spreadBy(zoneKey)+container("1")), deployment("cache", 2, affinity("podAffinity", "web", zoneKey)+container("500m")), deployment("batch", 9, container("300m"))}
	describe := func(p *plan.Plan) string {
		nodes := p.NewNodes()
		text := ""
		for _, n := range nodes {
			text += n.Name + " " + n.InstanceType.Name + " " + n.Zone
			for _, pod := range n.Pods {
				text += " " + pod.Name
			}
			text += "\n"
		}
		for _, b := range p.Bindings() {
			text += b.Pod.Name + " " + b.Node + " "
		}
		return text
	}
	want := describe(pack(t, catalogue(t, twoZones...), strings.Join(docs, "")))
	slices.Reverse(docs)
	assert.Equal(t, want, describe(pack(t, catalogue(t, twoZones...), strings.Join(docs, ""))))
}
