package nodeclass

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// quantity is a quantity in JSON, as a string or a number.
type quantity struct{ resource.Quantity }

// UnmarshalJSON rejects quantities that would take long to parse.
func (q *quantity) UnmarshalJSON(raw []byte) error {
	text := string(bytes.TrimSpace(raw))
	if len(text) > 0 && text[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
	}
	parsed, err := resources.Parse(text)
	if err == nil {
		q.Quantity = parsed
	}
	return err
}
