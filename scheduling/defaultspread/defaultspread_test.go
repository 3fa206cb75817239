package defaultspread_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
)

const byZone = `
podTopologySpread:
  defaultConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
`

func decode(t testing.TB, text string) ([]corev1.TopologySpreadConstraint, error) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	return defaultspread.Decode(data)
}

// A pod without constraints gets those of the cluster, with the selector of the Service that selects it.
func ExampleDefaults() {
	data, _ := yaml.YAMLToJSON([]byte(byZone))
	constraints, err := defaultspread.Decode(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	d := defaultspread.Defaults{Constraints: constraints, Services: []*corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}},
	}}
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web", "track": "stable"}}}
	batch := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "batch", Labels: map[string]string{"app": "batch"}}}
	for _, p := range d.Pods([]*corev1.Pod{web, batch}) {
		fmt.Print(p.Name)
		for _, c := range p.Spec.TopologySpreadConstraints {
			fmt.Print(" ", c.TopologyKey, " ", metav1.FormatLabelSelector(c.LabelSelector))
		}
		fmt.Println()
	}
	// Output:
	// web-0 topology.kubernetes.io/zone app=web
	// batch
}

func controlled(name, kind, by string, labels map[string]string) *corev1.Pod {
	yes, version := true, "apps/v1"
	if kind == "ReplicationController" {
		version = "v1"
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}}
	if kind != "" {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: by, Controller: &yes}}
	}
	return p
}

func TestSelectors(t *testing.T) {
	constraints, err := decode(t, byZone)
	require.NoError(t, err)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	by := func(kv ...string) *metav1.LabelSelector {
		out := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for i := 0; i < len(kv); i += 2 {
			out.MatchLabels[kv[i]] = kv[i+1]
		}
		return out
	}
	odd := by("app", "odd")
	odd.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "track", Operator: "Exists"}}
	d := defaultspread.Defaults{
		Constraints: constraints,
		Services: []*corev1.Service{
			{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}},
			{ObjectMeta: meta("stable"), Spec: corev1.ServiceSpec{Selector: map[string]string{"track": "stable"}}},
			{ObjectMeta: meta("external")},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "batch"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "batch"}}},
		},
		ReplicationControllers: []*corev1.ReplicationController{{ObjectMeta: meta("old"), Spec: corev1.ReplicationControllerSpec{Selector: map[string]string{"app": "old"}}}},
		ReplicaSets: []*appsv1.ReplicaSet{
			{ObjectMeta: meta("web-1"), Spec: appsv1.ReplicaSetSpec{Selector: by("app", "web", "hash", "1")}},
			{ObjectMeta: meta("odd"), Spec: appsv1.ReplicaSetSpec{Selector: odd}},
			{ObjectMeta: meta("bad"), Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}}}},
			{ObjectMeta: meta("moved"), Spec: appsv1.ReplicaSetSpec{Selector: by("app", "was")}},
		},
		StatefulSets: []*appsv1.StatefulSet{{ObjectMeta: meta("db"), Spec: appsv1.StatefulSetSpec{Selector: by("app", "db")}}},
		Deployments:  []*appsv1.Deployment{{ObjectMeta: meta("api"), Spec: appsv1.DeploymentSpec{Selector: by("app", "api")}}},
	}
	web := map[string]string{"app": "web", "hash": "1"}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string // the selector; empty for no constraints
	}{
		"no controller":                    {controlled("a", "", "", web), "app=web"},
		"two Services":                     {controlled("a", "", "", map[string]string{"app": "web", "track": "stable"}), "app=web,track=stable"},
		"a ReplicaSet beside its Service":  {controlled("a", "ReplicaSet", "web-1", web), "app=web,hash=1"},
		"a ReplicaSet with expressions":    {controlled("a", "ReplicaSet", "odd", map[string]string{"app": "odd", "track": "canary"}), "app=odd,track"},
		"a ReplicaSet that is not there":   {controlled("a", "ReplicaSet", "gone", web), "app=web"},
		"a selector that cannot be read":   {controlled("a", "ReplicaSet", "bad", web), "app=web"},
		"a controller that selects others": {controlled("a", "ReplicaSet", "moved", web), "app=web,app in (was)"},
		"a ReplicationController":          {controlled("a", "ReplicationController", "old", map[string]string{"app": "old"}), "app=old"},
		"a StatefulSet":                    {controlled("a", "StatefulSet", "db", map[string]string{"app": "db"}), "app=db"},
		"a Deployment, as in manifests":    {controlled("a", "Deployment", "api", map[string]string{"app": "api"}), "app=api"},
		"a ReplicaSet that is not given":   {controlled("a", "ReplicaSet", "api-77", map[string]string{"app": "api", "pod-template-hash": "77"}), "app=api,pod-template-hash=77"},
		"a Job":                            {controlled("a", "Job", "batch", map[string]string{"app": "batch"}), ""},
		"a Service of another namespace":   {controlled("a", "", "", map[string]string{"app": "batch"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.pod.DeepCopy()
			got := d.Pods([]*corev1.Pod{c.pod})[0]
			assert.Equal(t, before, c.pod, "an argument is not modified")
			if c.want == "" {
				assert.Same(t, c.pod, got)
				return
			}
			require.Len(t, got.Spec.TopologySpreadConstraints, 1)
			assert.Equal(t, c.want, metav1.FormatLabelSelector(got.Spec.TopologySpreadConstraints[0].LabelSelector))
			assert.Nil(t, constraints[0].LabelSelector)
		})
	}
}

