package scenario_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/judges/scenario"
)

var update = flag.Bool("update", false, "write the table of pairs into README.md")

// pairScenarios is within how many scenarios each pair must be seen.
const pairScenarios = 2000

// poolSection is the section of FIELDS.md about pools; those of older versions are decoded to the same fields.
const poolSection = "NodePool v1"

// quotaSection is the section of FIELDS.md about CapacityQuotas.
const quotaSection = "CapacityQuota"

// claimSection is the section of FIELDS.md about what was bought.
const claimSection = "NodeClaim"

// shapes are what bears on placement besides a field of a pod being there at all, surroundings the same of what is around the pods.
const shapes, surroundings = "shapes", "surroundings"

// feature is a field of a section of FIELDS.md, or a shape.
type feature struct{ section, name string }

// String returns "section.name".
func (f feature) String() string { return f.section + "." + f.name }

// readFeatures returns the features and their sections in the order of FIELDS.md, shapes last.
func readFeatures(t *testing.T) (features []feature, sections []string) {
	t.Helper()
	text, err := os.ReadFile("../../../scheduling/FIELDS.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			sections = append(sections, name)
		} else if strings.HasPrefix(line, "| `") {
			features = append(features, feature{sections[len(sections)-1], strings.Split(line, "`")[1]})
		}
	}
	older := func(section string) bool {
		return section != poolSection && (strings.HasPrefix(section, "NodePool") || strings.HasPrefix(section, "Provisioner"))
	}
	sections = slices.DeleteFunc(sections, older)
	features = slices.DeleteFunc(features, func(f feature) bool { return older(f.section) })
	for _, name := range shapeNames() {
		features = append(features, feature{shapes, name})
	}
	for _, name := range surroundingNames() {
		features = append(features, feature{surroundings, name})
	}
	return features, append(sections, shapes, surroundings)
}

// quotaFeatures adds the fields of the quotas.
func quotaFeatures(s scenario.Scenario, into map[feature]bool) {
	for _, q := range s.Quotas {
		spec := q.Object["spec"].(map[string]any)
		into[feature{quotaSection, "Name"}], into[feature{quotaSection, "Limits"}] = true, true
		if spec["selector"] != nil {
			into[feature{quotaSection, "Selector"}] = true
		}
	}
}

func surroundingNames() []string {
	return []string{
		"node being deleted", "node about to be deleted", "node that is not ready yet", "claim without a node", "claim whose node is gone",
		"cordon without a taint", "pending pod being deleted", "LimitRange", "free volumes", "free volumes that several nodes reach",
		"daemons with anti-affinity", "pod that is resized as a whole", "node that declares features", "pod that no drain evicts", "PodDisruptionBudget",
		"nominated pod", "node that pods of its own fill", "pod that is older than its RuntimeClass", "in-tree volume", "lost claim",
		"claim whose class is in an annotation", "default storage class", "disk that a pod names itself", "driver that says where it has capacity",
	}
}

// surroundingsOf adds what is around the pods of a scenario.
func surroundingsOf(s scenario.Scenario, into map[feature]bool) {
	set := func(name string, is bool) {
		if is {
			into[feature{surroundings, name}] = true
		}
	}
	names := map[string]bool{}
	for _, n := range s.Nodes {
		names[n.Name] = true
		set("node being deleted", n.DeletionTimestamp != nil)
		set("node about to be deleted", slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.DisruptedTaintKey }))
		set("node that is not ready yet", slices.ContainsFunc(s.Ready, func(r *corev1.Node) bool { return r.Name == n.Name }))
		set("node that declares features", len(n.Status.DeclaredFeatures) > 0)
		set("cordon without a taint", n.Spec.Unschedulable && len(n.Spec.Taints) == 0)
	}
	overhead := map[string]corev1.ResourceList{}
	for _, c := range s.RuntimeClasses {
		if c.Overhead != nil {
			overhead[c.Name] = c.Overhead.PodFixed
		}
	}
	for _, c := range s.NodeClaims {
		initialized := slices.ContainsFunc(c.Status.Conditions, func(k status.Condition) bool { return k.Type == karpv1.ConditionTypeInitialized })
		set("claim without a node", c.Status.NodeName == "")
		set("claim whose node is gone", initialized && !names[c.Status.NodeName])
		for name, is := range map[string]bool{
			"Name": true, "NodeName": c.Status.NodeName != "", "ProviderID": c.Status.ProviderID != "", "Labels": len(c.Labels) > 0, "Taints": c.Spec.Taints != nil,
			"StartupTaints": c.Spec.StartupTaints != nil, "Capacity": c.Status.Capacity != nil, "Allocatable": c.Status.Allocatable != nil,
			"Initialized": initialized, "Deleting": c.DeletionTimestamp != nil,
		} {
			if is {
				into[feature{claimSection, name}] = true
			}
		}
	}
	for _, p := range s.Pods {
		set("pending pod being deleted", p.DeletionTimestamp != nil)
		set("nominated pod", p.Status.NominatedNodeName != "")
		set("node that pods of its own fill", strings.HasPrefix(p.Name, "fill-"))
		set("disk that a pod names itself", slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim == nil && v.Ephemeral == nil }))
		set("pod that is older than its RuntimeClass", p.UID != "" && p.Spec.RuntimeClassName != nil && !equality.Semantic.DeepEqual(p.Spec.Overhead, overhead[*p.Spec.RuntimeClassName]))
	}
	for _, c := range s.PVCs {
		_, annotated := c.Annotations[corev1.BetaStorageClassAnnotation]
		set("claim whose class is in an annotation", annotated)
		set("lost claim", c.Status.Phase == corev1.ClaimLost)
	}
	for _, c := range s.StorageClasses {
		set("default storage class", len(c.Annotations) > 0)
	}
	set("driver that says where it has capacity", len(s.CSICapacities) > 0)
	for _, p := range s.Running {
		set("pod that is resized as a whole", p.Status.Resources != nil)
	}
	for _, d := range s.DaemonSets {
		a := d.Spec.Template.Spec.Affinity
		set("daemons with anti-affinity", a != nil && a.PodAntiAffinity != nil)
	}
	set("LimitRange", len(s.LimitRanges) > 0)
	set("PodDisruptionBudget", len(s.PodDisruptionBudgets) > 0)
	set("pod that no drain evicts", len(s.Kept) > 0)
	for _, v := range s.PVs {
		set("in-tree volume", v.Spec.AWSElasticBlockStore != nil || v.Spec.GCEPersistentDisk != nil || v.Spec.AzureDisk != nil)
		free := v.Spec.ClaimRef == nil
		set("free volumes", free)
		set("free volumes that several nodes reach", free && v.Spec.NodeAffinity == nil ||
			free && len(v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values) > 1)
	}
}

