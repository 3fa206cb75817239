package manifests

import "github.com/joinery-sdk/joinery/scheduling/nodepool/strictjson"

// ParsePlain and ParseFull read one document in the two ways that must agree.
func ParsePlain(data []byte) (strictjson.Node, bool) {
	c := chunk{Position{"x", 1, 1}, data}
	if legible(c) != nil {
		return strictjson.Node{}, false
	}
	return parsePlain(c, &texts{})
}

// ParseFull is the YAML package's reading.
func ParseFull(data []byte) (strictjson.Node, error) {
	return parseYAML(chunk{Position{"x", 1, 1}, data}, &texts{})
}
