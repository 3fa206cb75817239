package quota_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests/internal/quota"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

func amounts(r *rand.Rand) corev1.ResourceList {
	out := corev1.ResourceList{}
	if r.IntN(2) == 0 {
		out[corev1.ResourceCPU] = resource.MustParse(fmt.Sprintf("%dm", 100*(1+r.IntN(30))))
	}
	if r.IntN(2) == 0 {
		out[corev1.ResourceMemory] = resource.MustParse(fmt.Sprintf("%dMi", 128*(1+r.IntN(30))))
	}
	if r.IntN(4) == 0 {
		out[corev1.ResourceEphemeralStorage] = resource.MustParse(fmt.Sprintf("%dGi", 1+r.IntN(9)))
	}
	return out
}

func randomPod(r *rand.Rand) *corev1.Pod {
	container := func() corev1.Container {
		c := corev1.Container{Resources: corev1.ResourceRequirements{Limits: amounts(r), Requests: amounts(r)}}
		if r.IntN(4) == 0 {
			c.Resources.Limits[gpu] = resource.MustParse(fmt.Sprint(1 + r.IntN(3)))
		}
		return c
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	for range 1 + r.IntN(3) {
		p.Spec.Containers = append(p.Spec.Containers, container())
	}
	always := corev1.ContainerRestartPolicyAlways
	for range r.IntN(3) {
		c := container()
		if r.IntN(2) == 0 {
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if r.IntN(3) == 0 {
		class := "kata"
		p.Spec.RuntimeClassName = &class
	}
	if r.IntN(6) == 0 {
		p.Status.Phase = []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed, corev1.PodRunning}[r.IntN(3)]
	}
	return p
}

// simple adds up one resource by the documentation of init containers and sidecars: containers and
// sidecars together, or an init container with the sidecars that started before it, if that is more.
func simple(p *corev1.Pod, of func(corev1.ResourceRequirements) (resource.Quantity, bool)) (total resource.Quantity, any bool) {
	var sidecars, most resource.Quantity
	for _, c := range p.Spec.InitContainers {
		q, ok := of(c.Resources)
		any = any || ok
		if c.RestartPolicy != nil {
			sidecars.Add(q)
			if sidecars.Cmp(most) > 0 {
				most = sidecars.DeepCopy()
			}
			continue
		}
		with := sidecars.DeepCopy()
		if with.Add(q); with.Cmp(most) > 0 {
			most = with
		}
	}
	total = sidecars.DeepCopy()
	for _, c := range p.Spec.Containers {
		q, ok := of(c.Resources)
		any = any || ok
		total.Add(q)
	}
	if most.Cmp(total) > 0 {
		total = most
	}
	return total, any
}

// The usage of random pods is that of a simple sum: requests that are missing are limits, and
// overhead is added to requests, and to limits that are set.
func TestUsageIsASimpleSum(t *testing.T) {
	overhead := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("160Mi")}
	s := scheduling.Snapshot{RuntimeClasses: []*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata", Overhead: &nodev1.Overhead{PodFixed: overhead}}}}
	r := rand.New(rand.NewPCG(7, 7))
	for range 3000 {
		p := randomPod(r)
		got := quota.Of(quota.Admitted(p, s))
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		require.EqualValues(t, 1, got["count/pods"])
		if ended {
			require.Len(t, got, 1)
			continue
		}
		require.EqualValues(t, 1, got["pods"])
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, gpu} {
			request, _ := simple(p, func(r corev1.ResourceRequirements) (resource.Quantity, bool) {
				q, ok := r.Requests[name]
				if !ok {
					q, ok = r.Limits[name]
				}
				return q, ok
			})
			limit, limited := simple(p, func(r corev1.ResourceRequirements) (resource.Quantity, bool) { q, ok := r.Limits[name]; return q, ok })
			if p.Spec.RuntimeClassName != nil {
				request.Add(overhead[name])
				if limited {
					limit.Add(overhead[name])
				}
			}
			require.Equal(t, resources.Request(name, request), got["requests."+name], "%s of %v", name, p.Spec)
			if name == gpu {
				require.Zero(t, got[gpu]+got["limits."+gpu])
				continue
			}
			require.Equal(t, got["requests."+name], got[name])
			require.Equal(t, resources.Request(name, limit), got["limits."+name], "%s of %v", name, p.Spec)
		}
	}
}

// A quota that counts nothing more than the sum is not exceeded, and one unit less is.
func TestOverIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 500 {
		sum := quota.Usage{}
		for range 1 + r.IntN(5) {
			p := randomPod(r)
			p.Status.Phase = ""
			sum.Add(quota.Of(quota.Admitted(p, scheduling.Snapshot{})), 1+r.IntN(4))
		}
		hard := corev1.ResourceList{}
		var want []string
		for name, n := range sum {
			if n == 0 {
				continue
			}
			resource := corev1.ResourceName(strings.TrimPrefix(strings.TrimPrefix(string(name), "requests."), "limits."))
			hard[name] = resources.Quantity(resource, n)
			if r.IntN(2) == 0 {
				hard[name] = resources.Quantity(resource, n-1)
				want = append(want, string(name))
			}
		}
		slices.Sort(want)
		var got []string
		for _, text := range sum.Over(sum, hard) {
			name, both, _ := strings.Cut(text, " ")
			has, of, _ := strings.Cut(both, " of ")
			require.NotEqual(t, has, of, text)
			got = append(got, name)
		}
		require.Equal(t, want, got)
		assert.Empty(t, sum.Over(quota.Usage{}, hard), "no new pod takes any of it")
	}
}

