package admission_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/admission"
)

func list(cpu, memory string) corev1.ResourceList {
	out := corev1.ResourceList{}
	if cpu != "" {
		out[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		out[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return out
}

func pod(edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web", "hash": "1"}}}
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	for _, e := range edits {
		e(p)
	}
	return p
}

// admitted also sees to what holds for every pod: the argument stays as it was, and a second time changes nothing.
func admitted(t *testing.T, c admission.Cluster, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	before := p.DeepCopy()
	out := c.Pod(p)
	require.Equal(t, before, p, "the argument was modified")
	require.Same(t, out, c.Pod(out), "a second admission changed something")
	return out
}

func requests(p *corev1.Pod) corev1.ResourceList { return p.Spec.Containers[0].Resources.Requests }

func TestNothingToAddReturnsTheArgument(t *testing.T) {
	p := pod()
	assert.Same(t, p, admission.Cluster{}.Pod(p))
}

// An API server stores quantities in thousandths at most, each rounded up before anybody adds them.
func TestQuantitiesAreStoredInThousandths(t *testing.T) {
	got := admitted(t, admission.Cluster{}, pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list("1300u", ""), Requests: list("", "250m")}
		p.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("333300u", "1Gi")}}}
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("2000001n", "")}
		p.Spec.Overhead = list("1n", "")
	}))
	stored := func(l corev1.ResourceList) []string {
		return []string{l.Cpu().String(), l.Memory().String()}
	}
	assert.Equal(t, []string{"2m", "250m"}, stored(requests(got)))
	assert.Equal(t, []string{"334m", "1Gi"}, stored(got.Spec.InitContainers[0].Resources.Requests))
	assert.Equal(t, "3m", got.Spec.Resources.Requests.Cpu().String())
	assert.Equal(t, "1m", got.Spec.Overhead.Cpu().String())
}

func TestRequestsFromLimits(t *testing.T) {
	got := admitted(t, admission.Cluster{}, pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list("2", "1Gi"), Requests: list("1", "")}
		p.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: list("3", "")}}}
		p.Spec.Resources = &corev1.ResourceRequirements{Limits: list("4", "")}
	}))
	assert.Equal(t, list("1", "1Gi"), requests(got))
	assert.Equal(t, list("3", ""), got.Spec.InitContainers[0].Resources.Requests)
	assert.Equal(t, []string{"3", "1Gi"}, []string{got.Spec.Resources.Requests.Cpu().String(), got.Spec.Resources.Requests.Memory().String()})
}

// What a pod asks for as a whole defaults to what its containers come to; its limit is only for what none of them asks for. LimitRanges
// give to containers later than that until 1.36, and before it since 1.37.
func TestPodLevelRequests(t *testing.T) {
	const huge = corev1.ResourceHugePagesPrefix + "2Mi"
	ranges := []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, DefaultRequest: list("250m", "")},
	}}}}
	for name, c := range map[string]struct {
		whole      corev1.ResourceRequirements
		containers []corev1.ResourceList // what each asks for
		want       corev1.ResourceList
	}{
		"a limit, and containers that ask for less": {corev1.ResourceRequirements{Limits: list("4", "")}, []corev1.ResourceList{list("1", ""), list("500m", "")}, list("1500m", "")},
		"a limit, and containers that do not ask":   {corev1.ResourceRequirements{Limits: list("4", "2Gi")}, []corev1.ResourceList{list("1", ""), nil}, list("1250m", "2Gi")},
		"a limit of one, a request of the other":    {corev1.ResourceRequirements{Limits: list("4", "")}, []corev1.ResourceList{list("", "1Gi")}, list("4", "1Gi")},
		"a request":                                 {corev1.ResourceRequirements{Requests: list("3", ""), Limits: list("4", "")}, []corev1.ResourceList{list("1", "")}, list("3", "")},
		"a limit, and nobody asks":                  {corev1.ResourceRequirements{Limits: list("4", "")}, []corev1.ResourceList{nil, nil}, list("4", "")},
		"requests alone are not filled":             {corev1.ResourceRequirements{Requests: list("3", "")}, []corev1.ResourceList{list("1", "1Gi")}, list("3", "")},
		"hugepages are limits": {corev1.ResourceRequirements{Requests: list("3", "")}, []corev1.ResourceList{{huge: resource.MustParse("2Mi")}}, corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("3"), huge: resource.MustParse("2Mi"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := admitted(t, admission.NewCluster(nil, nil, ranges), pod(func(p *corev1.Pod) {
				p.Spec.Resources, p.Spec.Containers = &c.whole, nil
				for _, asked := range c.containers {
					p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: asked}})
				}
			}))
			require.Len(t, got.Spec.Resources.Requests, len(c.want))
			for resource, want := range c.want {
				have := got.Spec.Resources.Requests[resource]
				assert.Zero(t, want.Cmp(have), "%s is %s", resource, have.String())
			}
		})
	}
}

