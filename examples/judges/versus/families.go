package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
)

// family is a sort of pods and what may be bought for them.
type family struct {
	name, what string
	pods       func(n int, seed uint64) []*corev1.Pod
	catalogue  func() ([]scenario.Type, error)
}

// families are what is compared. The first is the mix of Karpenter's own benchmark.
func families() []family {
	fixed := func(types []scenario.Type) func() ([]scenario.Type, error) {
		return func() ([]scenario.Type, error) { return types, nil }
	}
	return []family{
		{"diverse", "a fifth each plain, spread over zones, spread over nodes, near by zone, apart by node, as in Karpenter's own benchmark; 400 linear types", scenario.Diverse, fixed(scenario.Linear(400))},
		{"deployments", "deployments of 5 to 50 replicas with mixed constraints; a made-up cloud of 34 types", scenario.Deployments, fixed(scenario.Cloud())},
		{"distinct", "pods of which no two ask for the same, without constraints; the same cloud", scenario.Distinct, fixed(scenario.Cloud())},
		{"usual", "deployments of a few common sizes without constraints; every EC2 type of us-east-1", scenario.Usual, amazon},
	}
}

func familyNames() []string {
	var out []string
	for _, f := range families() {
		out = append(out, f.name)
	}
	return out
}

func familiesNamed(list string) ([]family, error) {
	all := families()
	if list == "" {
		return all, nil
	}
	var out []family
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(f family) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%q: want some of %s", name, strings.Join(familyNames(), ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// amazon is the embedded EC2 catalogue in the form that both read.
func amazon() ([]scenario.Type, error) {
	types, err := ec2.Catalogue("us-east-1")
	if err != nil {
		return nil, err
	}
	data, err := kwok.Write(types)
	if err != nil {
		return nil, err
	}
	var out []scenario.Type
	return out, json.Unmarshal(data, &out)
}
