package nodepool

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/internal/nodespec"
)

// wireV1 is karpenter.sh/v1 as manifests have it.
type wireV1 struct {
	wireHead
	Spec struct {
		Template struct {
			Metadata wireTemplateMeta `json:"metadata"`
			Spec     struct {
				wireNodes
				NodeClassRef           *nodespec.ClassRef `json:"nodeClassRef"`
				TerminationGracePeriod string             `json:"terminationGracePeriod"`
				ExpireAfter            string             `json:"expireAfter"`
			} `json:"spec"`
		} `json:"template"`
		Disruption struct {
			ConsolidateAfter    string        `json:"consolidateAfter"`
			ConsolidationPolicy string        `json:"consolidationPolicy"`
			Budgets             *[]wireBudget `json:"budgets"`
		} `json:"disruption"`
		Limits   corev1.ResourceList `json:"limits"`
		Weight   *int32              `json:"weight"`
		Replicas *int64              `json:"replicas"`
	} `json:"spec"`
}

// wireV1Beta1 is karpenter.sh/v1beta1 as manifests have it.
type wireV1Beta1 struct {
	wireHead
	Spec struct {
		Template struct {
			Metadata wireTemplateMeta `json:"metadata"`
			Spec     struct {
				wireNodes
				Resources struct {
					Requests corev1.ResourceList `json:"requests"`
				} `json:"resources"`
				Kubelet                *wireKubelet       `json:"kubelet"`
				NodeClassRef           *nodespec.ClassRef `json:"nodeClassRef"`
				TerminationGracePeriod string             `json:"terminationGracePeriod"` // its last releases have it
			} `json:"spec"`
		} `json:"template"`
		Disruption struct {
			ConsolidateAfter     string        `json:"consolidateAfter"`
			ConsolidationPolicy  string        `json:"consolidationPolicy"`
			UtilizationThreshold *int          `json:"utilizationThreshold"`
			ExpireAfter          string        `json:"expireAfter"`
			Budgets              *[]wireBudget `json:"budgets"`
		} `json:"disruption"`
		Limits corev1.ResourceList `json:"limits"`
		Weight *int32              `json:"weight"`
	} `json:"spec"`
}

// month is the age at which nodes expire unless the manifest says otherwise, since v1beta1.
const month = 720 * time.Hour

// movedHints returns the new places of fields of v1alpha5.
func movedHints(version string) map[string]string {
	hints := map[string]string{
		"spec.ttlSecondsAfterEmpty":      `use spec.disruption.consolidateAfter, with consolidationPolicy "WhenEmpty"`,
		"spec.consolidation":             "use spec.disruption.consolidationPolicy",
		"spec.provider":                  "use spec.template.spec.nodeClassRef",
		"spec.providerRef":               "use spec.template.spec.nodeClassRef",
		"spec.labels":                    `did you mean "spec.template.metadata.labels"?`,
		"spec.annotations":               `did you mean "spec.template.metadata.annotations"?`,
		"spec.template.labels":           `did you mean "spec.template.metadata.labels"?`,
		"spec.template.annotations":      `did you mean "spec.template.metadata.annotations"?`,
		"spec.template.spec.labels":      `did you mean "spec.template.metadata.labels"?`,
		"spec.ttlSecondsUntilExpired":    "use spec.disruption.expireAfter",
		"spec.kubeletConfiguration":      "use spec.template.spec.kubelet",
		"spec.template.spec.providerRef": "use spec.template.spec.nodeClassRef",
	}
	if version == V1 {
		kubelet := "since karpenter.sh/v1 the node class has the kubelet's configuration"
		hints["spec.ttlSecondsUntilExpired"] = "use spec.template.spec.expireAfter"
		hints["spec.disruption.expireAfter"] = "since karpenter.sh/v1 it is spec.template.spec.expireAfter"
		hints["spec.kubeletConfiguration"] = kubelet
		hints["spec.template.spec.kubelet"] = kubelet
	} else {
		hints["spec.template.spec.expireAfter"] = "before karpenter.sh/v1 it is spec.disruption.expireAfter"
		hints["spec.replicas"] = "static pools exist since karpenter.sh/v1"
	}
	return hints
}

