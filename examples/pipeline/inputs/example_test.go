package inputs_test

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

// The flags that all programs share: registered, read, and checked for slips.
func ExampleFlags() {
	var f inputs.Flags
	set := pflag.NewFlagSet("plan", pflag.ContinueOnError)
	f.Register(set)
	for _, args := range [][]string{{"-f", "pods.yaml", "--region", "eu-west-1"}, {"-o", "jsno"}} {
		if err := set.Parse(args); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(f.Files, f.Region, f.Check())
	}
	// Output:
	// [pods.yaml] eu-west-1 <nil>
	// [pods.yaml] eu-west-1 --output "jsno": want one of table, wide, json, yaml (did you mean "json"?)
}

// A program says once which flags go together.
func ExampleCombined() {
	set := pflag.NewFlagSet("plan", pflag.ContinueOnError)
	set.String("diff", "", "")
	set.String("proof", "", "")
	if err := set.Parse([]string{"--diff", "new.yaml", "--proof", "plan.json"}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(inputs.Combined(set, inputs.Combination{Flag: "diff", Does: "compares two plans", Without: []string{"proof"}}))
	// Output: --diff compares two plans: leave out --proof
}

// How to plan, as provision and launch take it.
func ExamplePlanning() {
	var p inputs.Planning
	cmd := &cobra.Command{Use: "plan"}
	p.Register(cmd)
	for _, args := range [][]string{{"--effort", "best", "--max-node-cpu", "64"}, {"--effort", "bset"}} {
		if err := cmd.Flags().Parse(args); err != nil {
			fmt.Println(err)
			return
		}
		o, err := p.Options()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(o.Packing.Effort, o.Objective.MostCPU)
	}
	// Output:
	// best 64
	// --effort "bset": want one of fast, default, best (did you mean "best"?)
}

// What a node counts for beyond its price, as provision and consolidate take it.
func ExampleObjective() {
	var o inputs.Objective
	set := pflag.NewFlagSet("plan", pflag.ContinueOnError)
	o.Register(set)
	for _, args := range [][]string{{"--per-node", "0.02", "--factor", "karpenter.k8s.aws/instance-generation<6: 1.3"}, {"--per-node", "-1", "--factor", "old: much"}} {
		if err := set.Parse(args); err != nil {
			fmt.Println(err)
			return
		}
		objective, err := o.Parse()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(objective.PerNode, objective.Factors[0].Match, objective.Factors[0].Times)
	}
	// Output:
	// 0.02 karpenter.k8s.aws/instance-generation<=5 1.3
	// --per-node -1: want dollars an hour, not negative
	// --factor "old: much": want a positive number after the colon
}

// What is committed, for which nodes, at which discount.
func ExampleSavingsPlan() {
	c, err := inputs.SavingsPlan("karpenter.k8s.aws/instance-family in (m7i): 2.5 at 28%")
	fmt.Println(c.Match, c.PerHour, c.PercentOff, err)
	_, err = inputs.SavingsPlan("2.5")
	fmt.Println(err)
	// Output:
	// karpenter.k8s.aws/instance-family in (m7i) 2.5 28 <nil>
	// --savings-plan "2.5": want "REQUIREMENTS: DOLLARS at PERCENT%", such as "karpenter.k8s.aws/instance-family in (m7i): 2.5 at 28%"
}

// A program that has printed its answer, and the answer is "not all", has nothing more to say: its exit code does.
func ExampleExitError() {
	fmt.Println(inputs.End(os.Stdout, &inputs.ExitError{Code: inputs.ExitNotAll}))
	fmt.Println(inputs.End(os.Stdout, nil))
	// Output:
	// 3
	// 0
}

// Without files, the sample is read.
func ExampleCluster() {
	var f inputs.Flags
	c, err := f.Read("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: i}]}\n", nil, io.Discard)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(c.Snapshot.Pods), "pod,", len(c.Groups), "groups")
	fmt.Println(inputs.Encode(os.Stdout, "yaml", map[string]int{"pods": len(c.Snapshot.Pods)}))
	// Output:
	// 1 pod, 0 groups
	// pods: 1
	// <nil>
}
