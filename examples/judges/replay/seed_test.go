package replay_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/judges/scenario"
)

// What TestSeed looks at.
var (
	one     = flag.Uint64("seed", 0, "the seed of the scenario that TestSeed looks at; 0 skips it")
	tangled = flag.Bool("tangled", false, "TestSeed draws the tangled family")
	smaller = flag.Bool("minimize", false, "TestSeed makes a scenario that fails as small as it can, and prints it whole")
)

// TestSeed tells of one scenario what kube-scheduler refuses of the plan, why pods have no place, and how Karpenter does:
// go test ./replay -run TestSeed -seed 7 -minimize -v. It fails where the property test does.
func TestSeed(t *testing.T) {
	if *one == 0 {
		t.Skip("no -seed")
	}
	s := drawn(*one)
	if *tangled {
		s = scenario.Tangled(*one)
	}
	if *smaller {
		s = shrunk(t, s)
	}
	keep(t, s)
	o := judge(t.Context(), s)
	t.Logf("%s: %d placed; %v\n%s", s, o.placed, o.err, o.verdict)
	if *smaller {
		for _, b := range o.verdict.Accepted {
			t.Log(b)
		}
	}
	refused := map[types.NamespacedName]bool{}
	for _, r := range o.verdict.Refused {
		refused[r.Pod] = true
	}
	tell(t, "refused", s, refused)
	packed, err := planned(t.Context(), s)
	require.NoError(t, err)
	unplaced := map[types.NamespacedName]bool{}
	for _, p := range s.Pods {
		unplaced[nameOf(p)] = true
	}
	for _, p := range packed.Bindings() {
		delete(unplaced, nameOf(p.Pod))
	}
	tell(t, "not placed", s, unplaced)
	for _, u := range packed.Unplaced() {
		for _, r := range u.Reasons() {
			t.Logf("not placed: %s: %s", packed.Problem.Classes[u.Class].Name(), r)
		}
	}
	c := compared(t.Context(), s)
	t.Logf("pods by priority that kube-scheduler accepts: ours %v, Karpenter's %v and %d refused; %v", c.ours, c.theirs, c.refused, c.err)
	require.False(t, o.refused())
}

// shrunk is the smallest scenario found that fails as s does: by a refusal of the same plugin, for the pod that shows it is
// another one as pods go, or with fewer pods placed than Karpenter's. It is s itself where neither is so.
func shrunk(t *testing.T, s scenario.Scenario) scenario.Scenario {
	t.Helper()
	fault := func(s scenario.Scenario) string {
		switch o := judge(t.Context(), s); {
		case o.err != nil:
			return "error"
		case o.refused():
			return o.verdict.Refused[0].Plugin
		}
		if c := compared(t.Context(), s); c.err == nil {
			if _, more := c.difference(); more < 0 {
				return "fewer"
			}
		}
		return ""
	}
	want := fault(s)
	if want == "" {
		return s
	}
	s = scenario.Minimize(s, func(s scenario.Scenario) bool { return fault(s) == want })
	types := s.Catalogue
	s.Catalogue = nil
	text, err := s.YAML()
	require.NoError(t, err)
	for _, it := range types {
		t.Logf("type %s is left", it.Name)
	}
	t.Logf("%s", text)
	s.Catalogue = types
	return s
}

// tell writes the constraints of pods, once for all that have the same.
func tell(t *testing.T, what string, s scenario.Scenario, pods map[types.NamespacedName]bool) {
	t.Helper()
	alike := map[string][]string{}
	for _, p := range s.Pods {
		if pods[nameOf(p)] {
			text, err := yaml.Marshal(constraintsOf(p))
			require.NoError(t, err)
			alike[string(text)] = append(alike[string(text)], fmt.Sprintf("%s %v", nameOf(p), p.Labels))
		}
	}
	for _, text := range slices.Sorted(maps.Keys(alike)) {
		t.Logf("%s: %s\n%s", what, strings.Join(alike[text], ", "), text)
	}
}

// constraintsOf is the spec without what all pods have.
func constraintsOf(p *corev1.Pod) corev1.PodSpec {
	spec := p.DeepCopy().Spec
	for i := range spec.Containers {
		spec.Containers[i].Image = ""
	}
	return spec
}
