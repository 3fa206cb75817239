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

// CutItems is how many items a document is cut into by the look of its lines; 0 means that it is read as a whole.
func CutItems(data []byte) int {
	r := reader{}
	jobs := r.jobs(chunk{Position{"x", 1, 1}, data}, 0)
	if !jobs[0].part {
		return 0
	}
	return len(jobs)
}