// All or nothing: a pod with a constraint of its own gets none, and replicas share the memory of theirs.
func TestOwnConstraintsStay(t *testing.T) {
	constraints, err := decode(t, byZone)
	require.NoError(t, err)
	d := defaultspread.Defaults{Constraints: constraints, Services: []*corev1.Service{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}},
	}}
	labels := map[string]string{"app": "web"}
	own := controlled("own", "", "", labels)
	own.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 9, TopologyKey: "rack"}}
	pods := []*corev1.Pod{controlled("a", "", "", labels), own, nil, controlled("b", "", "", labels)}
	got := d.Pods(pods)
	assert.Same(t, own, got[1])
	assert.Nil(t, got[2])
	assert.Same(t, &got[0].Spec.TopologySpreadConstraints[0], &got[3].Spec.TopologySpreadConstraints[0])
	assert.Equal(t, pods, (&defaultspread.Defaults{Services: d.Services}).Pods(pods), "no constraints, no change")
}

func TestDecode(t *testing.T) {
	profile := func(args string) string {
		return "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 4\nprofiles: [{schedulerName: batch, pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: 7}}]}, {schedulerName: default-scheduler, pluginConfig: [{name: NodeResourcesFit, args: {}}" + args + "]}]"
	}
	const one = "{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}"
	for text, want := range map[string]int{
		"{}":        0,
		byZone:      1,
		profile(""): 0,
		profile(", {name: PodTopologySpread, args: {defaultingType: System}}"):                                                      2,
		profile(", {name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [" + one + "]}}"):                     1,
		"{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}":                                            0,
		"podTopologySpread: {defaultConstraints: [" + one + ", {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]}": 2,
	} {
		got, err := decode(t, text)
		require.NoError(t, err, text)
		assert.Len(t, got, want, text)
	}
	const list = "podTopologySpread: {defaultConstraints: [%s]}"
	for text, want := range map[string]string{
		"{kind: Deployment}":                         `kind: "Deployment": want KubeSchedulerConfiguration`,
		"{podTopologySpred: {}}":                     `did you mean "podTopologySpread"?`,
		"podTopologySpread: {defaultingType: Lists}": `podTopologySpread.defaultingType: "Lists": want List or System`,
		fmt.Sprintf(list, "{topologyKey: rack, whenUnsatisfiable: DoNotSchedule}"):                                   "podTopologySpread.defaultConstraints[0]: maxSkew is 0, must be 1 or more",
		fmt.Sprintf(list, "{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}"):                                          "topologyKey is empty",
		fmt.Sprintf(list, "{maxSkew: 1, topologyKey: a b, whenUnsatisfiable: DoNotSchedule}"):                        `topologyKey "a b"`,
		fmt.Sprintf(list, "{maxSkew: 1, topologyKey: rack}"):                                                         `whenUnsatisfiable is ""`,
		fmt.Sprintf(list, "{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}"):   "labelSelector must be empty",
		fmt.Sprintf(list, "{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, matchLabelKeys: [a]}"): "matchLabelKeys must be empty",
		fmt.Sprintf(list, one+","+one): "defaultConstraints[1]: another one already has",
		"podTopologySpread: {defaultingType: System, defaultConstraints: [" + one + "]}": "System allows none",
		profile(", {name: PodTopologySpread, args: {defaultConstraint: []}}"):            "profiles[1].pluginConfig[1].args.defaultConstraint: unknown field",
	} {
		_, err := decode(t, text)
		assert.ErrorContains(t, err, want, text)
	}
	_, err := defaultspread.Decode([]byte("kind: no JSON"))
	assert.ErrorContains(t, err, "defaultspread: ")
}

func ExampleSystem() {
	for _, c := range defaultspread.System() {
		fmt.Println(c.TopologyKey, c.MaxSkew, c.WhenUnsatisfiable)
	}
	// Output:
	// kubernetes.io/hostname 3 ScheduleAnyway
	// topology.kubernetes.io/zone 5 ScheduleAnyway
}
