package execution_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/execution"
	"github.com/joinery-sdk/joinery/deprovision/plan"
)

// Whatever fails, whatever dies at any moment, and in whatever order things happen:
//
//   - every run ends, and a run that is made anew from its events goes on as before;
//   - nothing is to be done with a node that has died;
//   - a node is drained only while all nodes that its pods go to are there, in waves, and before the
//     successor of a node that goes first is bought;
//   - a command gives back what it has bought only if none of its nodes was drained or had died
//     before, and otherwise buys everything;
//   - the final status says which nodes of the command are gone, and whether it bought all others;
//   - if nothing happens but that nodes die which are to go, every command is done.
func TestEveryRunEnds(t *testing.T) {
	first, innocent, ends, deaths := 0, 0, map[execution.Status]int{}, map[string]int{}
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var list []plan.Command
		var bought []string
		for i := range 1 + rnd.IntN(5) {
			text := fmt.Sprintf("-old%d", i)
			for k := range rnd.IntN(3) {
				if rnd.IntN(3) == 0 {
					text += " |"
				}
				text += fmt.Sprintf(" -old%d-%d", i, k)
			}
			for k := range rnd.IntN(3) {
				bought = append(bought, fmt.Sprintf("new%d-%d", i, k))
				text += fmt.Sprintf(" +new%d-%d >%s", i, k, bought[rnd.IntN(len(bought))])
			}
			if rnd.IntN(2) == 0 {
				text += fmt.Sprintf(" >stay%d", rnd.IntN(3))
			}
			if rnd.IntN(4) == 0 {
				text = strings.ReplaceAll(text, " |", "") + " ^"
			}
			list = append(list, command(text))
		}
		exists, role := map[string]bool{}, map[string]string{} // by name of the node
		for _, c := range list {
			for _, p := range c.Placements {
				exists[p.Node], role[p.Node] = true, "target"
			}
		}
		for _, c := range list {
			for _, n := range c.Nodes {
				exists[n.Name], role[n.Name] = true, "old"
			}
			for _, n := range c.NewNodes {
				delete(exists, n.Name)
				role[n.Name] = "new"
			}
		}
		quiet := rnd.IntN(4) == 0 // only nodes that are to go die
		parallel := 1 + rnd.IntN(3)
		r := execution.New(list, parallel)
		var events []execution.Event
		dead := map[string]bool{}                                                 // gone, or never bought
		moved, reverted, stayed := map[int]bool{}, map[int]bool{}, map[int]bool{} // by command
		look := func() {
			for i := range list {
				if status, _ := r.Status(i); !reverted[i] && (status == execution.Reverting || status == execution.Reverted) {
					reverted[i] = true
					require.False(t, moved[i], "seed %d: command %d is reverted, although its pods may have moved", seed, i)
				}
			}
			for _, a := range r.Actions() {
				require.False(t, dead[a.Node], "seed %d: %s of %s, which has died", seed, a.Kind, a.Node)
				require.True(t, a.Kind != execution.GiveBack || role[a.Node] == "old" || reverted[a.Command], "seed %d: %s is given back", seed, a.Node)
				moved[a.Command] = moved[a.Command] || a.Kind == execution.Drain
			}
		}
		look()
		tell := func(e execution.Event) {
			before := r
			events = append(events, e)
			var err error
			r, err = r.Tell(e)
			require.NoError(t, err, "seed %d", seed)
			for i, c := range list {
				status, why := r.Status(i)
				if was, _ := before.Status(i); was.Final() || !status.Final() {
					continue
				}
				ends[status]++
				stay := slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return !dead[n.Name] })
				stayed[i] = stay
				some := slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return dead[n.Name] })
				missing := slices.ContainsFunc(c.NewNodes, func(n plan.NewNode) bool { return !exists[n.Name] })
				said := fmt.Sprintf("seed %d: command %d is %s: %s", seed, i, status, why)
				assert.Equal(t, status != execution.Done, why != "", said)
				switch status {
				case execution.Done:
					assert.True(t, !stay && !missing, said)
				case execution.Partial:
					assert.True(t, some && (stay || missing), said)
				case execution.Aborted:
					assert.False(t, some, said)
				case execution.Reverted, execution.Skipped:
					assert.False(t, slices.ContainsFunc(c.NewNodes, func(n plan.NewNode) bool { return exists[n.Name] }), said)
				default:
					assert.Fail(t, said)
				}
			}
			look()
		}
		die := func(name string, fact execution.Fact) {
			delete(exists, name)
			dead[name] = true
			for i, c := range list {
				moved[i] = moved[i] || !reverted[i] && slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return n.Name == name })
			}
			tell(execution.Event{Fact: fact, Node: name})
		}
		for steps := 0; !r.Finished(); steps++ {
			require.Less(t, steps, 1000)
			if rnd.IntN(10) == 0 {
				mortal := slices.DeleteFunc(slices.Sorted(maps.Keys(exists)), func(name string) bool { return quiet && role[name] != "old" })
				if len(mortal) > 0 { // a machine dies, whatever is under way
					name := mortal[rnd.IntN(len(mortal))]
					deaths[role[name]]++
					facts := []execution.Fact{execution.Gone, execution.Failed}
					if role[name] == "old" {
						facts = facts[:1]
					}
					die(name, facts[rnd.IntN(len(facts))])
					continue
				}
			}
			if rnd.IntN(10) == 0 {
				again := execution.New(list, parallel)
				for _, e := range events {
					var err error
					again, err = again.Tell(e)
					require.NoError(t, err, "seed %d", seed)
				}
				require.Equal(t, todo(r), todo(again), "seed %d", seed)
			}
			actions := r.Actions()
			require.NotEmpty(t, actions, "seed %d: not finished, and nothing to do", seed)
			a := actions[rnd.IntN(len(actions))]
			c := list[a.Command]
			fails := !quiet && rnd.IntN(6) == 0
			switch a.Kind {
			case execution.Cordon:
			case execution.Buy:
				if c.TerminateFirst {
					first++
					for _, n := range c.Nodes {
						require.True(t, dead[n.Name], "seed %d: %s is bought before %s is gone", seed, a.Node, n.Name)
					}
				}
				if fails {
					die(a.Node, []execution.Fact{execution.Failed, execution.Gone}[rnd.IntN(2)])
					continue
				}
				exists[a.Node] = true
				tell(execution.Event{Fact: execution.Ready, Node: a.Node})
			case execution.Drain:
				for _, other := range actions {
					require.LessOrEqual(t, wave(c, a.Node), wave(list[a.Command], other.Node), "seed %d: %s is drained before %s has gone", seed, a.Node, other.Node)
				}
				for _, n := range c.NewNodes {
					require.Equal(t, !c.TerminateFirst, exists[n.Name], "seed %d: %s is drained, and its replacement is %s", seed, a.Node, n.Name)
				}
				for _, p := range c.Placements {
					require.True(t, exists[p.Node] || c.TerminateFirst && slices.ContainsFunc(c.NewNodes, func(n plan.NewNode) bool { return n.Name == p.Node }), "seed %d: %s is drained onto %s", seed, a.Node, p.Node)
				}
				fact := execution.Empty
				if fails {
					fact = execution.Failed
				}
				tell(execution.Event{Fact: fact, Node: a.Node})
			case execution.GiveBack:
				die(a.Node, execution.Gone)
			case execution.Uncordon:
				tell(execution.Event{Fact: execution.Open, Node: a.Node})
			}
		}
		done := true
		for i, c := range list {
			status, _ := r.Status(i)
			done = done && status == execution.Done
			for _, n := range c.NewNodes {
				due := status != execution.Skipped && !reverted[i] && (!c.TerminateFirst || !stayed[i])
				require.Equal(t, due && !dead[n.Name], exists[n.Name], "seed %d: command %d is %s, and node %s", seed, i, status, n.Name)
			}
		}
		if quiet {
			innocent++
			require.True(t, done, "seed %d: nothing failed, but %s", seed, statuses(r, len(list)))
		}
	}
	require.Greater(t, first, 100)
	require.Greater(t, innocent, 100)
	assert.Len(t, ends, 5)
	assert.Len(t, deaths, 3)
}

