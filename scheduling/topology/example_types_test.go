package topology_test

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology"
)

// A class is what pending pods have in common: one of them, how many there are, what each takes, and where it may go.
func ExampleClass() {
	anywhere := requirements.AnyOf(requirements.Set{})
	cache := topology.Class{
		Pod:   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache-0", Labels: map[string]string{"app": "cache"}}},
		Count: 3, Requests: []int64{500, 1 << 30}, Asked: anywhere, Required: anywhere,
	}
	p, err := topology.New(topology.Input{Classes: []topology.Class{cache}})
	if err != nil {
		fmt.Println(err)
		return
	}
	shape := topology.Shape{Room: []int64{4000, 16 << 30}, Offerings: []topology.Offering{{Labels: requirements.MustParse(zone + "=zone-a"), Price: 0.2}}}
	for _, lot := range p.WithShapes(slices.Values([]topology.Shape{shape})).Start().Lots {
		fmt.Println(lot.Count, "pods of", lot.Requests, "where", lot.Required)
	}
	// Output: 3 pods of [500 1073741824] where anything
}

// Which classes are wrong, and where in the manifest: programs read Classes, people the text.
func ExampleInvalidError() {
	wrong := class("web", 2, spread(zone, "web", func(t *corev1.TopologySpreadConstraint) {
		t.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Is"}}}
	}))
	_, err := topology.New(topology.Input{Classes: []topology.Class{class("db", 1), wrong}})
	if invalid, ok := errors.AsType[*topology.InvalidError](err); ok {
		line := func(e topology.ClassError) string { return fmt.Sprintf("class %d: %s", e.Class, e.Err) }
		for _, e := range invalid.Classes {
			fmt.Println(line(e))
		}
	}
	// Output: class 1: spec.topologySpreadConstraints[0].labelSelector: "Is" is not a valid label selector operator
}

// The packer has no room for two of the pods in zone-a. Settling again with that as a fact sends them elsewhere, as far as
// the spread allows.
func ExampleFacts() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("web", 5, spread(zone, "web", func(t *corev1.TopologySpreadConstraint) { t.MaxSkew = 5 }))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	p = p.WithShapes(slices.Values([]topology.Shape{inZones(8, "zone-a"), inZones(9, "zone-b")}))
	var facts topology.Facts // nothing is known at first
	st := p.Settle(facts)
	fmt.Println(placed(st))
	facts, news := st.Learn(func(part, domain int) int {
		if st.Parts[part].Domains[domain].String() == "zone-a" {
			return 2
		}
		return 0
	})
	fmt.Println(news, placed(p.Settle(facts)))
	// Output:
	// [0 in "zone-a": 3 0 in "zone-b": 2]
	// true [0 in "zone-a": 1 0 in "zone-b": 4]
}

