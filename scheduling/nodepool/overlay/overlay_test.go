package overlay_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/scheduling/nodepool/overlay"
)

func object(spec string) []byte {
	return []byte(`{"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "a"}, "spec": ` + spec + `}`)
}

func TestAdjust(t *testing.T) {
	for spec, want := range map[string]float64{
		`{}`:                           2,
		`{"price": "0.35"}`:            0.35,
		`{"price": "0"}`:               0,
		`{"priceAdjustment": "+0.5"}`:  2.5,
		`{"priceAdjustment": "-.5"}`:   1.5,
		`{"priceAdjustment": "-3"}`:    0,
		`{"priceAdjustment": "+150%"}`: 5,
		`{"priceAdjustment": "-10%"}`:  1.8,
		`{"priceAdjustment": "-100%"}`: 0,
	} {
		o, err := overlay.Decode(object(spec))
		require.NoError(t, err, spec)
		assert.InDelta(t, want, o.Adjust(2), 1e-12, spec)
	}
}

func TestErrors(t *testing.T) {
	for spec, want := range map[string]string{
		`{"price": "-1"}`:                                       `spec.price: "-1": want a price per hour such as "1.25"`,
		`{"price": "1e3"}`:                                      `spec.price: "1e3": want a price per hour such as "1.25"`,
		`{"price": 1}`:                                          `spec.price: want a string, got a number 1 (put the text in quotes)`,
		`{"priceAdjustment": "10%"}`:                            `spec.priceAdjustment: "10%": want an amount or a percentage with its sign, such as "-0.10" or "+15%"`,
		`{"priceAdjustment": "-101%"}`:                          `spec.priceAdjustment: "-101%": a price can fall by at most 100%`,
		`{"price": "1", "priceAdjustment": "+1"}`:               `spec.priceAdjustment: set either price or priceAdjustment, not both`,
		`{"weight": 10001}`:                                     `spec.weight: 10001: want 1 to 10000`,
		`{"capacity": {"memory": "1Gi"}}`:                       `spec.capacity.memory: an overlay cannot change memory, only extended resources`,
		`{"capacity": {"example.com/x": "-1"}}`:                 `spec.capacity["example.com/x"]: -1: must not be negative`,
		`{"requirements": [{"key": "a", "operator": "NotIn"}]}`: `spec.requirements[0].values: operator NotIn needs at least one value`,
		`{"requirement": []}`:                                   `spec.requirement: unknown field "requirement": did you mean "requirements"?`,
	} {
		_, err := overlay.Decode(object(spec))
		assert.EqualError(t, err, "nodepool: NodeOverlay a: "+want, spec)
	}
	for _, text := range []string{"", "null", "{}", `{"apiVersion": "karpenter.sh/v1", "kind": "NodeOverlay", "metadata": {"name": "a"}}`} {
		_, err := overlay.Decode([]byte(text))
		assert.Error(t, err, text)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(object(`{"price": "0.35", "requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}`))
	f.Add(object(`{"priceAdjustment": "-12.5%", "capacity": {"a/b": 1}, "weight": 7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if o, err := overlay.Decode(data); err == nil {
			require.GreaterOrEqual(t, o.Adjust(1), 0.0)
		}
	})
}

func ExampleDecode() {
	o, err := overlay.Decode(object(`{"priceAdjustment": "-10%", "requirements": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m6a"]}]}`))
	fmt.Println(o.Requirements, o.Adjust(1), err)
	// Output: karpenter.k8s.aws/instance-family in (m6a) 0.9 <nil>
}

func ExampleNodeOverlay() {
	fmt.Println(overlay.NodeOverlay{Adjustment: 0.25}.Adjust(1))
	// Output: 1.25
}
