package scheduling

import (
	"fmt"
	"slices"
)

// Stage is the first test that a pod fails on its way to a node.
type Stage string

// The stages, in the order in which they are tested.
const (
	StagePod         Stage = "pod"         // the pod itself can't run anywhere: a volume claim, a rule of the caller's
	StageTaint       Stage = "taint"       // a taint is not tolerated
	StageRequirement Stage = "requirement" // labels do not meet what the pod asks
	StageResource    Stage = "resource"    // no type is large enough or has the resource
	StageOffering    Stage = "offering"    // what fits is not to be had
	StageLimit       Stage = "limit"       // the pool may not grow that far
	StageTopology    Stage = "topology"    // other pods stand in the way: spread, affinity, anti-affinity, ports
)

// Depth is how far a pod came that failed at the stage, from 0.
func (s Stage) Depth() int {
	return slices.Index([]Stage{StagePod, StageTaint, StageRequirement, StageResource, StageOffering, StageLimit, StageTopology}, s)
}

// Reason says why one pool, or none in particular, cannot hold a pod. It is data; [Reason.String] makes the text.
type Reason struct {
	// Pool is the name of the pool; empty where the reason lies with the pod or with other pods.
	Pool  string
	Stage Stage
	// Key is the label key, and Resource the resource, that the stage failed on, where there is one.
	Key      string
	Resource string
	// Detail says it in words, without the pool.
	Detail  string
	Nearest *Nearest
}

// Nearest is the type that came closest to holding a pod.
type Nearest struct {
	Type string
	// Short is what it lacks by resource, in counts of package resources; nil if it is large enough.
	Short map[string]int64
	// ShutOutBy is what keeps a type that is large enough away, such as a requirement of the pool.
	ShutOutBy string
}

// String is the reason in one line.
func (r Reason) String() string {
	if r.Pool == "" {
		return r.Detail
	}
	return fmt.Sprintf("pool %q: %s", r.Pool, r.Detail)
}
