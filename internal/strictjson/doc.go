// Package strictjson reads the JSON data model strictly: it reports every unknown field, wrong type
// and repeated key, all at once. Each report has the path, the line and, for an unknown field, the
// name that was probably meant.
//
// encoding/json stops at the first wrong type, matches names without regard to case, and knows no
// lines. A person who edits manifests wants the opposite. So the package reads in two steps.
// [Parse], or a reader of another syntax such as YAML, makes a [Node]: a document with its lines.
// Then a [Decoder] fills a Go value from the node.
//
// A [Decoder] is safe for concurrent use. So is a [Node] that is not modified any more.
package strictjson