func shapeNames() []string {
	return []string{
		"several required affinity terms", "several required anti-affinity terms", "several preferred affinity terms",
		"several preferred anti-affinity terms", "six node-affinity terms or more", "several spread constraints",
		"spread by an empty selector", "spread by no selector", "term with an empty selector", "term with no selector",
		"empty namespaceSelector", "several matchLabelKeys", "terminating",
	}
}

// shapesOf names the shapes of a pod.
func shapesOf(p *corev1.Pod) map[string]bool {
	out := map[string]bool{"terminating": p.DeletionTimestamp != nil && p.Spec.NodeName != "", "several spread constraints": len(p.Spec.TopologySpreadConstraints) > 1}
	empty := func(s *metav1.LabelSelector) bool {
		return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0
	}
	for _, c := range p.Spec.TopologySpreadConstraints {
		out["spread by an empty selector"] = out["spread by an empty selector"] || empty(c.LabelSelector)
		out["spread by no selector"] = out["spread by no selector"] || c.LabelSelector == nil
		out["several matchLabelKeys"] = out["several matchLabelKeys"] || len(c.MatchLabelKeys) > 1
	}
	terms := func(kind string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		out["several required "+kind] = len(required) > 1
		out["several preferred "+kind] = len(preferred) > 1
		all := slices.Clone(required)
		for _, w := range preferred {
			all = append(all, w.PodAffinityTerm)
		}
		for _, term := range all {
			out["term with an empty selector"] = out["term with an empty selector"] || empty(term.LabelSelector)
			out["term with no selector"] = out["term with no selector"] || term.LabelSelector == nil
			out["empty namespaceSelector"] = out["empty namespaceSelector"] || empty(term.NamespaceSelector)
			out["several matchLabelKeys"] = out["several matchLabelKeys"] || len(term.MatchLabelKeys) > 1
		}
	}
	if a := p.Spec.Affinity; a != nil {
		if n := a.NodeAffinity; n != nil && n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			out["six node-affinity terms or more"] = len(n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) >= 6
		}
		if near := a.PodAffinity; near != nil {
			terms("affinity terms", near.RequiredDuringSchedulingIgnoredDuringExecution, near.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if apart := a.PodAntiAffinity; apart != nil {
			terms("anti-affinity terms", apart.RequiredDuringSchedulingIgnoredDuringExecution, apart.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
	return out
}

// fieldsOf adds "type.field" of every field that is set in v and below, where the type is one of Kubernetes' own.
func fieldsOf(v reflect.Value, into map[feature]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fieldsOf(v.Elem(), into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fieldsOf(v.Index(i), into)
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() && !value.IsZero() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				into[feature{v.Type().Name(), name}] = true
				fieldsOf(value, into)
			}
		}
	}
}

// poolFields adds the path of everything that is set in the JSON of a pool's spec.
func poolFields(v any, path string, into map[feature]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			below := strings.TrimPrefix(path+"."+key, ".")
			into[feature{poolSection, below}] = true
			poolFields(value, below, into)
		}
	case []any:
		for _, element := range v {
			poolFields(element, path, into)
		}
	}
}

