package nodeclaim_test

import (
	"fmt"

	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/strictjson"
)

const claim = `{
	"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "default-x", "labels": {"karpenter.sh/nodepool": "default"}},
	"spec": {"requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]},
	"status": {"nodeName": "n1", "conditions": [{"type": "Registered", "status": "True"}]}}`

func ExampleDecode() {
	c, err := nodeclaim.Decode([]byte(claim))
	fmt.Println(c.Name, c.Pool, c.NodeName, err)
	// Output: default-x default n1 <nil>
}

func ExampleDecodeNode() {
	n, _ := strictjson.Parse([]byte(claim))
	c, err := nodeclaim.DecodeNode(&n)
	fmt.Println(c.Requirements, err)
	// Output: kubernetes.io/os in (linux) <nil>
}

func ExampleNodeClaim() {
	c, _ := nodeclaim.Decode([]byte(claim))
	fmt.Println(c.Is(nodeclaim.Registered), c.Is(nodeclaim.Initialized))
	// Output: true false
}

func ExampleCondition() {
	c := nodeclaim.NodeClaim{Conditions: []nodeclaim.Condition{{Type: nodeclaim.Drifted, Status: "True", Reason: "NodePoolDrifted"}}}
	drifted, ok := c.Condition(nodeclaim.Drifted)
	fmt.Println(drifted.Reason, ok)
	// Output: NodePoolDrifted true
}
