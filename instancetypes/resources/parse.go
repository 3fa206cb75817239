package resources

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	maxLength   = 64  // of a quantity's text
	maxExponent = 100 // of a quantity in scientific notation; an int64 ends at 18
)

// Parse reads a quantity from untrusted text. It rejects what [resource.ParseQuantity] would accept
// only after seconds of arithmetic: texts of more than 64 bytes, and exponents beyond 100, such as
// "1e-99999999".
func Parse(text string) (resource.Quantity, error) {
	if len(text) > maxLength {
		return resource.Quantity{}, fmt.Errorf("resources: %q...: a quantity of %d bytes, want at most %d", text[:maxLength], len(text), maxLength)
	}
	// "Ei" is a suffix, not an exponent.
	if i := strings.LastIndexAny(text, "eE"); i >= 0 && i < len(text)-1 && text[i+1:] != "i" {
		if n, err := strconv.Atoi(text[i+1:]); err != nil || n < -maxExponent || n > maxExponent {
			return resource.Quantity{}, fmt.Errorf("resources: %q: want an exponent from -%d to %d", text, maxExponent, maxExponent)
		}
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("resources: %q: want a quantity such as 4, 500m or 8Gi", text)
	}
	return q, nil
}
