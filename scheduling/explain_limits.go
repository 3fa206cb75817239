package scheduling

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// explainLimit reports whether the pool's limits leave no room for any type that holds the pod, after what the plan
// buys.
func (s *State) explainLimit(k int, n census) (Reason, bool) {
	pool := &s.p.Pools[k]
	left, nodes := slices.Clone(pool.Left), 0
	for _, b := range s.last.Bins {
		if s.p.Shapes[b.Shape].Pool == k {
			nodes++
			subtract(left, s.p.Shapes[b.Shape].Usage)
		}
	}
	if pool.NodesLeft >= 0 && nodes >= pool.NodesLeft {
		return Reason{
			Pool: pool.Name, Stage: StageLimit, Resource: string(resourceNodes),
			Detail: fmt.Sprintf("the limit of %s nodes is reached", humane(pool, resourceNodes)),
		}, true
	}
	for i, name := range pool.Limited {
		fits := slices.ContainsFunc(n.shapes, func(shape int) bool { return s.p.Shapes[shape].Usage[i] <= left[i] })
		if fits {
			continue
		}
		least := slices.MinFunc(n.shapes, func(a, b int) int { return int(min(1, max(-1, s.p.Shapes[a].Usage[i]-s.p.Shapes[b].Usage[i]))) })
		typ := s.p.InstanceType(least).Name
		need := s.p.Shapes[least].Usage[i]
		return Reason{
			Pool: pool.Name, Stage: StageLimit, Resource: string(name),
			Nearest: &Nearest{Type: typ, Short: map[string]int64{string(name): need - max(0, left[i])}},
			Detail: fmt.Sprintf("the limit of %s %s leaves %s; the smallest type that holds it, %s, counts %s", humane(pool, name), name,
				resources.Humane(name, max(0, left[i])), typ, resources.Humane(name, need)),
		}, true
	}
	if len(pool.Limited) > 1 && !slices.ContainsFunc(n.shapes, func(shape int) bool {
		for i := range left {
			if s.p.Shapes[shape].Usage[i] > left[i] {
				return false
			}
		}
		return true
	}) {
		return Reason{Pool: pool.Name, Stage: StageLimit, Resource: string(pool.Limited[0]), Detail: "no type that holds it is within all of the pool's limits at once"}, true
	}
	return Reason{}, false
}

func humane(pool *PoolRoom, name corev1.ResourceName) string {
	q := pool.Limits[name]
	return q.String()
}

// explainTopology names the constraints that involve other pods; one of them, or several together, keep it out.
func (s *State) explainTopology(class int, pool *PoolRoom) Reason {
	var parts []string
	key := ""
	for _, o := range s.p.topology.Obstacles(class) {
		if key == "" {
			key = o.Key
		}
		parts = append(parts, o.Text)
	}
	for _, p := range s.p.Classes[class].ports {
		parts = append(parts, fmt.Sprintf("host port %d/%s", p.Number, p.Protocol))
	}
	if len(parts) == 0 {
		return Reason{Pool: pool.Name, Stage: StageTopology, Detail: "nothing speaks against the pool alone; another pool's limit or a count of values decides"}
	}
	return Reason{Pool: pool.Name, Stage: StageTopology, Key: key, Detail: "other pods stand in the way: " + strings.Join(parts, ", ")}
}

// explainRooms sums up why no existing node took the pod.
func (s *State) explainRooms(c *Class) (Reason, bool) {
	if len(s.p.Rooms) == 0 {
		return Reason{}, false
	}
	var tainted, labels, full, other int
	short := map[corev1.ResourceName]int{}
	for i := range s.p.Rooms {
		r := &s.p.Rooms[i]
		lacks, _ := s.p.shortage(c, s.p.spare(c, r, s.roomLeft(i)))
		switch {
		case !c.hardOK[r.taintSet]:
			tainted++
		case !c.Required.Compatible(r.Labels, requirements.Keys{}):
			labels++
		case lacks != nil:
			full++
			for name := range lacks {
				short[name]++
			}
		default:
			other++
		}
	}
	var parts []string
	part := func(n int, format string, args ...any) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d ", n)+fmt.Sprintf(format, args...))
		}
	}
	part(tainted, "tainted")
	part(labels, "without the labels it asks")
	var lacking []string
	for _, name := range s.p.Resources {
		if short[name] > 0 {
			lacking = append(lacking, string(name))
		}
	}
	part(full, "short of %s", strings.Join(lacking, ", "))
	part(other, "shut by other pods' constraints or by node limits")
	stage := StageResource
	switch {
	case full == 0 && other > 0:
		stage = StageTopology
	case full == 0 && labels > 0:
		stage = StageRequirement
	case full == 0:
		stage = StageTaint
	}
	return Reason{Stage: stage, Detail: fmt.Sprintf("existing nodes (%d): %s", len(s.p.Rooms), strings.Join(parts, ", "))}, true
}

// roomLeft is what a room has free after the last outcome.
func (s *State) roomLeft(room int) []int64 {
	left := slices.Clone(s.p.Rooms[room].Free)
	if room < len(s.last.Rooms) {
		for _, sh := range s.last.Rooms[room] {
			for range sh.Count {
				subtract(left, s.items[sh.Item].Requests)
			}
		}
	}
	return left
}
