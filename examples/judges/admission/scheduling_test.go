package admission_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/scheduling"
)

// Package scheduling refuses a pod that is not stored yet if and only if an API server refuses it, on the fields that bear on where it
// may run. The first pods are those of the tables, the others are drawn: a valid pod with mutations anywhere in it.
func TestSchedulingAgreesWithTheAPIServer(t *testing.T) {
	count, refused := 0, 0
	judge := func(p *corev1.Pod, at string) {
		data, err := json.Marshal(p)
		require.NoError(t, err)
		theirs := server(t.Context(), string(data))
		refusal := func(p *corev1.Pod) *scheduling.Reason {
			problem, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{p}}, nil)
			require.NoError(t, err, at)
			class, ok := problem.Class("default", p.Name)
			require.True(t, ok, at)
			return problem.Classes[class].Refusal
		}
		ours := refusal(p)
		if stored := *p; ours == nil {
			stored.UID = "u"
			assert.Nil(t, refusal(&stored), "%s: the server has stored it", at)
		}
		count++
		if theirs != nil {
			refused++
		}
		if (theirs == nil) != (ours == nil) && !different(p, theirs) {
			assert.Failf(t, "not what an API server says", "%s\nserver: %v\nhere:   %v\n%s", at, theirs, ours, data)
		}
	}
	for _, table := range pods() {
		for _, r := range table.rows {
			var p corev1.Pod
			if yaml.UnmarshalStrict([]byte(strings.Replace(table.template, "@", r.text, 1)), &p) == nil {
				judge(bearing(&p), table.name+": "+r.text)
			}
		}
	}
	tabled := count
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 77))
		p := drawn(r)
		for range r.IntN(3) {
			mutate(r, reflect.ValueOf(&p.Spec).Elem())
		}
		judge(bearing(p), fmt.Sprint("seed ", seed))
	}
	t.Log(tabled, count, refused)
	assert.Greater(t, refused, count/8)
	assert.Greater(t, count-refused, count/8)
}

// different reports whether the two may differ. The server takes comparisons with what is no integer, which no node meets; amounts that no
// computer has are refused here; and a server without the feature gate for them refuses comparing tolerations.
func different(p *corev1.Pod, theirs error) bool {
	if theirs != nil {
		for _, x := range p.Spec.Tolerations {
			if x.Operator == "Lt" || x.Operator == "Gt" {
				return true
			}
		}
		return false
	}
	text := fmt.Sprint(p.Spec.Affinity)
	if p.Spec.Affinity != nil && p.Spec.Affinity.NodeAffinity != nil {
		data, _ := json.Marshal(p.Spec.Affinity.NodeAffinity)
		text = string(data)
	}
	huge := false
	for _, list := range amounts(&p.Spec) {
		for _, q := range list {
			huge = huge || q.CmpInt64(1<<53) > 0
		}
	}
	return huge || strings.Contains(text, `"operator":"Gt"`) || strings.Contains(text, `"operator":"Lt"`) || strings.Contains(text, `"nodeSelectorTerms":[{}]`)
}

func amounts(s *corev1.PodSpec) []corev1.ResourceList {
	var out []corev1.ResourceList
	add := func(r *corev1.ResourceRequirements) { out = append(out, r.Requests, r.Limits) }
	for i := range s.Containers {
		add(&s.Containers[i].Resources)
	}
	for i := range s.InitContainers {
		add(&s.InitContainers[i].Resources)
	}
	if s.Resources != nil {
		add(s.Resources)
	}
	return out
}

// bearing is a pod with the fields that bear on where it may run, and valid ones that the server wants besides.
func bearing(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Labels: map[string]string{"app": "web"}}}
	containers := func(list []corev1.Container, name string) []corev1.Container {
		var out []corev1.Container
		for i := range list {
			k := corev1.Container{Name: fmt.Sprint(name, i), Image: "web", Resources: list[i].Resources, RestartPolicy: list[i].RestartPolicy}
			k.Resources.Claims = nil
			for _, port := range list[i].Ports {
				if p.Spec.HostNetwork || port.HostPort != 0 {
					k.Ports = append(k.Ports, corev1.ContainerPort{HostPort: port.HostPort, HostIP: port.HostIP, Protocol: port.Protocol, ContainerPort: port.ContainerPort})
				}
			}
			out = append(out, k)
		}
		return out
	}
	out.Spec = corev1.PodSpec{
		Containers: containers(p.Spec.Containers, "c"), InitContainers: containers(p.Spec.InitContainers, "i"), HostNetwork: p.Spec.HostNetwork, NodeSelector: p.Spec.NodeSelector,
		Affinity: p.Spec.Affinity, TopologySpreadConstraints: p.Spec.TopologySpreadConstraints, Tolerations: p.Spec.Tolerations, Resources: p.Spec.Resources,
	}
	for i := range out.Spec.Containers {
		out.Spec.Containers[i].RestartPolicy = nil
	}
	for i := range out.Spec.Tolerations {
		out.Spec.Tolerations[i].TolerationSeconds = nil
	}
	return out
}

