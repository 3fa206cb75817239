package nodeclaim_test

import (
	"fmt"

	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
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

func ExampleNodeClaim() {
	c, _ := nodeclaim.Decode([]byte(claim))
	fmt.Println(c.Is(nodeclaim.Registered), c.Is(nodeclaim.Initialized))
	// Output: true false
}
