package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/deprovision/plan"
)

// training is a group of all pods on nodes whose name begins with "train".
func training(minimum int) []eviction.Group {
	return []eviction.Group{{Name: "shop/train", Minimum: minimum, Member: func(p *corev1.Pod) bool { return strings.HasPrefix(p.Name, "train") }}}
}

// The pods of a training job move in one command, or its nodes stay.
func ExampleMake_groups() {
	w := newWorld("train-a 8 2", "train-b 8 2")
	w.Groups = training(4)
	for _, c := range planned(w.Cluster, w.toy, nil).Commands {
		fmt.Printf("%d nodes go, and %v moves: %s\n", len(c.Nodes), c.Groups, c.Why)
	}
	w.node("train-b").Pods[0].Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	for _, v := range planned(w.Cluster, w.toy, nil).Verdicts {
		fmt.Printf("%s: %s\n", v.Node, v.Detail)
	}
	// Output:
	// 2 nodes go, and [shop/train] moves: one new node does the work of 2; group shop/train moves whole
	// train-a: group shop/train needs all pods that would move, so node train-b would have to go as well, which must stay: shop/train-b-0: annotation karpenter.sh/do-not-disrupt=true
	// train-b: shop/train-b-0: annotation karpenter.sh/do-not-disrupt=true
}

// Pods that a group can spare move by themselves, unless it moves all or none.
func TestSparePodsMoveAlone(t *testing.T) {
	w := newWorld("train-a 4 1", "train-b 4 3")
	w.Groups = training(3)
	commands := planned(w.Cluster, w.toy, nil).Commands
	if assert.Len(t, commands, 1) {
		assert.Len(t, commands[0].Nodes, 1)
		assert.Empty(t, commands[0].Groups)
	}
	w.Groups[0].Whole = true
	for _, c := range planned(w.Cluster, w.toy, nil).Commands {
		assert.Len(t, c.Nodes, 2)
		assert.Equal(t, []string{"shop/train"}, c.Groups)
	}
}

// A machine that the cloud takes back goes by itself, and the others of its group stay where they are until its pods run again.
func TestAnInterruptionBreaksAGroup(t *testing.T) {
	w := newWorld("train-a 8 2", "train-b 8 2")
	w.Groups = training(0)
	w.Interruptions = []deprovision.Interruption{{Node: "train-a"}}
	r := planned(w.Cluster, w.toy, nil)
	if assert.Len(t, r.Commands, 1) {
		assert.Equal(t, []string{"shop/train"}, r.Commands[0].Groups)
		assert.Contains(t, r.Commands[0].Why, "group shop/train falls below its minimum")
	}
	assert.Equal(t, eligibility.PodGroup, r.Verdicts[1].By[0].Kind)
}

// A drifted node of a group waits for the others; when all have drifted, one command replaces them.
func TestDriftReplacesAGroupAtOnce(t *testing.T) {
	w := newWorld("train-a 3 2", "train-b 3 2")
	w.Groups = training(4)
	o := &plan.Options{Methods: []eligibility.Method{eligibility.Drift}}
	w.node("train-a").Drifted = []string{"its image is another"}
	r := planned(w.Cluster, w.toy, o)
	assert.Empty(t, r.Commands)
	assert.Contains(t, r.Verdicts[0].Detail, "group shop/train needs all pods that would move, and runs on node train-b, too")
	w.node("train-b").Drifted = []string{"its image is another"}
	r = planned(w.Cluster, w.toy, o)
	if assert.Len(t, r.Commands, 1) {
		assert.Len(t, r.Commands[0].Nodes, 2)
		assert.Equal(t, []string{"shop/train"}, r.Commands[0].Groups)
	}
}
