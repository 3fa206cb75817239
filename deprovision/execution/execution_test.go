package execution_test

import (
	"fmt"
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
		"a node dies while its replacement is bought": {
			commands: []string{"-a +x"},
			steps:    [][2]string{{"", "buy x, cordon a"}, {"gone a", "buy x"}, {"gone a", "buy x"}, {"ready x", ""}},
			end:      "done",
		},
		"a node dies before its command begins": {
			commands: []string{"-a", "-b +x", "-c", "-d"},
			steps:    [][2]string{{"", "drain a"}, {"gone b", "drain a"}, {"gone c", "drain a"}, {"gone a", "buy x"}, {"ready x", "drain d"}, {"gone d", ""}},
			end:      "done done done done",
		},
		"the pods of a node that has died need what is bought, although a purchase fails": {
			commands: []string{"-a -b +x +y +z", "-c"},
			steps: [][2]string{
				{"", "buy x, buy y, buy z, cordon a, cordon b"},
				{"gone a", "buy x, buy y, buy z, cordon b"},
				{"ready x", "buy y, buy z, cordon b"},
				{"failed y", "buy z, uncordon b"},
				{"open b", "buy z"},
				{"ready z", ""},
			},
			end: "partial skipped",
		},
		"a node dies after a purchase has failed": {
			commands: []string{"-a +x +y", "-b"},
			steps:    [][2]string{{"", "buy x, buy y, cordon a"}, {"ready x", "buy y, cordon a"}, {"failed y", "give-back x, uncordon a"}, {"gone a", "give-back x"}, {"gone x", ""}},
			end:      "reverted skipped",
		},
		"a node that stays dies while others are drained": {
			commands: []string{"-a -b"},
			steps:    [][2]string{{"", "drain a, drain b"}, {"failed a", "uncordon a, drain b"}, {"open a", "drain b"}, {"gone a", "drain b"}, {"gone b", ""}},
			end:      "done",
		},
		"a node that goes first dies before its command begins": {
			commands: []string{"-a", "-b +x ^"},
			steps:    [][2]string{{"", "drain a"}, {"gone b", "drain a"}, {"gone a", "buy x"}, {"ready x", ""}},
			end:      "done done",
		},
		"a node that is to go first cannot be drained, and dies": {
			commands: []string{"-a +x ^"},
			steps:    [][2]string{{"", "drain a"}, {"failed a", "uncordon a"}, {"gone a", "buy x"}, {"ready x", ""}},
			end:      "done",
		},
		"an existing node dies onto which nodes are drained": {
			commands: []string{"-a -b >s", "-c >s", "-d >t", "-e"}, parallel: 3,
			steps: [][2]string{
				{"", "drain a, drain b, drain c, drain d"},
				{"empty a", "give-back a, drain b, drain c, drain d"},
				{"gone s", "give-back a, uncordon b, uncordon c, drain d"},
				{"gone s", "give-back a, uncordon b, uncordon c, drain d"},
				{"open b", "give-back a, uncordon c, drain d"},
				{"open c", "give-back a, drain d"},
				{"gone a", "drain d"},
				{"gone d", ""},
			},
			end: "partial aborted done skipped",
		},
		"a node dies to which pods are to go, while others are bought": {
			commands: []string{"-a +x", "-b +y >x >s", "-c +z >t"}, parallel: 2,
			steps: [][2]string{
				{"", "buy x, cordon a, buy z, cordon c"},
				{"ready x", "drain a, buy z, cordon c"},
				{"gone a", "buy y, cordon b, buy z, cordon c"},
				{"gone x", "give-back y, uncordon b, buy z, cordon c"},
				{"gone t", "give-back y, uncordon b, give-back z, uncordon c"},
				{"gone y", "uncordon b, give-back z, uncordon c"},
				{"open b", "give-back z, uncordon c"},
				{"failed z", "uncordon c"},
				{"open c", ""},
			},
			end: "done reverted reverted",
		},
		"an existing node dies before pods go there": {
			commands: []string{"-a", "-b >s"},
			steps:    [][2]string{{"", "drain a"}, {"gone s", "drain a"}, {"gone a", ""}},
			end:      "done skipped",
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
	require.EqualError(t, err, "execution: gone of node z, which no command of the plan names: report nothing about it; if it has died, make a new plan")
	var unexpected *execution.UnexpectedError
	require.ErrorAs(t, err, &unexpected)
	assert.Equal(t, -1, unexpected.Command)
}

// An unknown fact is an error in every state of its node. So is a fact that never holds for such a
// node.
func TestFactsThatNeverFit(t *testing.T) {
	states := []execution.Run{execution.New([]plan.Command{command("-a +x >s"), command("-b +y ^")}, 1)}
	for _, e := range []string{"gone b", "ready x", "failed a", "open a", "gone s", "gone x"} {
		fact, node, _ := strings.Cut(e, " ")
		r, err := states[len(states)-1].Tell(execution.Event{Fact: execution.Fact(fact), Node: node})
		require.NoError(t, err, e)
		states = append(states, r)
	}
	for i, r := range states {
		for _, node := range []string{"a", "b", "x", "y", "s"} {
			for _, fact := range []execution.Fact{"", "Empty", "emtpy", "drain"} {
				same, err := r.Tell(execution.Event{Fact: fact, Node: node})
				var unexpected *execution.UnexpectedError
				require.ErrorAs(t, err, &unexpected)
				require.EqualError(t, err, fmt.Sprintf("execution: there is no fact %q (of node %s); the facts are ready, empty, gone, open and failed", fact, node))
				assert.Equal(t, r, same)
			}
			never := map[bool][]execution.Fact{true: {execution.Ready}, false: {execution.Empty, execution.Open}}[node == "a" || node == "b"]
			for _, fact := range never {
				_, err := r.Tell(execution.Event{Fact: fact, Node: node})
				require.Error(t, err, "state %d: %s of %s", i, fact, node)
			}
		}
	}
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
		execution.GiveBack: {execution.Gone}, execution.Uncordon: {execution.Open}, execution.Cordon: {execution.Gone}, // it has died
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
					require.True(t, ends, "%s of %s", fact, a.Kind)
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
