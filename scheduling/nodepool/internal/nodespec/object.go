package nodespec

import (
	"encoding/json"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

// Object returns the JSON document of a Go value. If it has no apiVersion and kind, it gets the
// given ones. The error is that of encoding.
func Object(value any, apiVersion, kind string) (strictjson.Node, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return strictjson.Node{}, err
	}
	n, err := strictjson.Parse(data)
	for _, m := range []struct{ key, text string }{{"apiVersion", apiVersion}, {"kind", kind}} {
		if n.Kind == strictjson.Object && n.Get(m.key) == nil {
			n.Members = append(n.Members, strictjson.Member{Key: m.key, Value: strictjson.Node{Kind: strictjson.String, Text: m.text}})
		}
	}
	return n, err
}

// ClassRef is a reference to a node class as manifests have it. APIVersion is the form before
// karpenter.sh/v1, and Group the form since.
type ClassRef struct {
	Group      string `json:"group"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	APIVersion string `json:"apiVersion"`
}
