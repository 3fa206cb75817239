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
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/execution"
	"github.com/joinery-sdk/joinery/deprovision/plan"
)

// command is one told as "-old +new >target", with | between the waves of its old nodes.
func command(text string) plan.Command {
	var c plan.Command
	if strings.Contains(text, "|") {
		c.Waves = [][]string{nil}
	}
	for word := range strings.FieldsSeq(text) {
		name := word[1:]
		switch word[0] {
		case '-':
			c.Nodes = append(c.Nodes, deprovision.Candidate{Name: name})
			if n := len(c.Waves); n > 0 {
				c.Waves[n-1] = append(c.Waves[n-1], name)
			}
		case '|':
			c.Waves = append(c.Waves, nil)
		case '+':
			c.NewNodes = append(c.NewNodes, plan.NewNode{Name: name})
		case '>':
			c.Placements = append(c.Placements, plan.Placement{Pod: &corev1.Pod{}, Node: name})
		case '!':
			c.AtOnce = true
		case '^':
			c.TerminateFirst = true
		}
	}
	return c
}

// wave is the wave of the node; a node of no wave has the last.
func wave(c plan.Command, node string) int {
	for i, names := range c.Waves {
		if slices.Contains(names, node) {
			return i
		}
	}
	return len(c.Waves)
}

func todo(r execution.Run) string {
	var out []string
	for _, a := range r.Actions() {
		out = append(out, fmt.Sprintf("%s %s", a.Kind, a.Node))
	}
	return strings.Join(out, ", ")
}

func statuses(r execution.Run, n int) string {
	var out []string
	for i := range n {
		s, _ := r.Status(i)
		out = append(out, string(s))
	}
	return strings.Join(out, " ")
}

