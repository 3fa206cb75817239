package replay_test

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// Labels of domains beside those of the scenario's nodes.
const (
	labelRack           = "example.com/server-rack"
	labelPlacementGroup = "example.com/placement-group"
)

// grouped is the scenario of a seed, with 5 to 44 pods unless the flag says another number, with more domains and with members that have ended: each offering is in two racks of its zone and in a placement
// group, nodes are in one of each, and some of the pods that run have succeeded or failed.
func grouped(seed uint64) scenario.Scenario {
	pods := *size
	if pods == 0 {
		pods = 5 + int(seed*37%40)
	}
	s := scenario.Generate(seed, scenario.Options{Pods: pods, Density: *density, NoVolumes: *noVolumes, Limits: seed%4 == 0, Changing: true})
	r := rand.New(rand.NewPCG(seed, 48))
	in := func(key, value string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
	}
	s.Catalogue = slices.Clone(s.Catalogue)
	for i := range s.Catalogue {
		var offerings []scenario.Offering
		for _, o := range s.Catalogue[i].Offerings {
			zone := ""
			for _, q := range o.Requirements {
				if q.Key == corev1.LabelTopologyZone {
					zone = q.Values[0]
				}
			}
			for rack := range 2 {
				twin := o
				twin.Price *= 1 + 0.1*float64(rack)
				twin.Requirements = append(slices.Clone(o.Requirements), in(labelRack, fmt.Sprint("rack-", zone, "-", rack)), in(labelPlacementGroup, fmt.Sprint("pg-", r.IntN(2))))
				offerings = append(offerings, twin)
			}
		}
		s.Catalogue[i].Offerings = offerings
	}
	label := func(nodes []*corev1.Node) []*corev1.Node {
		out := slices.Clone(nodes)
		for i, n := range out {
			out[i] = n.DeepCopy()
			h := fnv.New32a()
			_, _ = h.Write([]byte(n.Name))
			out[i].Labels[labelRack] = fmt.Sprint("rack-", n.Labels[corev1.LabelTopologyZone], "-", h.Sum32()%2)
			out[i].Labels[labelPlacementGroup] = fmt.Sprint("pg-", h.Sum32()/2%2)
		}
		return out
	}
	s.Nodes, s.Ready = label(s.Nodes), label(s.Ready)
	s.Running = slices.Clone(s.Running)
	for i, p := range s.Running {
		if ends := r.IntN(12); ends < 2 && len(p.OwnerReferences) > 0 && p.OwnerReferences[0].Kind != "DaemonSet" {
			s.Running[i] = p.DeepCopy()
			s.Running[i].Status.Phase = []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed}[ends]
		}
	}
	return s
}

// groupsOf makes groups of one to five apps of a scenario, those with running pods first in half of them, some with pods that they can do without, and
// some in one or several domains.
func groupsOf(s scenario.Scenario) []gang.Group {
	r := rand.New(rand.NewPCG(s.Seed, 47))
	var apps []string
	size, runs := map[string]int{}, map[string]int{}
	for _, p := range s.Running {
		runs[p.Labels["app"]]++
	}
	for _, p := range s.Pods {
		app := p.Labels["app"]
		if size[app]++; size[app] == 1 && app != "" {
			apps = append(apps, app)
		}
	}
	slices.Sort(apps)
	r.Shuffle(len(apps), func(i, j int) { apps[i], apps[j] = apps[j], apps[i] })
	if r.IntN(2) == 0 {
		slices.SortStableFunc(apps, func(x, y string) int { return cmp.Compare(runs[y], runs[x]) })
	}
	var out []gang.Group
	for _, app := range apps[:min(len(apps), 1+r.IntN(5))] {
		g := gang.Group{Name: app, Member: func(p *corev1.Pod) bool { return p.Labels["app"] == app }}
		if r.IntN(2) == 0 {
			g.Minimum = 1 + r.IntN(size[app]+runs[app])
		}
		g.Key = []string{
			"", "", "", corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelHostname, "karpenter.sh/capacity-type", corev1.LabelInstanceTypeStable,
			labelRack, labelPlacementGroup, instancetypes.LabelReservationID,
		}[r.IntN(11)]
		if g.Key != "" && r.IntN(3) == 0 {
			g.Values = 1 + r.IntN(3)
		}
		out = append(out, g)
	}
	return out
}

// reservation is machines that are paid for already: one count for all pools that may use them.
type reservation struct {
	id    string
	count int
}

