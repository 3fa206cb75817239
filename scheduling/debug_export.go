package scheduling

import "fmt"

// DebugDump prints parts.
func (s *State) DebugDump(class int) {
	fmt.Println("facts", s.facts.closed, "round", s.number)
	for k, v := range s.facts.caps {
		if k.class == class {
			fmt.Println(" cap", k, v)
		}
	}
	for _, pt := range s.parts {
		if pt.class == class {
			fmt.Println("part stage", pt.stage, "keys", pt.keys, "want", pt.want, "rank", pt.rank)
			for d := range pt.domains {
				fmt.Println("   ", pt.domains[d].text(), "placed", pt.placed[d], pt.domains[d].price, pt.domains[d].room)
			}
		}
	}
}