// Every event can be told again at any later moment, and changes nothing then: a caller may deliver
// events more than once, and in any mix with later ones.
func TestRepeatedEventsChangeNothing(t *testing.T) {
	answers := map[execution.Kind][]execution.Fact{
		execution.Buy:      {execution.Ready, execution.Ready, execution.Ready, execution.Failed, execution.Gone},
		execution.Drain:    {execution.Empty, execution.Empty, execution.Failed, execution.Gone},
		execution.GiveBack: {execution.Gone}, execution.Uncordon: {execution.Open, execution.Open, execution.Gone},
	}
	repeated := map[execution.Fact]int{}
	for seed := range uint64(1000) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var list []plan.Command
		for i := range 1 + rnd.IntN(3) {
			text := fmt.Sprintf("-a%d", i)
			for k := range rnd.IntN(3) {
				text += []string{"", " |"}[rnd.IntN(2)] + fmt.Sprintf(" -b%d-%d", i, k)
			}
			for k := range rnd.IntN(3) {
				text += fmt.Sprintf(" +x%d-%d", i, k)
			}
			list = append(list, command(text+[]string{"", " !", " ^"}[rnd.IntN(3)]+fmt.Sprintf(" >s%d", i%2)))
		}
		r, bought := execution.New(list, 1+rnd.IntN(2)), []string{"s0"}
		var old []string
		for _, c := range list {
			for _, n := range c.Nodes {
				old = append(old, n.Name)
			}
		}
		var told []execution.Event
		for !r.Finished() {
			require.Less(t, len(told), 1000)
			actions := slices.DeleteFunc(r.Actions(), func(a execution.Action) bool { return a.Kind == execution.Cordon })
			require.NotEmpty(t, actions, "seed %d", seed)
			a := actions[rnd.IntN(len(actions))]
			e := execution.Event{Node: a.Node, Fact: answers[a.Kind][rnd.IntN(len(answers[a.Kind]))]}
			if rnd.IntN(8) == 0 && len(bought) > 0 { // a machine dies by itself
				e = execution.Event{Node: bought[rnd.IntN(len(bought))], Fact: []execution.Fact{execution.Gone, execution.Failed}[rnd.IntN(2)]}
			}
			if rnd.IntN(8) == 0 {
				e = execution.Event{Node: old[rnd.IntN(len(old))], Fact: execution.Gone}
			}
			if e.Fact == execution.Ready {
				bought = append(bought, e.Node)
			}
			next, err := r.Tell(e)
			require.NoError(t, err, "seed %d", seed)
			r, told = next, append(told, e)
			for _, e := range told {
				same, err := r.Tell(e)
				require.NoError(t, err, "seed %d: %s of %s again", seed, e.Fact, e.Node)
				require.Equal(t, r, same, "seed %d: %s of %s again", seed, e.Fact, e.Node)
				repeated[e.Fact]++
			}
		}
	}
	assert.Len(t, repeated, 5)
}
