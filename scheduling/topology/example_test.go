package topology_test

import (
	"fmt"
	"slices"

	"github.com/joinery-sdk/joinery/scheduling/topology"
)

// Seven pods spread over zones, of which two can be bought; three others follow them.
func ExampleNew() {
	p, err := topology.New(topology.Input{Classes: []topology.Class{
		class("web", 7, spread(zone, "web")),
		class("cache", 3, near(zone, "web")),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	p = p.WithShapes(slices.Values([]topology.Shape{inZones(8, "zone-a", "zone-b")}))
	st := p.Start()
	for _, pick := range st.Picks[:2] {
		pt := st.Parts[pick.Part]
		fmt.Println("bind", pick.Count, "of class", pt.Class, "in", pt.Domains[pick.Domain])
	}
	for _, lot := range st.Lots {
		fmt.Println("pack", lot.Count, "of class", st.Parts[lot.Slots[0].Part].Class, "where", lot.Required)
	}
	fmt.Println("left over:", st.Left)
	// Output:
	// bind 1 of class 0 in zone-a
	// bind 1 of class 0 in zone-b
	// pack 4 of class 0 where topology.kubernetes.io/zone in (zone-a)
	// pack 3 of class 0 where topology.kubernetes.io/zone in (zone-b)
	// pack 3 of class 1 where topology.kubernetes.io/zone in (zone-a)
	// left over: [0 0]
}