// drawn is a valid pod with some of everything.
func drawn(r *rand.Rand) *corev1.Pod {
	some := func() bool { return r.IntN(2) == 0 }
	list := func(pairs ...string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return out
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}}}
	p := &corev1.Pod{}
	s := &p.Spec
	s.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi"), Limits: list("cpu", "2", "nvidia.com/gpu", "1")}}}
	if some() {
		s.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
		s.Containers[0].Resources.Limits["hugepages-2Mi"] = resource.MustParse("4Mi")
	}
	if some() {
		s.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "1500m", "ephemeral-storage", "1Gi")}}}
		if always := corev1.ContainerRestartPolicyAlways; some() {
			s.InitContainers[0].RestartPolicy = &always
		}
	}
	if some() {
		s.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}, {HostPort: 80, ContainerPort: 80, Protocol: corev1.ProtocolUDP, HostIP: "10.0.0.1"}}
		s.HostNetwork = some()
	}
	if some() {
		s.NodeSelector = map[string]string{"disk": "ssd", "example.com/x": ""}
	}
	if some() {
		s.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}, {Key: "b", Value: "c", Effect: corev1.TaintEffectNoSchedule}}
	}
	if some() {
		two, honor := int32(2), corev1.NodeInclusionPolicyHonor
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector.DeepCopy(), MinDomains: &two, NodeTaintsPolicy: &honor, MatchLabelKeys: []string{"version"}},
			{MaxSkew: 2, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: corev1.ScheduleAnyway, NodeAffinityPolicy: &honor},
		}
	}
	if some() {
		s.Affinity = &corev1.Affinity{}
		expression := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}}
		field := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}
		term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: selector.DeepCopy(), Namespaces: []string{"shop"}, NamespaceSelector: selector.DeepCopy(), MismatchLabelKeys: []string{"version"}}
		if some() {
			s.Affinity.NodeAffinity = &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{expression, {Key: "size", Operator: corev1.NodeSelectorOpExists}}}, {MatchFields: []corev1.NodeSelectorRequirement{field}},
				}},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 5, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{expression}}}},
			}
		}
		if some() {
			s.Affinity.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: *term.DeepCopy()}}}
		}
		if some() {
			s.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{*term.DeepCopy()}}
		}
	}
	return p
}

// mutate changes something in the value: it goes down to a field, and there changes a text, a number, an amount or the length of a list.
func mutate(r *rand.Rand, v reflect.Value) {
	texts := []string{
		"", "a b", "A", "-", "x/y", "x/y/z", "X.y/z", "/y", "a_b", "007", strings.Repeat("a", 63), strings.Repeat("a", 64), "5", "-5", "large", "Exists", "NotIn", "DoesNotExist", "Gt", "Gte", "Equal", "In",
		"NoExecute", "ScheduleAnyway", "Ignore", "UDP", "tcp", "Always", "Never", "zone", "app", "version", "metadata.name", "10.0.0.1", "::1", "localhost",
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int32, reflect.Int64:
		v.SetInt([]int64{-1, 0, 1, 2, 100, 101, 65535, 65536}[r.IntN(8)])
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		} else if r.IntN(8) == 0 {
			v.SetZero()
			return
		}
		mutate(r, v.Elem())
	case reflect.Slice:
		switch n := v.Len(); {
		case n == 0 || r.IntN(8) == 0:
			v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
		case r.IntN(8) == 0:
			v.Set(reflect.Append(v, v.Index(r.IntN(n))))
		case r.IntN(8) == 0:
			v.Set(v.Slice(0, n-1))
		default:
			mutate(r, v.Index(r.IntN(n)))
		}
	case reflect.Map:
		if list, ok := reflect.TypeAssert[corev1.ResourceList](v); ok {
			mutateAmounts(r, v, list)
			return
		}
		out := reflect.MakeMap(v.Type())
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, v.MapIndex(key))
		}
		out.SetMapIndex(reflect.ValueOf(texts[r.IntN(len(texts))]), reflect.ValueOf(texts[r.IntN(len(texts))]))
		v.Set(out)
	case reflect.Struct:
		var fields []reflect.Value
		for i := range v.NumField() {
			if f := v.Field(i); v.Type().Field(i).IsExported() && known(v.Type(), v.Type().Field(i).Name) {
				fields = append(fields, f)
			}
		}
		mutate(r, fields[r.IntN(len(fields))])
	}
}

// known are the fields of a pod and its containers that bear on where it may run; of other types, all are.
func known(t reflect.Type, field string) bool {
	list, some := map[reflect.Type]string{
		reflect.TypeFor[corev1.PodSpec]():              "Containers InitContainers HostNetwork NodeSelector Affinity TopologySpreadConstraints Tolerations Resources",
		reflect.TypeFor[corev1.Container]():            "Resources Ports RestartPolicy",
		reflect.TypeFor[corev1.ContainerPort]():        "HostPort HostIP Protocol ContainerPort",
		reflect.TypeFor[corev1.ResourceRequirements](): "Requests Limits",
	}[t]
	return !some || strings.Contains(" "+list+" ", " "+field+" ")
}

func mutateAmounts(r *rand.Rand, v reflect.Value, list corev1.ResourceList) {
	names := []string{"cpu", "memory", "ephemeral-storage", "Memory", "gpu", "storage", "pods", "nvidia.com/gpu", "example.com/x", "hugepages-2Mi", "kubernetes.io/x", "a b", ""}
	texts := []string{"0", "1", "2", "-1", "500m", "1Gi", "4Mi", "1100u"}
	out := list.DeepCopy()
	if out == nil {
		out = corev1.ResourceList{}
	}
	out[corev1.ResourceName(names[r.IntN(len(names))])] = resource.MustParse(texts[r.IntN(len(texts))])
	v.Set(reflect.ValueOf(out))
}