// apart are the pairs that no scenario can have, with the reason.
func apart(a, b feature) string {
	gone := func(f feature) bool { return f.name == "nodeName" || f.name == "terminating" }
	if gone(a) && b.name == "schedulingGates" || gone(b) && a.name == "schedulingGates" {
		return "a server refuses a pod that has both a node and gates"
	}
	return ""
}

// Every field that bears on placement, and every shape, is drawn together with every other one: two of pods on one pod,
// which runs if one of them says so and is pending otherwise; all others in one scenario. README.md has the result by section.
func TestEveryPairIsDrawn(t *testing.T) {
	features, sections := readFeatures(t)
	index := map[feature]int{}
	for i, f := range features {
		index[f] = i
	}
	running := func(i int) bool { return features[i].name == "nodeName" || features[i].name == "terminating" }
	counts := make([][]int, len(features))
	for i := range counts {
		counts[i] = make([]int, len(features))
	}
	for seed := range uint64(pairScenarios) {
		s := scenario.Generate(seed+1, scenario.Options{Pods: 5 + int(seed*37%196), Limits: seed%4 == 0, Quotas: true, Changing: true})
		seen := make([][]bool, len(features))
		for i := range seen {
			seen[i] = make([]bool, len(features))
		}
		around := map[feature]bool{}
		for _, p := range s.NodePools {
			poolFeatures(t, p, around)
		}
		quotaFeatures(s, around)
		surroundingsOf(s, around)
		inCluster := known(index, around)
		done := map[string]bool{}
		for _, p := range slices.Concat(s.Pods, s.Running) {
			bound := p.Spec.NodeName != ""
			if key := p.Labels["app"] + fmt.Sprint(bound, p.DeletionTimestamp != nil); done[key] {
				continue // replicas have the same fields
			} else {
				done[key] = true
			}
			set := map[feature]bool{}
			fieldsOf(reflect.ValueOf(p.Spec), set)
			for name, is := range shapesOf(p) {
				if is {
					set[feature{shapes, name}] = true
				}
			}
			onPod := known(index, set)
			for _, i := range onPod {
				for _, j := range onPod {
					seen[i][j] = seen[i][j] || bound == (running(i) || running(j))
				}
				for _, j := range inCluster {
					if bound == running(i) {
						seen[i][j], seen[j][i] = true, true
					}
				}
			}
		}
		for _, i := range inCluster {
			for _, j := range inCluster {
				seen[i][j] = true
			}
		}
		for i := range seen {
			for j, is := range seen[i] {
				if is {
					counts[i][j]++
				}
			}
		}
	}
	rarest := map[[2]string]int{}
	for i, a := range features {
		for j, b := range features[:i+1] {
			if reason := apart(a, b); reason != "" {
				assert.Zero(t, counts[i][j], "%s and %s: %s", a, b, reason)
				continue
			}
			assert.Positive(t, counts[i][j], "%s and %s are never drawn together", a, b)
			at := [2]string{a.section, b.section}
			if have, ok := rarest[at]; !ok || counts[i][j] < have {
				rarest[at] = counts[i][j]
			}
		}
	}
	golden(t, pairTable(sections, rarest))
}

func known(index map[feature]int, set map[feature]bool) []int {
	var out []int
	for f := range set {
		if i, ok := index[f]; ok {
			out = append(out, i)
		}
	}
	return out
}

func poolFeatures(t *testing.T, p *karpv1.NodePool, into map[feature]bool) {
	t.Helper()
	text, err := json.Marshal(p.Spec)
	require.NoError(t, err)
	var spec any
	require.NoError(t, json.Unmarshal(text, &spec))
	poolFields(spec, "", into)
}

// pairTable is the rarest pair of each two sections.
func pairTable(sections []string, rarest map[[2]string]int) string {
	var out strings.Builder
	out.WriteString("| rarest pair, in scenarios |")
	for i := range sections {
		fmt.Fprintf(&out, " %d |", i+1)
	}
	out.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(sections)) + "\n")
	for i, row := range sections {
		fmt.Fprintf(&out, "| %d %s |", i+1, row)
		for j, column := range sections {
			if j > i {
				out.WriteString(" |")
			} else {
				fmt.Fprintf(&out, " %d |", rarest[[2]string{row, column}])
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// golden compares the table in README.md, which stands between two comments, or writes it.
func golden(t *testing.T, table string) {
	t.Helper()
	const name, begin, end = "../README.md", "<!-- pairs: go test ./scenario -run TestEveryPairIsDrawn -update -->\n", "<!-- end of pairs -->"
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "README.md has no %s", begin)
	have, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "README.md has no %s", end)
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(before+begin+table+end+after), 0o600))
		return
	}
	assert.Equal(t, have, table, "the generator draws otherwise: run with -update")
}
