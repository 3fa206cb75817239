package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

// Snapshot returns the cluster of the manifests, with what the market offers its pools, in the form
// that scheduling reads. It also returns notes on the settings of the pools.
func Snapshot(m *manifests.Snapshot, market *Market) (scheduling.Snapshot, []string, error) {
	pools, notes, err := market.Pools(m)
	if err != nil {
		return scheduling.Snapshot{}, nil, err
	}
	own := make([]*corev1.Pod, 0, m.CountPods())
	for p := range m.AllPods() {
		own = append(own, p)
	}
	pods, given := m.Defaults.Pods(own), 0
	for i := range pods {
		if pods[i] != own[i] {
			given++
		}
	}
	if len(m.Defaults.Constraints) > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d pods have the default topology spread: those without one of their own that a Service or a controller selects", given, len(pods)))
	}
	claims := make([]scheduling.NodeClaim, 0, len(m.NodeClaims))
	for i := range m.NodeClaims {
		claims = append(claims, NodeClaim(&m.NodeClaims[i]))
	}
	s := scheduling.Snapshot{
		Pods: pods, Nodes: m.Nodes, NodeClaims: claims, Pools: pools, DaemonSets: m.DaemonSets, Namespaces: m.Namespaces,
		PersistentVolumes: m.PersistentVolumes, PersistentVolumeClaims: m.PersistentVolumeClaims, StorageClasses: m.StorageClasses, CSINodes: m.CSINodes,
		VolumeAttachments: m.VolumeAttachments, CSIDrivers: m.CSIDrivers, CSIStorageCapacities: m.CSIStorageCapacities,
		PriorityClasses: m.PriorityClasses, RuntimeClasses: m.RuntimeClasses, LimitRanges: m.LimitRanges, Quotas: m.Quotas,
	}
	s.Staying = Staying(s, m.PodDisruptionBudgets, time.Time{})
	return s, notes, nil
}

// Leaving returns the names of the nodes that are marked for deletion, are being deleted, or have a
// claim that is being deleted.
func Leaving(s scheduling.Snapshot) map[string]bool {
	deleting := map[string]bool{} // by name and by provider id
	for i := range s.NodeClaims {
		if c := &s.NodeClaims[i]; c.Deleting {
			deleting[cmp.Or(c.NodeName, c.Name)], deleting[c.ProviderID] = true, true
		}
	}
	out := map[string]bool{}
	for _, n := range s.Nodes {
		x := eligibility.Node{Node: n, Claim: eligibility.Claim{Deleting: deleting[n.Name] || n.Spec.ProviderID != "" && deleting[n.Spec.ProviderID]}}
		if x.Leaving() {
			out[n.Name] = true
		}
	}
	return out
}

// Staying says which pods of leaving nodes no drain evicts at the moment, and why, see
// [scheduling.Snapshot]. A PodDisruptionBudget counts only if waiting does not help. With the zero
// time, as for files, annotations that protect for a duration count as expired.
func Staying(s scheduling.Snapshot, budgets []*policyv1.PodDisruptionBudget, now time.Time) map[string]string {
	leaving, all, out := Leaving(s), eviction.NewBudgets(budgets), map[string]string{}
	for _, p := range s.Pods {
		if !leaving[p.Spec.NodeName] || p.DeletionTimestamp != nil {
			continue
		}
		why := eviction.Protected(p, now)
		if _, err := time.ParseDuration(strings.TrimPrefix(why, eviction.DoNotDisrupt+"=")); now.IsZero() && err == nil {
			why = ""
		}
		if refused := all.Check(p); why == "" && refused.Always {
			why = refused.Text
		}
		if why != "" {
			out[eviction.Name(p)] = why
		}
	}
	return out
}

// NodeClaim converts a NodeClaim or Machine from a manifest or an API server into the form that
// scheduling uses.
func NodeClaim(c *nodeclaim.NodeClaim) scheduling.NodeClaim {
	labels := c.Requirements.Labels()
	maps.Copy(labels, c.Metadata.Labels)
	return scheduling.NodeClaim{
		Name: c.Name, NodeName: c.NodeName, ProviderID: c.ProviderID, Labels: labels, Taints: c.Taints, StartupTaints: c.StartupTaints,
		Capacity: c.Capacity, Allocatable: c.Allocatable, Initialized: c.Is(nodeclaim.Initialized), Deleting: c.Metadata.DeletionTimestamp != nil,
	}
}

// Offered returns the catalogue of a cloud that sells what the pools of a snapshot can buy. It has
// each type once, as the first pool that can have it sees it.
func Offered(s scheduling.Snapshot) []instancetypes.InstanceType {
	var out []instancetypes.InstanceType
	at := map[string]int{}
	for _, pool := range s.Pools {
		for _, t := range pool.Types {
			i, ok := at[t.Name]
			switch {
			case !ok:
				at[t.Name] = len(out)
				out = append(out, t)
			case !sold(out[i]) && sold(t):
				out[i] = t
			}
		}
	}
	return out
}

func sold(t instancetypes.InstanceType) bool {
	return slices.ContainsFunc(t.Offerings, func(o instancetypes.Offering) bool { return o.Available })
}
