package nodespec_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/internal/nodespec"
)

func texts(r *nodespec.Report) []string {
	out := []string{}
	for _, p := range r.Problems {
		out = append(out, p.Path+": "+p.Detail)
	}
	return out
}

// TestReportIsSilentWhereDecodingFailed says nothing of a field that is wrong already, nor of its parts and parents.
func TestReportIsSilentWhereDecodingFailed(t *testing.T) {
	r := nodespec.NewReport([]strictjson.Problem{{Path: "spec.a[1].b", Detail: "decoding"}})
	for _, path := range []string{"spec.a[1].b", "spec.a[1].b.c", "spec.a[1]", "spec"} {
		r.Add(path, "checking")
	}
	r.Add("spec.a[10].b", "checking %d", 1)
	r.Add("spec.a[1].bc", "checking %d", 2)
	assert.Equal(t, []string{"spec.a[1].b: decoding", "spec.a[10].b: checking 1", "spec.a[1].bc: checking 2"}, texts(r))
}

// TestObject adds what a client drops, and nothing that is said.
func TestObject(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{map[string]any{"spec": 1}, `{"spec":1,"apiVersion":"v","kind":"K"}`},
		{map[string]any{"kind": "Other"}, `{"kind":"Other","apiVersion":"v"}`},
		{[]int{1}, `[1]`},
	} {
		n, err := nodespec.Object(c.value, "v", "K")
		assert.NoError(t, err)
		assert.Equal(t, c.want, string(n.Raw()))
	}
	_, err := nodespec.Object(func() {}, "v", "K")
	assert.Error(t, err)
}

func TestDuration(t *testing.T) {
	hour := time.Hour
	for _, c := range []struct {
		text  string
		never bool
		want  *time.Duration
		bad   bool
	}{
		{"", true, &hour, false},
		{"Never", true, nil, false},
		{"Never", false, &hour, true},
		{"1h", true, &hour, false},
		{"60m", false, &hour, false},
		{"1d", true, &hour, true},
		{"-1h", true, &hour, true},
		{"1ms", true, &hour, true},
		{"9999999999h", true, &hour, true},
	} {
		r := nodespec.NewReport(nil)
		assert.Equal(t, c.want, r.Duration("d", c.text, c.never, &hour), c.text)
		assert.Equal(t, c.bad, len(r.Problems) > 0, c.text)
	}
}

func TestRange(t *testing.T) {
	for value, want := range map[int]int{0: 1, 1: 0, 3: 0, 4: 1} {
		r := nodespec.NewReport(nil)
		nodespec.Range(r, "n", &value, 1, 3)
		assert.Len(t, r.Problems, want, value)
	}
	r := nodespec.NewReport(nil)
	nodespec.Range[int](r, "n", nil, 1, 3)
	assert.Empty(t, r.Problems)
}

func TestName(t *testing.T) {
	for name, want := range map[string]int{"a": 0, "": 1, "A": 1, "a.b-c": 0, string(make([]byte, 300)): 3} {
		r := nodespec.NewReport(nil)
		r.Name("metadata.name", name)
		assert.Len(t, r.Problems, want, "%q", name)
	}
}

func TestRequirementsRenameAndIntersect(t *testing.T) {
	r := nodespec.NewReport(nil)
	three, five := 3, 5
	set, minValues := r.Requirements("r", []nodespec.Requirement{
		{Key: "beta.kubernetes.io/arch", Operator: "Exists", MinValues: &three},
		{Key: "kubernetes.io/arch", Operator: "NotIn", Values: []string{"arm64"}, MinValues: &five},
	}, nodespec.Rules{})
	assert.Empty(t, texts(r))
	assert.True(t, set.Equal(requirements.MustParse("kubernetes.io/arch, kubernetes.io/arch notin (arm64)")))
	assert.Equal(t, map[string]int{"kubernetes.io/arch": 5}, minValues)
}

// TestValuesThatMeanNothing has elements that Karpenter takes and makes less of than they say.
func TestValuesThatMeanNothing(t *testing.T) {
	r := nodespec.NewReport(nil)
	set, _ := r.Requirements("r", []nodespec.Requirement{
		{Key: "a", Operator: "Exists", Values: []string{"x"}},
		{Key: "b", Operator: "DoesNotExist", Values: []string{"x"}},
		{Key: "c", Operator: "NotIn"},
	}, nodespec.Rules{})
	assert.Empty(t, texts(r))
	assert.True(t, set.Equal(requirements.MustParse("a, !b, c")), set.String())
	r.Requirements("r", []nodespec.Requirement{{Key: "d", Operator: "In"}}, nodespec.Rules{})
	assert.Len(t, r.Problems, 1)
}

// TestContradictionOfThree names the requirement that closes the last gap.
func TestContradictionOfThree(t *testing.T) {
	r := nodespec.NewReport(nil)
	r.Requirements("r", []nodespec.Requirement{
		{Key: "z", Operator: "In", Values: []string{"a", "b"}},
		{Key: "z", Operator: "NotIn", Values: []string{"a"}},
		{Key: "z", Operator: "NotIn", Values: []string{"b"}},
	}, nodespec.Rules{})
	assert.Equal(t, []string{"r[2]: z notin (b) contradicts z in (b) (r[0]): no node can satisfy both"}, texts(r))
}

func TestRestricted(t *testing.T) {
	key := []nodespec.Requirement{{Key: "kubernetes.io/hostname", Operator: "Exists"}, {Key: "karpenter.sh/nodepool", Operator: "Exists"}}
	for rules, want := range map[nodespec.Rules]int{{}: 1, {Restricted: true}: 0, {Pool: true}: 2, {Pool: true, Restricted: true}: 1} {
		r := nodespec.NewReport(nil)
		r.Requirements("r", key, rules)
		assert.Len(t, r.Problems, want, "%+v", rules)
	}
}

func TestTaintsOverBothLists(t *testing.T) {
	r := nodespec.NewReport(nil)
	same := corev1.Taint{Key: "a", Value: "1", Effect: corev1.TaintEffectNoSchedule}
	other := corev1.Taint{Key: "a", Value: "1", Effect: corev1.TaintEffectNoExecute}
	r.Taints("spec", []corev1.Taint{same, other}, []corev1.Taint{same})
	assert.Equal(t, []string{"spec.startupTaints[0]: taint a:NoSchedule is already listed (spec.taints[0])"}, texts(r))
}

func TestQuantities(t *testing.T) {
	r := nodespec.NewReport(nil)
	r.Quantities("l", corev1.ResourceList{"cpu": resource.MustParse("-1"), "memroy": resource.MustParse("1"), "example.com/cpu": resource.MustParse("1")})
	assert.Equal(t, []string{"l.cpu: -1: must not be negative", `l.memroy: unknown resource (did you mean "memory"?)`}, texts(r))
}