func TestLimitRanges(t *testing.T) {
	limit := func(name string, item corev1.LimitRangeItem) *corev1.LimitRange {
		item.Type = corev1.LimitTypeContainer
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
	}
	cases := map[string]struct {
		ranges           []*corev1.LimitRange
		requests, limits corev1.ResourceList
	}{
		"default request":              {[]*corev1.LimitRange{limit("a", corev1.LimitRangeItem{DefaultRequest: list("100m", "")})}, list("100m", ""), nil},
		"default limit is requested":   {[]*corev1.LimitRange{limit("a", corev1.LimitRangeItem{Default: list("1", "")})}, list("1", ""), list("1", "")},
		"maximum is the default limit": {[]*corev1.LimitRange{limit("a", corev1.LimitRangeItem{Max: list("", "2Gi")})}, list("", "2Gi"), list("", "2Gi")},
		"minimum is requested last":    {[]*corev1.LimitRange{limit("a", corev1.LimitRangeItem{Min: list("50m", ""), DefaultRequest: list("", "1Gi")})}, list("50m", "1Gi"), nil},
		"several add up": {[]*corev1.LimitRange{
			limit("b", corev1.LimitRangeItem{DefaultRequest: list("9", "9Gi")}), limit("a", corev1.LimitRangeItem{DefaultRequest: list("100m", "")}),
		}, list("100m", "9Gi"), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := admitted(t, admission.NewCluster(nil, nil, c.ranges), pod())
			assert.Equal(t, c.requests, requests(got))
			assert.Equal(t, c.limits, got.Spec.Containers[0].Resources.Limits)
			other := pod(func(p *corev1.Pod) { p.Namespace = "batch" })
			assert.Same(t, other, admission.NewCluster(nil, nil, c.ranges).Pod(other), "another namespace")
		})
	}
}

func TestPriority(t *testing.T) {
	class := func(name string, value int32, global bool) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: global}
	}
	c := admission.NewCluster([]*schedulingv1.PriorityClass{class("high", 1000, false), class("usual", 10, true), class("lower", 5, true)}, nil, nil)
	for name, want := range map[string]int32{"high": 1000, "": 5, "system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000} {
		got := admitted(t, c, pod(func(p *corev1.Pod) { p.Spec.PriorityClassName = name }))
		require.NotNil(t, got.Spec.Priority, name)
		assert.Equal(t, want, *got.Spec.Priority, name)
	}
	own := int32(7)
	got := admitted(t, c, pod(func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.Priority = "high", &own }))
	assert.Equal(t, own, *got.Spec.Priority, "what an API server has set stays")
	assert.Nil(t, admitted(t, admission.Cluster{}, pod()).Spec.Priority)
}

func TestRuntimeClass(t *testing.T) {
	name := "sandbox"
	c := admission.NewCluster(nil, []*nodev1.RuntimeClass{{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Overhead:   &nodev1.Overhead{PodFixed: list("250m", "64Mi")},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"runtime": "sandbox"}, Tolerations: []corev1.Toleration{{Key: "sandbox", Operator: corev1.TolerationOpExists}}},
	}}, nil)
	got := admitted(t, c, pod(func(p *corev1.Pod) {
		p.Spec.RuntimeClassName, p.Spec.NodeSelector = &name, map[string]string{"disk": "ssd"}
	}))
	assert.Equal(t, list("250m", "64Mi"), got.Spec.Overhead)
	assert.Equal(t, map[string]string{"disk": "ssd", "runtime": "sandbox"}, got.Spec.NodeSelector)
	assert.Equal(t, []corev1.Toleration{{Key: "sandbox", Operator: corev1.TolerationOpExists}}, got.Spec.Tolerations)
}

func TestPorts(t *testing.T) {
	port := corev1.ContainerPort{ContainerPort: 80}
	with := func(host bool) *corev1.Pod {
		return pod(func(p *corev1.Pod) {
			p.Spec.HostNetwork = host
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{port}
		})
	}
	assert.Equal(t, corev1.ContainerPort{ContainerPort: 80, Protocol: corev1.ProtocolTCP}, admitted(t, admission.Cluster{}, with(false)).Spec.Containers[0].Ports[0])
	assert.Equal(t, corev1.ContainerPort{ContainerPort: 80, HostPort: 80, Protocol: corev1.ProtocolTCP}, admitted(t, admission.Cluster{}, with(true)).Spec.Containers[0].Ports[0])
}