// reserve makes some offerings of a snapshot few, and adds reservations of capacity beside others. Every pool that buys the same machines in the same
// place may use the same reservation.
func reserve(s *scheduling.Snapshot, seed uint64) {
	r, known := rand.New(rand.NewPCG(seed, 49)), map[string]reservation{}
	for i := range s.Pools {
		s.Pools[i].Types = slices.Clone(s.Pools[i].Types)
		for k := range s.Pools[i].Types {
			t := &s.Pools[i].Types[k]
			t.Offerings = slices.Clone(t.Offerings)
			for j := range t.Offerings {
				o := &t.Offerings[j]
				place := fmt.Sprint(t.Name, " ", o.Requirements)
				reserved, again := known[place]
				switch draw := r.IntN(6); {
				case again:
				case draw == 0:
					o.ReservationCount = 1 + r.IntN(3)
				case draw == 1:
					reserved = reservation{fmt.Sprintf("cr-%d", len(known)+1), 1 + r.IntN(3)}
					known[place] = reserved
				}
				if reserved.count > 0 {
					zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
					rack, _ := o.Requirements.Get(labelRack).Single()
					group, _ := o.Requirements.Get(labelPlacementGroup).Single()
					capacityType, _ := o.Requirements.Get(instancetypes.LabelCapacityType).Single() // the made-up cloud knows no other
					t.Offerings = append(t.Offerings, instancetypes.Offering{
						Price: o.Price / 10, Available: o.Available, ReservationCount: reserved.count, Requirements: requirements.MustOf(
							requirements.In(corev1.LabelTopologyZone, zone), requirements.In(labelRack, rack), requirements.In(labelPlacementGroup, group),
							requirements.In(instancetypes.LabelCapacityType, capacityType),
							requirements.In(instancetypes.LabelReservationID, reserved.id),
						),
					})
				}
			}
		}
	}
}

// tally counts the groups of a plan.
type tally struct{ whole, waiting, stays, moves, ended, several, reserved, shared int }

func (x tally) plus(y tally) tally {
	return tally{
		x.whole + y.whole, x.waiting + y.waiting, x.stays + y.stays, x.moves + y.moves, x.ended + y.ended, x.several + y.several,
		x.reserved + y.reserved, x.shared + y.shared,
	}
}

// No group is there in part, groups with a key are in no more domains than they may, kube-scheduler accepts what is placed, and its own plugin for
// gangs lets it run. Members on leaving nodes do not run any more when the plan is carried out, unless no drain
// evicts them.
func TestGangsAreAcceptedAndWhole(t *testing.T) {
	n := *scenarios / 10
	outcomes, tallies := make([]outcome, n), make([]tally, n)
	inParallel(n, func(i int) {
		s := grouped(*from + uint64(i))
		groups := groupsOf(s)
		var made *plan.Plan
		outcomes[i] = judgeOf(t.Context(), s, func(ctx context.Context, s scenario.Scenario) (*plan.Plan, error) {
			snapshot, err := replay.Snapshot(s)
			if err == nil {
				reserve(&snapshot, s.Seed)
				made, err = plan.Make(ctx, snapshot, &plan.Options{Groups: groups})
			}
			return made, err
		})
		if made == nil {
			return
		}
		assert.NoError(t, letRun(t.Context(), made, groups), "seed %d", s.Seed)
		used, counts, pools := reservations(made)
		for id, nodes := range used {
			assert.LessOrEqual(t, nodes, counts[id], "seed %d: reservation %s", s.Seed, id)
			tallies[i].reserved += nodes
			if pools[id] > 1 {
				tallies[i].shared += nodes
			}
		}
		for _, g := range groups {
			bound, stays, all := 0, 0, 0
			for _, b := range made.Bindings() {
				if g.Member(b.Pod) {
					bound++
				}
			}
			for _, p := range made.Problem.Snapshot().Pods {
				if !g.Member(p) {
					continue
				}
				switch standingOf(made, p) {
				case ended:
					tallies[i].ended++
				case remains:
					all, stays = all+1, stays+1
				case moves:
					tallies[i].moves++
					all++
				case pends:
					all++
				}
			}
			tallies[i].stays += stays
			need := g.Minimum
			if need == 0 {
				need = all
			}
			if g.Key != "" && bound > 0 {
				fresh, old := domains(made, g)
				most := max(1, g.Values, len(old))
				maps.Copy(fresh, old)
				assert.LessOrEqual(t, len(fresh), most, "seed %d: group %s by %s", s.Seed, g.Name, g.Key)
				if len(fresh) > 1 {
					tallies[i].several++
				}
			}
			switch {
			case bound == 0 && stays < need:
				tallies[i].waiting++
			default:
				tallies[i].whole++
				assert.GreaterOrEqual(t, bound+stays, need, "seed %d: group %s", s.Seed, g.Name)
			}
		}
	})
	placed, sum := 0, tally{}
	for i := range outcomes {
		placed += outcomes[i].placed
		sum = sum.plus(tallies[i])
		assert.False(t, outcomes[i].refused(), "%s\n%v\n%s", outcomes[i].scenario, outcomes[i].err, outcomes[i].verdict)
	}
	require.Positive(t, sum.whole, "or the test is hollow")
	fmt.Printf("%d scenarios, %d pods placed, %d groups whole or running, %d waiting, %d in several domains; of their members %d run, %d move and %d have ended; %d nodes of reservations, %d of them that several pools may use\n",
		n, placed, sum.whole, sum.waiting, sum.several, sum.stays, sum.moves, sum.ended, sum.reserved, sum.shared)
}

