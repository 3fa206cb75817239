package nodepool

import (
	"time"

	"github.com/joinery-sdk/joinery/requirements"
)

// New returns a pool with the requirements and the defaults of the API karpenter.sh/v1: nodes may
// be consolidated without delay, a tenth of them at a time, and expire after 30 days. A [NodePool]
// that is made without New or [Decode] has none of these defaults, and never gives a node back. If
// the requirements contradict each other, the pool is valid but buys nothing.
func New(name string, rs ...requirements.Requirement) NodePool {
	set, _ := requirements.Of(rs...) // impossible if they contradict each other, and then no type meets it
	return NodePool{
		Name: name, APIVersion: V1, Kind: "NodePool", Requirements: set,
		Disruption: Disruption{
			Policy: WhenEmptyOrUnderutilized, ConsolidateAfter: new(time.Duration), ExpireAfter: new(month),
			Budgets: []Budget{{Nodes: 10, Percent: true}},
		},
	}
}
