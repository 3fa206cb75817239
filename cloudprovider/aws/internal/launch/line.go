package launch

import (
	"fmt"
	"slices"
	"strings"
)

// Line says from which types something was launched: "from types a, b, c and 4 other(s)". Each type
// is named once, in the given order.
func Line(types []string) string {
	var unique []string
	for _, t := range types {
		if !slices.Contains(unique, t) {
			unique = append(unique, t)
		}
	}
	const shown = 3
	if len(unique) > shown {
		return fmt.Sprintf("from types %s and %d other(s)", strings.Join(unique[:shown], ", "), len(unique)-shown)
	}
	return "from types " + strings.Join(unique, ", ")
}
