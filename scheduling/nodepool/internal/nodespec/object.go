package nodespec

import (
	"encoding/json"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

// Object is the document of a Go value, with the apiVersion and kind that it is read by where it does not say them itself. The error
// says that the value cannot be written as JSON.
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
