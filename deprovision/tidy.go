package deprovision

import (
	"slices"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
)

// tidy makes the plan again, knowing how it ended: nodes that it bought and gave back are not bought, for the commands that
// did so become one, and pods keep off all nodes that go. What comes of it is taken if it saves as much with fewer evictions.
// Start is the planner as it was before the commands from first on.
func (p *planner) tidy(start *planner, first int) {
	commands := p.out.Commands[first:]
	if len(commands) < 2 {
		return
	}
	group, boughtBy := make([]int, len(commands)), map[string]int{} // commands that become one have the group of the last
	for i := range commands {
		group[i] = i
	}
	again := false
	for i, c := range commands {
		for _, n := range c.Nodes {
			if by, ok := boughtBy[n.Name]; ok {
				again = true
				from := group[by]
				for k := range group {
					if group[k] == from {
						group[k] = i
					}
				}
			}
		}
		for _, n := range c.NewNodes {
			boughtBy[n.Name] = i
		}
	}
	closer, ok := start.sim.(Closer)
	if !ok || !again && p.out.Evictions-start.out.Evictions <= distinct(commands) {
		return
	}
	sets := make([][]*member, len(commands))
	var names []string
	for i, c := range commands {
		for _, n := range c.Nodes {
			if m := start.nodes[n.Name]; m != nil {
				sets[group[i]] = append(sets[group[i]], m)
				names = append(names, n.Name)
			}
		}
	}
	start.sim = closer.Close(names)
	for _, set := range sets {
		set = slices.DeleteFunc(set, func(m *member) bool { return start.nodes[m.Name] == nil })
		if len(set) > 0 {
			start.redo(set)
		}
	}

	start.passes(start.pass)
	worse := start.out.PricePerHourAfter > p.out.PricePerHourAfter+dearer*p.out.PricePerHour
	questions, avoided := p.out.Questions+start.out.Questions, p.out.Avoided+start.out.Avoided
	if !worse && start.out.Evictions < p.out.Evictions {
		*p = *start
	}
	p.out.Questions, p.out.Avoided = questions, avoided
}

// redo gives back a set that an earlier try gave back, or its halves if that does not work now.
func (p *planner) redo(set []*member) {
	if a, used, ok := p.try(set, 0); ok {
		p.commit(eligibility.Consolidation, used, a, together(&a, used))
		return
	}
	if a, used, ok := p.try(set, len(set)+pieces-1); ok {
		p.commit(eligibility.Consolidation, used, a, together(&a, used))
		return
	}
	if len(set) > 1 {
		p.redo(slices.Clone(set[:len(set)/2]))
		p.redo(slices.Clone(set[len(set)/2:]))
	}
}

// distinct is how many pods the commands move, each counted once.
func distinct(commands []Command) int {
	seen := map[string]bool{}
	for i := range commands {
		for _, p := range commands[i].Placements {
			seen[p.Pod.Namespace+"/"+p.Pod.Name] = true
		}
	}
	return len(seen)
}