// Scripts: commands, then events and what is to be done after each.
func TestScripts(t *testing.T) {
	for name, c := range map[string]struct {
		commands []string
		parallel int
		steps    [][2]string // event and what is to do then; the first has no event
		end      string
	}{
		"a node is drained and given back": {
			commands: []string{"-a >b"},
			steps:    [][2]string{{"", "drain a"}, {"empty a", "give-back a"}, {"gone a", ""}},
			end:      "done",
		},
		"replacements are ready before anything is drained": {
			commands: []string{"-a -b +x +y"},
			steps: [][2]string{
				{"", "buy x, buy y, cordon a, cordon b"},
				{"ready y", "buy x, cordon a, cordon b"},
				{"ready x", "drain a, drain b"},
				{"empty b", "drain a, give-back b"},
				{"gone b", "drain a"},
				{"empty a", "give-back a"},
				{"gone a", ""},
			},
			end: "done",
		},
		"a node that may still be given back takes no pods of other commands": {
			commands: []string{"-a +x +y", "-b >x"}, parallel: 2,
			steps: [][2]string{
				{"", "buy x, buy y, cordon a"},
				{"ready x", "buy y, cordon a"},
				{"failed y", "give-back x, uncordon a"},
				{"gone x", "uncordon a"},
				{"open a", ""},
			},
			end: "reverted skipped",
		},
		"a node dies onto which two commands drain": {
			commands: []string{"-a +x +y", "-b >x"}, parallel: 2,
			steps: [][2]string{
				{"", "buy x, buy y, cordon a"},
				{"ready x", "buy y, cordon a"},
				{"ready y", "drain a, drain b"},
				{"gone x", "uncordon a, uncordon b"},
				{"open a", "uncordon b"},
				{"open b", ""},
			},
			end: "aborted aborted",
		},
		"at once, without waiting": {
			commands: []string{"-a +x !"},
			steps:    [][2]string{{"", "buy x, drain a"}, {"gone a", "buy x"}, {"ready x", ""}},
			end:      "done",
		},
		"a node goes first, and its successor is bought when it is gone": {
			commands: []string{"-a +x ^", "-b >x"}, parallel: 2,
			steps: [][2]string{{"", "drain a"}, {"empty a", "give-back a"}, {"gone a", "buy x"}, {"ready x", "drain b"}, {"gone b", ""}},
			end:   "done done",
		},
		"a node that goes first dies": {
			commands: []string{"-a +x ^"},
			steps:    [][2]string{{"", "drain a"}, {"gone a", "buy x"}, {"gone a", "buy x"}, {"ready x", ""}},
			end:      "done",
		},
		"the successor of a node that went first cannot be bought": {
			commands: []string{"-a +x ^", "-b"},
			steps:    [][2]string{{"", "drain a"}, {"empty a", "give-back a"}, {"gone a", "buy x"}, {"failed x", ""}},
			end:      "partial skipped",
		},
		"a node that is to go first cannot be drained": {
			commands: []string{"-a +x ^", "-b"},
			steps:    [][2]string{{"", "drain a"}, {"failed a", "uncordon a"}, {"open a", ""}},
			end:      "aborted skipped",
		},
		"what was bought is taken back, and nothing more begins": {
			commands: []string{"-a +x +y", "-b"},
			steps:    [][2]string{{"", "buy x, buy y, cordon a"}, {"ready x", "buy y, cordon a"}, {"failed y", "give-back x, uncordon a"}, {"open a", "give-back x"}, {"gone x", ""}},
			end:      "reverted skipped",
		},
		"a node that cannot be drained stays, and so do those that pods went to": {
			commands: []string{"-a -b +x", "-c"},
			steps:    [][2]string{{"", "buy x, cordon a, cordon b"}, {"ready x", "drain a, drain b"}, {"failed a", "uncordon a, drain b"}, {"open a", "drain b"}, {"empty b", "give-back b"}, {"gone b", ""}},
			end:      "partial skipped",
		},
		"one after the other": {
			commands: []string{"-a", "-b"},
			steps:    [][2]string{{"", "drain a"}, {"empty a", "give-back a"}, {"gone a", "drain b"}, {"gone b", ""}},
			end:      "done done",
		},
		"side by side, but for those that wait for a node": {
			commands: []string{"-a +x >x", "-b >x", "-c >d"}, parallel: 3,
			steps: [][2]string{{"", "buy x, cordon a, drain c"}, {"ready x", "drain a, drain b, drain c"}, {"gone a", "drain b, drain c"}, {"gone b", "drain c"}, {"gone c", ""}},
			end:   "done done done",
		},
		"two purchases fail": {
			commands: []string{"-a +x +y"},
			steps:    [][2]string{{"", "buy x, buy y, cordon a"}, {"failed x", "give-back y, uncordon a"}, {"failed y", "uncordon a"}, {"open a", ""}},
			end:      "reverted",
		},
		"what was bought dies before the rest is there": {
			commands: []string{"-a +x +y"},
			steps:    [][2]string{{"", "buy x, buy y, cordon a"}, {"ready x", "buy y, cordon a"}, {"gone x", "give-back y, uncordon a"}, {"open a", "give-back y"}, {"gone y", ""}},
			end:      "reverted",
		},
		"what was bought dies while others are drained onto it": {
			commands: []string{"-a -b +x", "-c"},
			steps:    [][2]string{{"", "buy x, cordon a, cordon b"}, {"ready x", "drain a, drain b"}, {"empty a", "give-back a, drain b"}, {"failed x", "give-back a, uncordon b"}, {"open b", "give-back a"}, {"gone a", ""}},
			end:      "partial skipped",
		},
		"a wave leaves when the one before has gone": {
			commands: []string{"-a -b | -c +x"},
			steps: [][2]string{
				{"", "buy x, cordon a, cordon b, cordon c"},
				{"ready x", "drain a, drain b, cordon c"},
				{"empty a", "give-back a, drain b, cordon c"},
				{"gone a", "drain b, cordon c"},
				{"gone b", "drain c"},
				{"gone c", ""},
			},
			end: "done",
		},
		"a wave goes on where a node of the one before stays": {
			commands: []string{"-a | -b"},
			steps:    [][2]string{{"", "drain a, cordon b"}, {"failed a", "uncordon a, cordon b"}, {"open a", "drain b"}, {"gone b", ""}},
			end:      "partial",
		},
		"no later wave leaves if what was bought has died": {
			commands: []string{"-a | -b +x"},
			steps:    [][2]string{{"", "buy x, cordon a, cordon b"}, {"ready x", "drain a, cordon b"}, {"empty a", "give-back a, cordon b"}, {"gone x", "give-back a, uncordon b"}, {"open b", "give-back a"}, {"gone a", ""}},
			end:      "partial",
		},
		"a node dies before its wave": {
			commands: []string{"-a | -b"},
			steps:    [][2]string{{"", "drain a, cordon b"}, {"gone b", "drain a"}, {"gone a", ""}},
			end:      "done",
		},
		"a failed drain is told twice": {
			commands: []string{"-a -b"},
			steps:    [][2]string{{"", "drain a, drain b"}, {"failed a", "uncordon a, drain b"}, {"failed a", "uncordon a, drain b"}, {"open a", "drain b"}, {"failed a", "drain b"}, {"gone b", ""}},
			end:      "partial",
		},
		"a drain fails after its replacement has died": {
			commands: []string{"-a +x"},
			steps:    [][2]string{{"", "buy x, cordon a"}, {"ready x", "drain a"}, {"gone x", "uncordon a"}, {"failed a", "uncordon a"}, {"open a", ""}},
			end:      "aborted",
		},
		"a node that is to stay dies": {
			commands: []string{"-a"},
			steps:    [][2]string{{"", "drain a"}, {"failed a", "uncordon a"}, {"gone a", ""}},
			end:      "done",
		},
		"the only node cannot be drained": {
			commands: []string{"-a", "-b"},
			steps:    [][2]string{{"", "drain a"}, {"failed a", "uncordon a"}, {"open a", ""}},
			end:      "aborted skipped",
		},
		"no node can be drained, and what was bought stays": {
			commands: []string{"-a -b +x"},
			steps:    [][2]string{{"", "buy x, cordon a, cordon b"}, {"ready x", "drain a, drain b"}, {"failed a", "uncordon a, drain b"}, {"failed b", "uncordon a, uncordon b"}, {"open a", "uncordon b"}, {"open b", ""}},
			end:      "aborted",
		},
		"neither can a node be drained nor its replacement be bought": {
			commands: []string{"-a +x !"},
			steps:    [][2]string{{"", "buy x, drain a"}, {"failed x", "drain a"}, {"failed a", "uncordon a"}, {"open a", ""}},
			end:      "aborted",
		},
		"a node that goes at once, but its replacement cannot be bought": {
			commands: []string{"-a +x !"},
			steps:    [][2]string{{"", "buy x, drain a"}, {"failed x", "drain a"}, {"gone a", ""}},
			end:      "partial",
		},
		"told twice": {
			commands: []string{"-a +x"},
			steps:    [][2]string{{"", "buy x, cordon a"}, {"ready x", "drain a"}, {"ready x", "drain a"}, {"empty a", "give-back a"}, {"empty a", "give-back a"}, {"gone a", ""}, {"gone a", ""}},
			end:      "done",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var list []plan.Command
			for _, text := range c.commands {
				list = append(list, command(text))
			}
			r := execution.New(list, c.parallel)
			for _, step := range c.steps {
				if fact, node, ok := strings.Cut(step[0], " "); ok {
					before := todo(r)
					next, err := r.Tell(execution.Event{Fact: execution.Fact(fact), Node: node, Why: "no capacity"})
					require.NoError(t, err, step[0])
					assert.Equal(t, before, todo(r), "a run does not change")
					r = next
				}
				assert.Equal(t, step[1], todo(r), "after %q", step[0])
			}
			assert.True(t, r.Finished())
			assert.Equal(t, c.end, statuses(r, len(list)))
		})
	}
}