func TestLabelKeysAreFolded(t *testing.T) {
	selector := func() *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: selector(), MatchLabelKeys: []string{"hash", "missing"}, MismatchLabelKeys: []string{"app"}}
	got := admitted(t, admission.Cluster{}, pod(func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{TopologyKey: "zone", LabelSelector: selector(), MatchLabelKeys: []string{"hash"}}, {TopologyKey: "zone", MatchLabelKeys: []string{"hash"}},
		}
		p.Spec.Affinity = &corev1.Affinity{
			PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}},
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 3, PodAffinityTerm: term}}},
		}
	}))
	in := metav1.LabelSelectorRequirement{Key: "hash", Operator: metav1.LabelSelectorOpIn, Values: []string{"1"}}
	notIn := metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web"}}
	assert.Equal(t, []metav1.LabelSelectorRequirement{in}, got.Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions)
	assert.Nil(t, got.Spec.TopologySpreadConstraints[1].LabelSelector, "without a selector nothing is selected")
	both := []metav1.LabelSelectorRequirement{in, notIn}
	assert.Equal(t, both, got.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchExpressions)
	assert.Equal(t, both, got.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector.MatchExpressions)
}

func TestDaemonPod(t *testing.T) {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "agent"}}
	ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	ds.Spec.Template.Spec.HostNetwork = true
	before := ds.DeepCopy()
	got := admission.Cluster{}.DaemonPod(ds)
	assert.Equal(t, before, ds)
	assert.Equal(t, "system/agent", got.Namespace+"/"+got.Name)
	assert.Len(t, got.Spec.Tolerations, 7, "six, and one for the network; what is there already is not added again")
	assert.Len(t, admission.DaemonTolerations(false), 6)
}

// LimitRanges and RuntimeClasses may be younger than a pod that was stored. They act when its controller makes another one.
func TestStoredPodsAreNotAdmittedAgain(t *testing.T) {
	kata := "kata"
	c := admission.NewCluster(nil,
		[]*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: kata}, Overhead: &nodev1.Overhead{PodFixed: list("1", "")}, Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"a": "b"}}}},
		[]*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "later"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: list("3", "")}}}}})
	for name, stored := range map[string]func(*corev1.Pod){
		"uid":      func(p *corev1.Pod) { p.UID = "u" },
		"priority": func(p *corev1.Pod) { p.Spec.Priority = new(int32) },
		"node":     func(p *corev1.Pod) { p.Spec.NodeName = "n1" },
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(stored, func(p *corev1.Pod) { p.Spec.RuntimeClassName = &kata })
			got := admitted(t, c, p)
			assert.Empty(t, requests(got))
			assert.Empty(t, got.Spec.Overhead)
			assert.Empty(t, got.Spec.NodeSelector)
			another := c.Anew(p)
			made := requests(another)
			assert.Equal(t, "3", made.Cpu().String())
			assert.Equal(t, "1", another.Spec.Overhead.Cpu().String())
			assert.Equal(t, "b", another.Spec.NodeSelector["a"])
		})
	}
}

// An API server puts objects without a namespace into "default".
func TestNoNamespaceIsDefault(t *testing.T) {
	for _, names := range [][2]string{{"", "default"}, {"default", ""}, {"", ""}} {
		c := admission.NewCluster(nil, nil, []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: names[0], Name: "l"}, Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: list("3", "")}},
		}}})
		got := requests(c.Pod(pod(func(p *corev1.Pod) { p.Namespace = names[1] })))
		assert.Equal(t, "3", got.Cpu().String())
	}
}