// A node that exists is filled before anything is bought. Its room counts, and so do the pods that run there.
func ExampleNode() {
	nodes := []topology.Node{{
		Labels: requirements.MustParse(zone + "=zone-a, " + host + "=node-a"), Free: []int64{5, 5},
		Running: []*corev1.Pod{class("web", 1).Pod},
	}}
	p, err := topology.New(topology.Input{Nodes: nodes, Classes: []topology.Class{class("web", 3, spread(zone, "web"))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(placed(p.WithShapes(slices.Values([]topology.Shape{inZones(4, "zone-a", "zone-b")})).Start()))
	// Output: [0 in "zone-a": 1 0 in "zone-b": 2]
}

// A shape that can be bought in two zones at two prices: where nothing else decides, the price does.
func ExampleOffering() {
	medium := topology.Shape{Labels: requirements.MustParse("size=medium"), Room: []int64{4, 4}, Offerings: []topology.Offering{
		{Labels: requirements.MustParse(zone + "=zone-a"), Price: 0.24},
		{Labels: requirements.MustParse(zone + "=zone-b"), Price: 0.20},
	}}
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("web", 2), class("cache", 1, near(zone, "web"))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(placed(p.WithShapes(slices.Values([]topology.Shape{medium})).Start()))
	// Output: [0 in "zone-b": 2 1 in "zone-b": 1]
}

// What may keep pods out although nodes suit them, for people who ask why.
func ExampleObstacle() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("web", 1, spread(zone, "web"), away(host, "db"))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range p.Obstacles(0) {
		fmt.Printf("%s: %s\n", o.Key, o.Text)
	}
	// Output:
	// topology.kubernetes.io/zone: spread of app=web over topology.kubernetes.io/zone with skew 1
	// kubernetes.io/hostname: anti-affinity to app=db by kubernetes.io/hostname
}

// Soft constraints in the order in which they are given up: spreads before the affinity of nodes.
func ExamplePreference() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("web", 1, spread(zone, "web", soft), func(c *topology.Class) {
		c.Preferred = []requirements.Preference{{Weight: 10, Nodes: requirements.MustParse("disk in (ssd)")}}
	})}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, pref := range p.Preferences(0) {
		fmt.Printf("%s, weight %d: %s (a spread: %t)\n", pref.Kind, pref.Weight, pref.Text, pref.Kind == topology.PreferSpread)
	}
	// Output:
	// ScheduleAnyway spread, weight 0: spread over topology.kubernetes.io/zone with skew 1 (a spread: true)
	// preferred node affinity, weight 10: disk in (ssd) (a spread: false)
}

// A server that shares its node with no other server, and a cache that wants to be beside it: the limit keeps servers apart,
// and server and cache are one lot of two slots.
func ExampleLot() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{
		class("web", 1, away(host, "web")), class("cache", 1, near(host, "web")),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	st := p.WithShapes(slices.Values([]topology.Shape{inZones(4, "zone-a")})).Start()
	for _, lot := range st.Lots {
		fmt.Println(lot.Count, "of", lot.Requests, "together")
		for _, slot := range lot.Slots {
			fmt.Println("  class", st.Parts[slot.Part].Class, "x", slot.Count)
		}
		for _, limit := range lot.Limits {
			fmt.Printf("  at most %d with %q\n", limit.Max, limit.Tag)
		}
	}
	// Output:
	// 1 of [2 2] together
	//   class 0 x 1
	//   class 1 x 1
	//   at most 1 with "pods kubernetes.io/hostname|shop|app=web|"
}

// Slots point to parts and domains: three caches that share a node with a server are one slot, the server is another.
func ExampleSlot() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("web", 1), class("cache", 3, near(host, "web"))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	st := p.WithShapes(slices.Values([]topology.Shape{inZones(4, "zone-a")})).Start()
	describe := func(s topology.Slot) string {
		part := st.Parts[s.Part]
		return fmt.Sprintf("%d of class %d, follows others: %t", s.Count, part.Class, part.Follows())
	}
	for _, slot := range st.Lots[0].Slots {
		fmt.Println(describe(slot))
	}
	// Output:
	// 1 of class 0, follows others: false
	// 3 of class 1, follows others: true
}

// A limit keeps things apart within a node, whatever the reason: here two pods want the same port.
func ExampleLimit() {
	port := topology.Limit{Tag: "port TCP/80", Max: 1}
	proxy := class("proxy", 2, func(c *topology.Class) { c.Tags, c.Limits = []string{port.Tag}, []topology.Limit{port} })
	p, err := topology.New(topology.Input{Classes: []topology.Class{proxy}})
	if err != nil {
		fmt.Println(err)
		return
	}
	lot := p.WithShapes(slices.Values([]topology.Shape{inZones(4, "zone-a")})).Start().Lots[0]
	fmt.Println(lot.Count, "pods,", lot.Tags, lot.Limits)
	// Output: 2 pods, [port TCP/80] [{port TCP/80 1}]
}