func TestScopes(t *testing.T) {
	seconds := int64(60)
	asks := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	pods := map[string]*corev1.Pod{
		"plain":    {Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}},
		"asks":     {Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: asks}}}},
		"deadline": {Spec: corev1.PodSpec{Containers: []corev1.Container{{}}, ActiveDeadlineSeconds: &seconds}},
		"high":     {Spec: corev1.PodSpec{Containers: []corev1.Container{{}}, PriorityClassName: "high"}},
		"crosses": {Spec: corev1.PodSpec{Containers: []corev1.Container{{}}, Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{Namespaces: []string{"ops"}}},
		}}}},
	}
	class := func(op corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: "PriorityClass", Operator: op, Values: values}}}}
	}
	of := func(names ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Scopes: names}
	}
	for _, c := range []struct {
		spec corev1.ResourceQuotaSpec
		want string
	}{
		{of(), "asks crosses deadline high plain"},
		{of("Terminating"), "deadline"},
		{of("NotTerminating"), "asks crosses high plain"},
		{of("BestEffort"), "crosses deadline high plain"},
		{of("NotBestEffort"), "asks"},
		{of("BestEffort", "NotTerminating"), "crosses high plain"},
		{of("CrossNamespacePodAffinity"), "crosses"},
		{of("PriorityClass"), "high"},
		{of("Future"), ""},
		{class("In", "high", "low"), "high"},
		{class("NotIn", "high"), "asks crosses deadline plain"},
		{class("Exists"), "high"},
		{class("DoesNotExist"), "asks crosses deadline plain"},
	} {
		var got []string
		for name, p := range pods {
			if quota.Covers(&c.spec, p) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		assert.Equal(t, c.want, strings.Join(got, " "), "%v", c.spec)
	}
	future := of("Future", "BestEffort")
	assert.Equal(t, []string{"Future"}, quota.UnknownScopes(&future))
}

// A quota on cpu or memory makes it compulsory for each container.
func TestLacks(t *testing.T) {
	limited := corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}
	p := quota.Admitted(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{limited}, InitContainers: []corev1.Container{limited}}}, scheduling.Snapshot{})
	one := resource.MustParse("1")
	hard := corev1.ResourceList{"cpu": one, "requests.cpu": one, "limits.cpu": one, "memory": one, "limits.memory": one, "requests.ephemeral-storage": one, "pods": one}
	assert.Equal(t, []corev1.ResourceName{"limits.memory", "memory"}, quota.Lacks(p, hard))
	p.Spec.InitContainers = append(slices.Clone(p.Spec.InitContainers), corev1.Container{})
	assert.Equal(t, []corev1.ResourceName{"cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu"}, quota.Lacks(p, hard))
}
