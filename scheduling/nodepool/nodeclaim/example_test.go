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

// An object from a client does not say its kind. Everything else is read as strictly as from a
// manifest.
func ExampleDecodeObject() {
	type object struct {
		Metadata map[string]string `json:"metadata"`
		Spec     map[string]string `json:"spec"`
	}
	c, err := nodeclaim.DecodeObject(&object{Metadata: map[string]string{"name": "default-x"}})
	fmt.Println(c.Kind, c.Name, err)
	_, err = nodeclaim.DecodeObject(&object{Metadata: map[string]string{"name": "default-x"}, Spec: map[string]string{"expireAfter": "soon"}})
	fmt.Println(err != nil)
	// Output:
	// NodeClaim default-x <nil>
	// true
}