// Picks are an order of binding: spread over zones, pods take turns.
func ExamplePick() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("web", 3, spread(zone, "web"))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	st := p.WithShapes(slices.Values([]topology.Shape{inZones(4, "zone-a", "zone-b")})).Start()
	for _, pick := range st.Picks {
		fmt.Println(pick.Count, "in", st.Parts[pick.Part].Domains[pick.Domain])
	}
	// Output:
	// 1 in zone-a
	// 1 in zone-b
	// 1 in zone-a
}

// A packer placed two of four pods, both in one zone. Replay says which of them can be bound: the second waits for one in
// the other zone, which never comes.
func ExampleReplay() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("web", 4, spread(zone, "web"))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	st := p.WithShapes(slices.Values([]topology.Shape{inZones(4, "zone-a", "zone-b")})).Start()
	replay := st.Replay()
	fmt.Println(replay.Bind(0, 0), replay.Bind(0, 0))
	// Output: true false
}

// A settlement says where pods go, by part and domain, and who is left: here everybody wants to be away from everybody, in
// two zones.
func ExampleSettlement() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("web", 3, away(zone, "web"))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	st := p.WithShapes(slices.Values([]topology.Shape{inZones(4, "zone-a", "zone-b")})).Start()
	for _, part := range st.Parts {
		for d, n := range part.Placed {
			fmt.Println(n, "in", part.Domains[d])
		}
	}
	fmt.Println("left over:", st.Left)
	// Output:
	// 1 in zone-a
	// 1 in zone-b
	// left over: [1]
}