// reservations are the nodes that a plan buys of each reservation, how many there are, and how many pools offer it.
func reservations(p *plan.Plan) (used, counts, pools map[string]int) {
	used, counts, pools = map[string]int{}, map[string]int{}, map[string]int{}
	for _, pool := range p.Problem.Snapshot().Pools {
		offered := map[string]bool{}
		for _, t := range pool.Types {
			for _, o := range t.Offerings {
				if id, ok := o.Requirements.Get(instancetypes.LabelReservationID).Single(); ok {
					counts[id], offered[id] = o.ReservationCount, true
				}
			}
		}
		for id := range offered {
			pools[id]++
		}
	}
	for _, n := range p.NewNodes() {
		if id, ok := n.Labels[instancetypes.LabelReservationID]; ok {
			used[id]++
		}
	}
	return used, counts, pools
}

// state is what a member of a group does when a plan is carried out.
type state int

const (
	ended   state = iota // it has succeeded or failed, or is being deleted, or ends with its node
	remains              // it runs on
	moves                // its node leaves, and its controller makes it anew
	pends
)

// standingOf is the state of a pod.
func standingOf(p *plan.Plan, pod *corev1.Pod) state {
	_, placeable := p.Problem.Class(pod.Namespace, pod.Name)
	there := slices.ContainsFunc(p.Problem.Existing, func(n scheduling.ExistingNode) bool { return n.Node.Name == pod.Spec.NodeName })
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return ended
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil:
		if slices.ContainsFunc(p.Problem.Ignored, func(x scheduling.Ignored) bool { return x.Pod == pod && strings.HasPrefix(x.Why, "nominated") }) {
			return remains
		}
		return pends
	case pod.Spec.NodeName == "":
		return ended
	case placeable:
		return moves
	case there && pod.DeletionTimestamp == nil:
		return remains
	case p.Problem.Snapshot().Staying[pod.Namespace+"/"+pod.Name] != "": // no drain evicts it from its leaving node
		return remains
	}
	return ended
}

// domains are the values that nodes of a group have of its key: those of its placed pods, and those of its running ones.
func domains(p *plan.Plan, g gang.Group) (fresh, old map[string]bool) {
	labels := map[string]map[string]string{}
	for _, n := range p.Problem.Snapshot().Nodes { // also of those that leave, where pods may stay
		labels[n.Name] = n.Labels
	}
	for _, n := range p.Problem.Existing {
		labels[n.Node.Name] = n.Labels.Labels()
	}
	for _, n := range p.NewNodes() {
		own := map[string]string{corev1.LabelHostname: n.Name}
		maps.Copy(own, n.Labels)
		labels[n.Name] = own
	}
	fresh, old = map[string]bool{}, map[string]bool{}
	add := func(to map[string]bool, node string) {
		if value, ok := labels[node][g.Key]; ok { // a node without the label is in no domain, as for affinity between pods
			to[value] = true
		}
	}
	for _, b := range p.Bindings() {
		if g.Member(b.Pod) {
			add(fresh, b.Node)
		}
	}
	for _, pod := range p.Problem.Snapshot().Pods {
		if g.Member(pod) && standingOf(p, pod) == remains {
			add(old, pod.Spec.NodeName)
		}
	}
	return fresh, old
}