// explain replaces two errors of later versions: that of limits in the form of v1alpha5, which the
// new error names, and that of durations that are numbers, because quotes would not mend them.
func explain(problems []strictjson.Problem) []strictjson.Problem {
	for i, p := range problems {
		if p.Path == "spec.limits.resources" {
			problems[i].Detail = "since karpenter.sh/v1beta1 the resources are directly below limits"
		}
		if name := p.Path[strings.LastIndexByte(p.Path, '.')+1:]; slices.Contains([]string{"expireAfter", "terminationGracePeriod", "consolidateAfter", "duration"}, name) {
			problems[i].Detail = strings.Replace(p.Detail, "(put the text in quotes)", "(a duration has a unit, as in 5m or 1h30m)", 1)
		}
	}
	return problems
}

func decodeV1(n *strictjson.Node) (NodePool, []strictjson.Problem) {
	d := strictjson.Decoder{Live: true, Hints: movedHints(V1)}
	var w wireV1
	r := nodespec.NewReport(explain(d.Decode(n, &w)))
	t := &w.Spec.Template
	p := NodePool{Replicas: w.Spec.Replicas}
	p.meta(r, w.wireHead, w.Spec.Weight, w.Spec.Limits)
	p.node(r, "spec.template.spec", t.Metadata, t.Spec.wireNodes)
	p.TerminationGracePeriod = r.Duration("spec.template.spec.terminationGracePeriod", t.Spec.TerminationGracePeriod, false, nil)
	p.classRef(r, t.Spec.NodeClassRef)
	p.Disruption.ExpireAfter = r.Duration("spec.template.spec.expireAfter", t.Spec.ExpireAfter, true, new(month))
	p.Disruption.ConsolidateAfter = r.Duration("spec.disruption.consolidateAfter", w.Spec.Disruption.ConsolidateAfter, true, new(time.Duration))
	p.Disruption.Policy = WhenEmptyOrUnderutilized
	if policy := w.Spec.Disruption.ConsolidationPolicy; policy != "" {
		p.Disruption.Policy = Policy(policy)
	}
	p.Disruption.budgets(r, w.Spec.Disruption.Budgets)
	p.check(r, p.fields().rules)
	return p, r.Problems
}

func decodeV1Beta1(n *strictjson.Node) (NodePool, []strictjson.Problem) {
	d := strictjson.Decoder{Live: true, Hints: movedHints(V1Beta1)}
	var w wireV1Beta1
	r := nodespec.NewReport(explain(d.Decode(n, &w)))
	t := &w.Spec.Template
	var p NodePool
	p.meta(r, w.wireHead, w.Spec.Weight, w.Spec.Limits)
	p.node(r, "spec.template.spec", t.Metadata, t.Spec.wireNodes)
	if len(t.Spec.Resources.Requests) > 0 {
		r.Add("spec.template.spec.resources", "only a NodeClaim requests resources, a pool does not")
	}
	p.Kubelet = t.Spec.Kubelet.decode()
	p.TerminationGracePeriod = r.Duration("spec.template.spec.terminationGracePeriod", t.Spec.TerminationGracePeriod, false, nil)
	p.classRef(r, t.Spec.NodeClassRef)
	const below = "spec.disruption"
	nodespec.Range(r, below+".utilizationThreshold", w.Spec.Disruption.UtilizationThreshold, 1, 100)
	p.Disruption.ExpireAfter = r.Duration(below+".expireAfter", w.Spec.Disruption.ExpireAfter, true, new(month))
	after := w.Spec.Disruption.ConsolidateAfter
	p.Disruption.ConsolidateAfter = r.Duration(below+".consolidateAfter", after, true, new(time.Duration))
	const underutilized = "WhenUnderutilized"
	switch policy := w.Spec.Disruption.ConsolidationPolicy; policy {
	case string(WhenEmpty):
		p.Disruption.Policy = WhenEmpty
		if after == "" {
			r.Add(below+".consolidateAfter", "consolidationPolicy %q needs it", policy)
		}
	case "", underutilized:
		p.Disruption.Policy = WhenEmptyOrUnderutilized
		if after != "" && after != nodespec.Never {
			r.Add(below+".consolidateAfter", "before karpenter.sh/v1 it is valid only with consolidationPolicy %q", WhenEmpty)
		}
	default:
		r.OneOf(below+".consolidationPolicy", policy, string(WhenEmpty), underutilized)
	}
	p.Disruption.budgets(r, w.Spec.Disruption.Budgets)
	p.check(r, p.fields().rules)
	return p, r.Problems
}
