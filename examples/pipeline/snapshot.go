package pipeline

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/admission"
	"github.com/joinery-sdk/joinery/scheduling/volume"
)

// Snapshot is what manifests say of a cluster, with what the market offers its pools, as scheduling reads it; and notes on
// the settings of the pools.
func Snapshot(m *manifests.Snapshot, market *Market) (scheduling.Snapshot, []string, error) {
	pools, notes, err := market.Pools(m)
	if err != nil {
		return scheduling.Snapshot{}, nil, err
	}
	pods := make([]*corev1.Pod, 0, m.CountPods())
	for p := range m.AllPods() {
		pods = append(pods, p)
	}
	return scheduling.Snapshot{
		Pods: pods, Nodes: m.Nodes, Pools: pools, DaemonSets: m.DaemonSets, Namespaces: m.Namespaces,
		Volumes: volume.Objects{
			Persistent: m.PersistentVolumes, Claims: m.PersistentVolumeClaims, Classes: m.StorageClasses, CSINodes: m.CSINodes,
		},
		Admission: admission.NewCluster(m.PriorityClasses, m.RuntimeClasses, m.LimitRanges),
	}, notes, nil
}

// Offered is the catalogue of a cloud that sells what the pools of a snapshot can buy: each type once, as the first pool
// that can have it sees it.
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