func TestUnexpectedEvents(t *testing.T) {
	r := execution.New([]plan.Command{command("-a +x")}, 1)
	_, err := r.Tell(execution.Event{Fact: execution.Empty, Node: "a"})
	require.EqualError(t, err, "execution: empty of node a, which command 0 has not requested; report events in the order in which they happen")
	_, err = r.Tell(execution.Event{Fact: execution.Gone, Node: "z"})
	require.EqualError(t, err, "execution: gone of node z, which no command of the plan names")
	var unexpected *execution.UnexpectedError
	require.ErrorAs(t, err, &unexpected)
	assert.Equal(t, -1, unexpected.Command)
}

// Whatever fails, in whatever order things happen: every run ends, no node is drained before what it was replaced by is ready, and
// what a command bought that drained nothing is gone in the end. Of a command whose node goes first
// nothing is bought before the node is gone. A run that is made anew from its events goes on as before.
// The final status of a command says which of its nodes are gone, and whether it bought all others.
func TestEveryRunEnds(t *testing.T) {
	first, ends := 0, map[execution.Status]int{}
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var list []plan.Command
		for i := range 1 + rnd.IntN(5) {
			text := fmt.Sprintf("-old%d", i)
			for k := range rnd.IntN(3) {
				if rnd.IntN(3) == 0 {
					text += " |"
				}
				text += fmt.Sprintf(" -old%d-%d", i, k)
			}
			for k := range rnd.IntN(3) {
				text += fmt.Sprintf(" +new%d-%d >new%d-%d", i, k, rnd.IntN(i+1), k)
			}
			if rnd.IntN(4) == 0 {
				text = strings.ReplaceAll(text, " |", "") + " ^"
			}
			list = append(list, command(text))
		}
		parallel := 1 + rnd.IntN(3)
		r := execution.New(list, parallel)
		var events []execution.Event
		gone := map[string]bool{}
		there, failed, drained, died := map[string]bool{}, map[string]bool{}, map[int]bool{}, map[string]bool{}
		for steps := 0; !r.Finished(); steps++ {
			require.Less(t, steps, 1000)
			for i := range list {
				if status, _ := r.Status(i); status == execution.Draining { // pods may move from now on
					drained[i] = true
				}
			}
			if rnd.IntN(10) == 0 && len(there) > 0 { // a machine dies, whatever is under way
				dead := slices.Sorted(maps.Keys(there))[rnd.IntN(len(there))]
				delete(there, dead)
				died[dead] = true
				var err error
				events = append(events, execution.Event{Fact: []execution.Fact{execution.Gone, execution.Failed}[rnd.IntN(2)], Node: dead})
				r, err = r.Tell(events[len(events)-1])
				require.NoError(t, err, "seed %d", seed)
				continue
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
			fact := map[execution.Kind]execution.Fact{execution.Buy: execution.Ready, execution.Drain: execution.Empty, execution.GiveBack: execution.Gone, execution.Uncordon: execution.Open}[a.Kind]
			switch {
			case a.Kind == execution.Cordon:
				continue
			case (a.Kind == execution.Buy || a.Kind == execution.Drain) && rnd.IntN(6) == 0:
				fact = execution.Failed
				failed[a.Node] = true
			case a.Kind == execution.Uncordon && rnd.IntN(4) == 0: // it dies, although it is to stay
				fact = execution.Gone
			}
			if a.Kind == execution.Drain {
				for _, other := range actions {
					require.LessOrEqual(t, wave(list[a.Command], a.Node), wave(list[a.Command], other.Node), "seed %d: %s is drained before %s has gone", seed, a.Node, other.Node)
				}
				for _, n := range list[a.Command].NewNodes {
					if list[a.Command].TerminateFirst {
						require.False(t, there[n.Name], "seed %d: %s is bought before %s is drained", seed, n.Name, a.Node)
						continue
					}
					require.True(t, there[n.Name] || died[n.Name] && a.Kind != execution.Drain, "seed %d: %s is drained before %s is ready", seed, a.Node, n.Name)
				}
			}
			if a.Kind == execution.Buy && list[a.Command].TerminateFirst {
				for _, n := range list[a.Command].Nodes {
					require.True(t, gone[n.Name], "seed %d: %s is bought before %s is gone", seed, a.Node, n.Name)
				}
				first++
			}
			if a.Kind == execution.Buy && fact == execution.Ready {
				there[a.Node] = true
			}
			if fact == execution.Gone {
				delete(there, a.Node)
				gone[a.Node] = true
			}
			var err error
			before := r
			events = append(events, execution.Event{Fact: fact, Node: a.Node})
			r, err = r.Tell(events[len(events)-1])
			require.NoError(t, err)
			for i, c := range list {
				status, why := r.Status(i)
				if was, _ := before.Status(i); was.Final() || !status.Final() {
					continue
				}
				ends[status]++
				stay := slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return !gone[n.Name] })
				some := slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return gone[n.Name] })
				missing := slices.ContainsFunc(c.NewNodes, func(n plan.NewNode) bool { return !there[n.Name] })
				said := fmt.Sprintf("seed %d: command %d is %s: %s", seed, i, status, why)
				assert.Equal(t, status != execution.Done, why != "", said)
				switch status {
				case execution.Done:
					assert.True(t, !stay && !missing, said)
				case execution.Partial:
					assert.True(t, some && (stay || missing), said)
				case execution.Aborted, execution.Skipped:
					assert.False(t, some, said)
				case execution.Reverted:
					assert.False(t, slices.ContainsFunc(c.NewNodes, func(n plan.NewNode) bool { return there[n.Name] }), said)
				default:
					assert.Fail(t, said)
				}
			}
		}
		for i := range list {
			for _, n := range list[i].NewNodes {
				if list[i].TerminateFirst {
					stays := slices.ContainsFunc(list[i].Nodes, func(old deprovision.Candidate) bool { return !gone[old.Name] || failed[old.Name] })
					assert.Equal(t, !stays && !failed[n.Name] && !died[n.Name], there[n.Name], "seed %d: command %d and node %s", seed, i, n.Name)
					continue
				}
				assert.Equal(t, drained[i] && !died[n.Name], there[n.Name], "seed %d: command %d and node %s", seed, i, n.Name)
			}
		}
	}
	require.Greater(t, first, 100)
	assert.Len(t, ends, 5)
}