// An API server refuses a pod that contradicts its RuntimeClass. What it has stored it does not look at again.
func TestForbidden(t *testing.T) {
	classes := []*nodev1.RuntimeClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "micro"}, Overhead: &nodev1.Overhead{PodFixed: list("250m", "64Mi")}, Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"vm": "yes", "disk": "nvme"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "bare"}},
	}
	c := admission.NewCluster(nil, classes, nil)
	class := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.RuntimeClassName = &name } }
	overhead := func(cpu, memory string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Overhead = list(cpu, memory) }
	}
	selects := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
	}
	for name, x := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"no class":                {pod(), ""},
		"the class alone":         {pod(class("micro")), ""},
		"the overhead it has":     {pod(class("micro"), overhead("0.25", "65536Ki")), ""},
		"a label that it asks":    {pod(class("micro"), selects("vm", "yes")), ""},
		"a label of one's own":    {pod(class("micro"), selects("rack", "7")), ""},
		"another value":           {pod(class("micro"), selects("disk", "hdd")), "spec.nodeSelector requires disk=hdd, but its RuntimeClass micro requires disk=nvme"},
		"more overhead":           {pod(class("micro"), overhead("1", "64Mi")), "spec.overhead differs from that of its RuntimeClass micro"},
		"less overhead":           {pod(class("micro"), overhead("250m", "")), "spec.overhead differs from that of its RuntimeClass micro"},
		"overhead of a bare one":  {pod(class("bare"), overhead("1", "")), "spec.overhead differs from that of its RuntimeClass bare"},
		"overhead without class":  {pod(overhead("1", "")), "spec.overhead comes from a RuntimeClass, but the pod names none"},
		"a class that is missing": {pod(class("gone"), selects("disk", "hdd")), ""},
	} {
		assert.Equal(t, x.want, c.Forbidden(x.pod), name)
		x.pod.UID = "u"
		assert.Empty(t, c.Forbidden(x.pod), "%s, stored", name)
	}
}

// The pod that is made for one that was stored under an older RuntimeClass has the overhead of today.
func TestSuccessorsHaveTheOverheadOfToday(t *testing.T) {
	name := "micro"
	c := admission.NewCluster(nil, []*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: name}, Overhead: &nodev1.Overhead{PodFixed: list("300m", "")}}}, nil)
	p := pod(func(p *corev1.Pod) { p.UID, p.Spec.RuntimeClassName, p.Spec.Overhead = "u", &name, list("100m", "1Gi") })
	assert.Equal(t, list("100m", "1Gi"), c.Pod(p).Spec.Overhead)
	assert.Equal(t, list("300m", ""), c.Anew(p).Spec.Overhead)
}

// What a LimitRange forbids is refused when a pod is made, after its defaults are filled in.
func TestForbiddenByLimitRanges(t *testing.T) {
	item := func(kind corev1.LimitType, edit func(*corev1.LimitRangeItem)) corev1.LimitRangeItem {
		i := corev1.LimitRangeItem{Type: kind}
		edit(&i)
		return i
	}
	one := func(requests, limits corev1.ResourceList) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}
		}
	}
	most := item(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.Max = list("4", "") })
	least := item(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.Min = list("", "1Gi") })
	for name, c := range map[string]struct {
		item corev1.LimitRangeItem
		pod  func(*corev1.Pod)
		want string
	}{
		"within the maximum": {most, one(list("1", ""), list("4", "")), ""},
		"a limit above the maximum": {
			most, one(list("1", ""), list("5", "")), "LimitRange shop/a: container main: the cpu limit 5 is above the maximum 4",
		},
		"a request above the maximum, which is the default of the limit": {
			most, one(list("5", ""), nil), "LimitRange shop/a: container main: the cpu request 5 is above the maximum 4",
		},
		"a request below the minimum": {
			least, one(list("", "512Mi"), nil), "LimitRange shop/a: container main: the memory request 512Mi is below the minimum 1Gi",
		},
		"no request, for which the minimum is the default": {least, one(nil, nil), ""},
		"a default limit below the request": {
			item(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.Default = list("1", "") }), one(list("2", ""), nil),
			"LimitRange shop/a: container main: the cpu request 2 is above the default limit 1",
		},
		"a ratio": {
			item(corev1.LimitTypeContainer, func(i *corev1.LimitRangeItem) { i.MaxLimitRequestRatio = list("2", "") }), one(list("1", ""), list("3", "")),
			"LimitRange shop/a: container main: the cpu limit 3 is more than 2 times the request 1",
		},
		"a pod without a limit": {
			item(corev1.LimitTypePod, func(i *corev1.LimitRangeItem) { i.Max = list("8", "") }), one(list("1", ""), nil),
			"LimitRange shop/a: pod: no cpu limit, and the maximum is 8",
		},
		"a pod with limits that are too large together": {
			item(corev1.LimitTypePod, func(i *corev1.LimitRangeItem) { i.Max = list("8", "") }),
			func(p *corev1.Pod) {
				one(list("1", ""), list("5", ""))(p)
				p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
			},
			"LimitRange shop/a: pod: the cpu limit 10 is above the maximum 8",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := admission.NewCluster(nil, nil, []*corev1.LimitRange{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{c.item}},
			}})
			p := pod(c.pod)
			assert.Equal(t, c.want, cluster.Forbidden(p))
			p.UID = "stored"
			assert.Empty(t, cluster.Forbidden(p), "what is stored is not admitted again")
		})
	}
}
