package kwok_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/kwok"
)

const whole = `[{"name": "m.4", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "4", "memory": "16Gi"}, "overhead": {"cpu": "1"}, "retired": false,
	"requirements": [{"key": "team", "operator": "In", "values": ["a"]}],
	"offerings": [{"Price": 1, "Available": true, "ReservationCapacity": 2, "Commitment": "c", "Requirements": [
		{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]}, {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}]}]`

// damaged yields the document once for each place with the damage: a key that is given twice, or a
// null in a list or as the whole.
func damaged(value any, yield func(text, where string)) {
	text := func(v any) string {
		out, _ := json.Marshal(v)
		return string(out)
	}
	yield("null", "the whole")
	switch v := value.(type) {
	case []any:
		for i, element := range v {
			damaged(element, func(text1, where string) {
				out := "["
				for k := range v {
					if k > 0 {
						out += ","
					}
					if k == i {
						out += text1
					} else {
						out += text(v[k])
					}
				}
				yield(out+"]", fmt.Sprintf("[%d] %s", i, where))
			})
		}
	case map[string]any:
		for key, member := range v {
			body := text(v)
			yield(fmt.Sprintf(`%s, %q: %s}`, body[:len(body)-1], key, text(member)), key+" twice")
			damaged(member, func(text1, where string) {
				if text1 == "null" { // a field that is null counts as missing
					return
				}
				out := "{"
				for k := range v {
					if len(out) > 1 {
						out += ","
					}
					if k == key {
						out += fmt.Sprintf("%q: %s", k, text1)
					} else {
						out += fmt.Sprintf("%q: %s", k, text(v[k]))
					}
				}
				yield(out+"}", key+" "+where)
			})
		}
	}
}

// What JSON readers answer differently is refused: a repeated key, and null where a value has to be.
func TestRepeatedKeysAndNull(t *testing.T) {
	_, err := kwok.Read([]byte(whole))
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal([]byte(whole), &value))
	n := 0
	damaged(value, func(text, where string) {
		n++
		_, err := kwok.Read([]byte(text))
		assert.Error(t, err, "%s: %s", where, text)
	})
	assert.Greater(t, n, 30)
}
