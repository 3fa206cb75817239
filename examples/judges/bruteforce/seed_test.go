package bruteforce_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/judges/bruteforce"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
)

var (
	one     = flag.Uint64("seed", 0, "the seed that TestSeed looks at; 0 skips it")
	smaller = flag.Bool("minimize", false, "TestSeed makes the problem as small as it can")
	named   = flag.String("way", "level", "the way to plan that TestSeed looks at: default, level or leave zones")
)

// TestSeed tells what a plan does and what a search finds instead:
// go test ./bruteforce -run TestSeed -seed 7 -minimize -v.
func TestSeed(t *testing.T) {
	if *one == 0 {
		t.Skip("no -seed")
	}
	planned := func(s scheduling.Snapshot) (way, outcome) {
		for _, w := range ways(s) {
			if w.name == *named {
				return w, look(t.Context(), w)
			}
		}
		t.Fatalf("no way %q", *named)
		return way{}, outcome{}
	}
	// fault is what is worst about a plan; a smaller problem has the same.
	fault := func(s scheduling.Snapshot) string {
		switch _, o := planned(s); {
		case o.err != nil:
			return o.err.Error()
		case len(o.wrong) > 0:
			return "wrong"
		case o.more[0] != "":
			return "more"
		case o.saved[0] > 5:
			return "dearer"
		case o.more[1] != "":
			return "more as kube-scheduler counts"
		case o.saved[1] > 5:
			return "dearer as kube-scheduler counts"
		case len(o.dear) > 0:
			return "a fix is dearer"
		}
		return ""
	}
	s := draw(*one)
	if want := fault(s); *smaller && want != "" {
		s = shrunk(s, func(s scheduling.Snapshot) bool { return fault(s) == want })
	}
	w, o := planned(s)
	t.Logf("\n%s", manifest(w.snapshot))
	p, err := plan.Make(t.Context(), w.snapshot, w.options)
	require.NoError(t, err)
	for _, n := range p.NewNodes() {
		t.Logf("buy %s: %s in %s %s at %.3f", n.Name, n.InstanceType.Name, n.Zone, n.CapacityType, n.PricePerHour)
	}
	var placed []*corev1.Pod
	for _, b := range p.Bindings() {
		t.Logf("bind %s to %s", b.Pod.Name, b.Node)
		placed = append(placed, b.Pod)
	}
	for _, u := range p.Unplaced() {
		t.Logf("refused: %s: %v", p.Problem.Classes[u.Class].Name(), u.Reasons())
	}
	for _, counting := range []bruteforce.Counting{w.counting, bruteforce.WithNodes} {
		x := bruteforce.NewSearch(w.snapshot, counting, nil, *work)
		if a := x.Cheapest(placed, bruteforce.Billionths(p.Cost().Dollars())); a != nil {
			t.Logf("cheaper: %s", told(a))
		}
	}
	t.Logf("cost %v, bound %v; it could be %.1f%% cheaper with its domains, and %.1f%% with those of kube-scheduler; a search places %q, and %q; %v; fixes: %q",
		p.Cost(), p.Bound.Price, o.saved[0], o.saved[1], o.more[0], o.more[1], o.wrong, o.dear)
	require.Empty(t, o.wrong)
}

// manifest is a problem in a few lines.
func manifest(s scheduling.Snapshot) string {
	var b strings.Builder
	if len(s.Pools) > 0 {
		for _, t := range s.Pools[0].Types {
			fmt.Fprintf(&b, "type %s %s/%s/%s %v:", t.Name, t.Capacity.Cpu(), t.Capacity.Memory(), t.Capacity.Pods(), t.Requirements.Labels()["example.com/generation"])
			for _, o := range t.Offerings {
				l := o.Requirements.Labels()
				fmt.Fprintf(&b, " %s %s %.3f;", l[corev1.LabelTopologyZone], l[instancetypes.LabelCapacityType], o.Price)
			}
			b.WriteString("\n")
		}
	}
	for _, p := range s.Pools {
		fmt.Fprintf(&b, "pool %s weight %d: %v labels %v taints %v limits", p.Name, p.Weight, p.Requirements, p.Labels, p.Taints)
		for _, name := range slices.Sorted(maps.Keys(p.Limits)) {
			q := p.Limits[name]
			fmt.Fprintf(&b, " %s=%s", name, &q)
		}
		b.WriteString("\n")
	}
	for _, d := range s.DaemonSets {
		fmt.Fprintf(&b, "daemon %s\n", spec(&d.Spec.Template.Spec))
	}
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "node %s %s/%s %v taints %v\n", n.Name, n.Status.Allocatable.Cpu(), n.Status.Allocatable.Memory(), n.Labels, n.Spec.Taints)
	}
	for _, p := range s.Pods {
		fmt.Fprintf(&b, "pod %s/%s %v %s\n", p.Namespace, p.Name, p.Labels, spec(&p.Spec))
	}
	return b.String()
}

func spec(p *corev1.PodSpec) string {
	var out []string
	add := func(name string, value any) { out = append(out, fmt.Sprintf("%s %v", name, value)) }
	if p.NodeName != "" {
		add("on", p.NodeName)
	}
	r := p.Containers[0].Resources.Requests
	add("requests", fmt.Sprintf("%s/%s", r.Cpu(), r.Memory()))
	if p.Priority != nil {
		add("priority", *p.Priority)
	}
	for _, port := range p.Containers[0].Ports {
		add("port", fmt.Sprint(port.HostPort, port.HostIP, port.Protocol))
	}
	if len(p.NodeSelector) > 0 {
		add("selects", p.NodeSelector)
	}
	for _, t := range p.Tolerations {
		add("tolerates", fmt.Sprint(t.Key, t.Operator, t.Value, t.Effect))
	}
	for _, c := range p.TopologySpreadConstraints {
		text := fmt.Sprintf("%s skew %d %s of %v %v", c.TopologyKey, c.MaxSkew, c.WhenUnsatisfiable, c.LabelSelector.MatchLabels, c.LabelSelector.MatchExpressions)
		if c.MinDomains != nil {
			text += fmt.Sprint(" minDomains ", *c.MinDomains)
		}
		if c.NodeAffinityPolicy != nil {
			text += fmt.Sprint(" affinity ", *c.NodeAffinityPolicy)
		}
		if c.NodeTaintsPolicy != nil {
			text += fmt.Sprint(" taints ", *c.NodeTaintsPolicy)
		}
		add("spread", fmt.Sprint(text, " ", c.MatchLabelKeys))
	}
	terms := func(name string, list []corev1.PodAffinityTerm) {
		for _, t := range list {
			add(name, fmt.Sprintf("%s to %v %v %v", t.TopologyKey, t.LabelSelector.MatchLabels, t.LabelSelector.MatchExpressions, t.Namespaces))
		}
	}
	if a := p.Affinity; a != nil {
		if a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			add("node affinity", a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
		}
		if a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
			add("preferred node affinity", a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAffinity != nil {
			terms("near", a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
			for _, t := range a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				terms("soft near", []corev1.PodAffinityTerm{t.PodAffinityTerm})
			}
		}
		if a.PodAntiAffinity != nil {
			terms("away", a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
			for _, t := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				terms("soft away", []corev1.PodAffinityTerm{t.PodAffinityTerm})
			}
		}
	}
	return strings.Join(out, "; ")
}