// Writers and readers of a volume that is yet to be made go to one zone, although neither asks for it.
func ExampleTogether() {
	writers := class("writer", 1, asks(zone+" in (zone-b, zone-c)"))
	readers := class("reader", 2, asks(zone+" in (zone-a, zone-b)"))
	p, err := topology.New(topology.Input{
		Classes:  []topology.Class{writers, readers},
		Together: []topology.Together{{Name: "users of claim shop/photos", Classes: []int{0, 1}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(placed(p.WithShapes(slices.Values([]topology.Shape{inZones(4, "zone-a", "zone-b", "zone-c")})).Start()))
	// Output: [0 in "zone-b": 1 1 in "zone-b": 2]
}

// A part is pods of one class with the same preferences given up; its domains are combinations of the labels that matter to
// them, here tier and zone, and in between whether nodes pass the node filters of the two spreads.
func ExamplePart() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("web", 2, spread(zone, "web"), spread(tier, "web"))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	shapes := []topology.Shape{shape(4, tier+"=fast", zone+"=zone-a", zone+"=zone-b"), shape(4, tier+"=slow", zone+"=zone-a", zone+"=zone-b")}
	st := p.WithShapes(slices.Values(shapes)).Start()
	placedIn := func(part *topology.Part) (out []topology.Domain) {
		for d, n := range part.Placed {
			if n > 0 {
				out = append(out, part.Domains[d])
			}
		}
		return out
	}
	for _, d := range placedIn(st.Parts[0]) {
		fmt.Println(d.Values)
	}
	// Output:
	// [fast in in zone-a]
	// [slow in in zone-b]
}

// A pod that keeps a zone to itself goes first, for it is the largest, and may be in any zone: nobody else has a right to a
// place.
func ExampleReference() {
	loud := class("loud", 1, takes(2), away(zone, "web"))
	p, err := topology.New(topology.Input{Classes: []topology.Class{loud, class("web", 3, asks(zone+"=zone-a"))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	p = p.WithShapes(slices.Values([]topology.Shape{{Room: []int64{4, 4}, Offerings: []topology.Offering{
		{Labels: requirements.MustParse(zone + "=zone-a"), Price: 1}, {Labels: requirements.MustParse(zone + "=zone-b"), Price: 1},
	}}}))
	r := p.Start().Reference(topology.Queue{Classes: []int{0, 1, 1, 1}})
	fmt.Println(r.Placed, r.Holding)
	fmt.Println("left over where it has its seats:", p.Settle(r.Seats(topology.CloseNone)).Left)
	// Output:
	// [1 0] [1 0]
	// left over where it has its seats: [0 3]
}

// The queue decides who comes first: here the limit of the pool leaves one node, which the pod that is taken first fills.
func ExampleQueue() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("large", 1, takes(4)), class("small", 2)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	node := inZones(4, "zone-a")
	node.Usage = []int64{4}
	st := p.WithShapes(slices.Values([]topology.Shape{node})).Start()
	limited := []topology.QueuePool{{Left: []int64{4}}}
	fmt.Println(st.Reference(topology.Queue{Classes: []int{0, 1, 1}, Pools: limited}).Placed)
	fmt.Println(st.Reference(topology.Queue{Classes: []int{1, 1, 0}, Pools: limited}).Placed)
	fmt.Println(st.Reference(topology.Queue{Classes: []int{1, 1, 0}}).Placed)
	// Output:
	// [1 0]
	// [0 2]
	// [1 2]
}

// What a pool asks of its nodes is known of each of them from the start, what its limits leave says how many there may be.
func ExampleQueuePool() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("web", 6)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	node := inZones(2, "zone-a")
	node.Usage = []int64{2}
	st := p.WithShapes(slices.Values([]topology.Shape{node})).Start()
	pool := topology.QueuePool{Asks: requirements.MustParse(zone + "=zone-a"), Left: []int64{5}}
	fmt.Println(st.Reference(topology.Queue{Classes: []int{0, 0, 0, 0, 0, 0}, Pools: []topology.QueuePool{pool}}).Placed)
	// Output: [4]
}

// A manifest asks for team batch, and that there is no team. Karpenter reads that as the latter and places the pod, so who
// keeps away from it finds the zone taken.
func ExampleReading() {
	missing := requirements.AnyOf(requirements.MustParse("!team," + zone + "=zone-a"))
	lost := topology.Class{Pod: class("loud", 0).Pod, Requests: []int64{1, 1}, Tolerated: requirements.Set{}}
	lost.Readings = []topology.Reading{{Asked: missing, Required: missing}}
	p, err := topology.New(topology.Input{Classes: []topology.Class{lost, class("shy", 1, asks(zone+"=zone-a"), away(zone, "loud"))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	st := p.WithShapes(slices.Values([]topology.Shape{inZones(4, "zone-a")})).Start()
	fmt.Println(st.Reference(topology.Queue{Classes: []int{0, 1}}).Placed, st.Left)
	// Output: [0 0] [0 0]
}

// Two pods use one volume, and their node can attach no more than one: the second dimension counts it once.
func ExampleShared() {
	web := class("web", 2)
	web.Shared = []topology.Shared{{Name: "pv-7", Dimension: 1}}
	node := topology.Node{Labels: requirements.FromLabels(map[string]string{host: "n1", zone: "zone-a"}), Free: []int64{4, 1}}
	p, err := topology.New(topology.Input{Classes: []topology.Class{web}, Nodes: []topology.Node{node}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := p.Start().Reference(topology.Queue{Classes: []int{0, 0}})
	for _, lot := range p.Settle(r.Seats(topology.CloseNone)).Lots {
		fmt.Println(lot.Count, "of", lot.Requests)
	}
	// Output: 1 of [2 1]
}

// Closings differ in who finds a place besides. The reference has a node in zone-a only, so for the spread there is no other zone,
// as long as nobody else has a node in one.
func ExampleClosings() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{class("web", 1, spread(zone, "web")), class("web", 1, asks(zone+"=zone-b"))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	p = p.WithShapes(slices.Values([]topology.Shape{inZones(4, "zone-a", "zone-b")}))
	r := p.Start().Reference(topology.Queue{Classes: []int{0}})
	for _, c := range []topology.Closings{topology.CloseUnused, topology.CloseNone} {
		fmt.Println("left over:", p.Settle(r.Seats(c)).Left)
	}
	// Output:
	// left over: [0 1]
	// left over: [0 0]
}
