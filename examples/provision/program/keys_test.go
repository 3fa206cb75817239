package program

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keysOf lists the JSON keys of a struct as the guide writes them: in order, with ? before those that may be missing.
func keysOf(of reflect.Type) []string {
	var out []string
	for f := range of.Fields() {
		name, more, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			out = append(out, keysOf(f.Type)...)
		case name == "" || name == "-":
		case more != "":
			out = append(out, "?`"+name+"`")
		default:
			out = append(out, "`"+name+"`")
		}
	}
	return out
}

// The guide has each key of the output, in order, with the fields of its entries.
func TestTheGuideHasTheKeysOfTheOutput(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guide.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(guide), "### The plan as JSON\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var got [][]string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.Contains(cells[1], "`") {
			got = append(got, []string{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])})
		}
	}
	var want [][]string
	of := reflect.TypeFor[report]()
	for i, keys := 0, keysOf(of); i < of.NumField() && len(want) < len(keys); i++ {
		f := of.Field(i)
		if f.Tag.Get("json") == "" {
			continue
		}
		entry := f.Type
		for entry.Kind() == reflect.Slice || entry.Kind() == reflect.Pointer {
			entry = entry.Elem()
		}
		fields := ""
		if entry.Kind() == reflect.Struct {
			fields = strings.Join(keysOf(entry), ", ")
		}
		want = append(want, []string{keys[len(want)], fields})
	}
	assert.Equal(t, want, got)
}

// "and 1 more" hides a name for no gain.
func TestNamesThatExist(t *testing.T) {
	names := strings.Split("a b c d e f g h i j", " ")
	assert.Equal(t, "there are a, b, c, d, e, f, g, h", existing(names[:8]))
	assert.Equal(t, "there are a, b, c, d, e, f, g, h, i", existing(names[:9]))
	assert.Equal(t, "there are a, b, c, d, e, f, g, h and 2 more", existing(names))
}