// A command that the plan does not have has no status.
func TestStatusOfNoCommand(t *testing.T) {
	for _, r := range []execution.Run{{}, execution.New([]plan.Command{{Nodes: []deprovision.Candidate{{Name: "a"}}}}, 1)} {
		for _, command := range []int{-1, 1, 7} {
			status, why := r.Status(command)
			assert.Empty(t, status)
			assert.Empty(t, why)
		}
	}
}

// Every action is listed until one of its facts is told, except Cordon, which has none.
func TestFactsOfActions(t *testing.T) {
	facts := []execution.Fact{execution.Ready, execution.Empty, execution.Gone, execution.Open, execution.Failed}
	answers := map[execution.Kind][]execution.Fact{
		execution.Buy: {execution.Ready, execution.Failed}, execution.Drain: {execution.Empty, execution.Failed},
		execution.GiveBack: {execution.Gone}, execution.Uncordon: {execution.Open},
	}
	seen := map[execution.Kind]bool{}
	var walk func(execution.Run)
	walk = func(r execution.Run) {
		for _, a := range r.Actions() {
			seen[a.Kind] = true
			for _, fact := range facts {
				next, err := r.Tell(execution.Event{Fact: fact, Node: a.Node})
				ends := err == nil && !slices.ContainsFunc(next.Actions(), func(b execution.Action) bool { return b.Kind == a.Kind && b.Node == a.Node })
				if slices.Contains(answers[a.Kind], fact) {
					assert.True(t, ends, "%s of %s", fact, a.Kind)
					walk(next)
				} else if a.Kind == execution.Cordon {
					assert.Error(t, err, "%s of %s", fact, a.Kind)
				}
			}
		}
	}
	walk(execution.New([]plan.Command{
		{Kind: plan.Delete, Nodes: []deprovision.Candidate{{Name: "a"}}},
		{Kind: plan.Replace, Nodes: []deprovision.Candidate{{Name: "b"}}, NewNodes: []plan.NewNode{{Name: "x"}}},
	}, 1))
	assert.Len(t, seen, 5)
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
			list = append(list, command(text+[]string{"", " !", " ^"}[rnd.IntN(3)]))
		}
		r, bought := execution.New(list, 1+rnd.IntN(2)), []string(nil)
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
