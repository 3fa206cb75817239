package pipeline

import (
	"cmp"
	"slices"

	"github.com/joinery-sdk/joinery/scheduling"
)

// Refusal says in one line why pods of a class have no place. It names the region that has a type or
// zone that they require, or else the reason of the pool that came closest. There must be a reason.
func (m *Market) Refusal(class *scheduling.Class, reasons []scheduling.Reason) string {
	for set := range class.Required.All() {
		for req := range set.All() {
			values, _ := req.Values()
			for _, v := range values {
				if text := m.Elsewhere(req.Key(), v); text != "" {
					return text
				}
			}
		}
	}
	if len(reasons) == 1 {
		return reasons[0].String()
	}
	// Where every pool fails alike, say it once.
	same := true
	for _, r := range reasons {
		same = same && r.Detail == reasons[0].Detail
	}
	if same {
		return "every pool: " + reasons[0].Detail
	}
	// The pool that came closest has the most to say.
	best := slices.MaxFunc(reasons, func(a, b scheduling.Reason) int {
		return cmp.Or(cmp.Compare(btoi(a.Pool != ""), btoi(b.Pool != "")), cmp.Compare(a.Stage.Depth(), b.Stage.Depth()))
	})
	return best.String()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
