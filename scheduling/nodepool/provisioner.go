package nodepool

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/internal/nodespec"
)

// wireProvisioner is karpenter.sh/v1alpha5 as manifests have it.
type wireProvisioner struct {
	wireHead
	Spec struct {
		wireTemplateMeta
		wireNodes
		Limits struct {
			Resources corev1.ResourceList `json:"resources"`
		} `json:"limits"`
		Weight                 *int32       `json:"weight"`
		Kubelet                *wireKubelet `json:"kubeletConfiguration"`
		TTLSecondsAfterEmpty   *int64       `json:"ttlSecondsAfterEmpty"`
		TTLSecondsUntilExpired *int64       `json:"ttlSecondsUntilExpired"`
		Consolidation          struct {
			Enabled bool `json:"enabled"`
		} `json:"consolidation"`
		Provider    json.RawMessage    `json:"provider"`
		ProviderRef *nodespec.ClassRef `json:"providerRef"`
	} `json:"spec"`
}

func decodeProvisioner(n *strictjson.Node) (NodePool, []strictjson.Problem) {
	d := strictjson.Decoder{Live: true, Hints: map[string]string{
		"spec.template":                 "karpenter.sh/v1alpha5 has its fields directly below spec",
		"spec.disruption":               "karpenter.sh/v1alpha5 has spec.consolidation and spec.ttlSeconds...",
		"spec.nodeClassRef":             `did you mean "spec.providerRef"?`,
		"spec.kubelet":                  `did you mean "spec.kubeletConfiguration"?`,
		"spec.limits.cpu":               `did you mean "spec.limits.resources.cpu"?`,
		"spec.limits.memory":            `did you mean "spec.limits.resources.memory"?`,
		"spec.limits.ephemeral-storage": `did you mean "spec.limits.resources.ephemeral-storage"?`,
	}}
	var w wireProvisioner
	r := nodespec.NewReport(d.Decode(n, &w))
	s := &w.Spec
	var p NodePool
	p.meta(r, w.wireHead, s.Weight, s.Limits.Resources)
	p.node(r, "spec", s.wireTemplateMeta, s.wireNodes)
	p.Kubelet = s.Kubelet.decode()
	p.Disruption = w.disruption(r)
	p.classRef(r, s.ProviderRef)
	inline := n.Get("spec").Get("provider")
	switch {
	case inline == nil || inline.Kind == strictjson.Null:
	case inline.Kind != strictjson.Object:
		r.Add("spec.provider", "want an object, got %s", inline.Kind)
	default:
		p.Provider = s.Provider
		if s.ProviderRef != nil {
			r.Add("spec.provider", "set either provider or providerRef, not both")
		}
	}
	p.check(r, p.fields().rules)
	return p, r.Problems
}

// disruption maps the three switches of v1alpha5 to one policy.
func (w *wireProvisioner) disruption(r *nodespec.Report) Disruption {
	var d Disruption
	s := &w.Spec
	empty := seconds(r, "spec.ttlSecondsAfterEmpty", s.TTLSecondsAfterEmpty)
	switch {
	case s.Consolidation.Enabled && s.TTLSecondsAfterEmpty != nil:
		r.Add("spec.ttlSecondsAfterEmpty", "set either ttlSecondsAfterEmpty or consolidation.enabled, not both")
	case s.Consolidation.Enabled:
		d.Policy, d.ConsolidateAfter = WhenEmptyOrUnderutilized, new(time.Duration)
	case empty != nil:
		d.Policy, d.ConsolidateAfter = WhenEmpty, empty
	}
	d.ExpireAfter = seconds(r, "spec.ttlSecondsUntilExpired", s.TTLSecondsUntilExpired)
	return d
}

func seconds(r *nodespec.Report, path string, n *int64) *time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	if n == nil {
		return nil
	}
	if *n < 0 || *n > most {
		r.Add(path, "%d: want 0 to %d seconds", *n, most)
		return nil
	}
	return new(time.Duration(*n) * time.Second)
}
