// Package strictjson reads the JSON data model strictly: every unknown field, wrong type and key given twice is
// reported with its path and line, all of them at once, and with the name that was probably meant.
//
// encoding/json stops at the first wrong type, matches names without regard to case, and knows no lines. A person who
// edits manifests wants the opposite. The package therefore splits reading in two: a [Node] is a document with its
// lines, made from JSON by [Parse] or by a reader of another syntax such as YAML; a [Decoder] fills a Go value from it.
//
// A [Decoder] may be shared by many goroutines; a [Node] is read-only once built.
package strictjson
