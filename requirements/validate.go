package requirements

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// InvalidError is a fault that makes the Kubernetes API reject a requirement. Path is relative to
// what was converted, for example "nodeSelectorTerms[2].matchExpressions[0].operator".
type InvalidError struct {
	Path   string
	Detail string
}

// Error returns "path: detail".
func (e *InvalidError) Error() string {
	if e.Path == "" {
		return e.Detail
	}
	return e.Path + ": " + e.Detail
}

// NodeNameKey is the key of a node's name, the field metadata.name that matchFields refers to. The
// algebra treats it like a label. It has a space, so no label can have this key.
const NodeNameKey = "node name"

// validate returns every fault of one requirement, joined.
func validate(key string, op Operator, values []string) error {
	var errs []error
	at := func(field, format string, args ...any) {
		errs = append(errs, &InvalidError{field, fmt.Sprintf(format, args...)})
	}
	if fault := keyFault(key); fault != "" {
		at("key", "%q: %s", key, fault)
	}
	badValues := func() {
		for i, v := range values {
			if v != "" && !isLabelText(v) {
				at(fmt.Sprintf("values[%d]", i), "%q: a label value is empty or %s", v, labelText)
			}
		}
	}
	switch op {
	case OpIn, OpNotIn:
		if len(values) == 0 {
			at("values", "operator %s needs at least one value", op)
		}
		badValues()
	case OpExists, OpDoesNotExist:
		if len(values) > 0 {
			at("values", "operator %s takes no values, got %q", op, values)
		}
	case OpGt, OpLt, OpGte, OpLte:
		if len(values) != 1 {
			at("values", "operator %s needs exactly one integer, got %d values", op, len(values))
		} else if n, err := strconv.ParseInt(values[0], 10, 64); errors.Is(err, strconv.ErrRange) && n > 0 && values[0][0] != '+' {
			at("values[0]", "%q: operator %s needs an integer of at most %d", values[0], op, math.MaxInt64)
		} else if (err != nil && n == 0) || values[0][0] == '+' {
			at("values[0]", "%q: operator %s needs an integer", values[0], op)
		} else if n < 0 { // the API takes label values only, and none starts with a sign
			at("values[0]", "%q: operator %s needs an integer that is not negative", values[0], op)
		}
	default:
		names := make([]string, 0, 8)
		for _, o := range Operators() {
			names = append(names, string(o))
		}
		hint := ""
		if near, ok := Nearest(string(op), names); ok {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		at("operator", "%q: want one of %s%s", op, strings.Join(names, ", "), hint)
	}
	return errors.Join(errs...)
}

const (
	lowerAlphanumeric = "abcdefghijklmnopqrstuvwxyz0123456789"
	alphanumeric      = lowerAlphanumeric + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	// labelText says what [isLabelText] accepts.
	labelText = "at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
)

// isLabelText reports whether a text can be a label's value or the name in its key.
func isLabelText(s string) bool { return len(s) <= 63 && isWord(s, alphanumeric, "-_.") }

// isDomain reports whether s is a DNS subdomain by the rules of Kubernetes.
func isDomain(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if !isWord(part, lowerAlphanumeric, "-") {
			return false
		}
	}
	return len(s) <= 253
}

// isWord reports whether s consists of letters and marks only and starts and ends with a letter.
func isWord(s, letters, marks string) bool {
	return s != "" && strings.Trim(s, letters+marks) == "" && strings.Trim(s[:1]+s[len(s)-1:], letters) == ""
}

// keyFault says why a text is not a label key; it is empty for a valid one. A key is "name" or
// "prefix/name", by the syntax that the Kubernetes documentation gives ("Labels and Selectors").
func keyFault(key string) string {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		prefix, name = "", key
	}
	switch {
	case strings.Contains(name, "/"):
		return "a label key has at most one '/'"
	case prefixed && !isDomain(prefix):
		return "the part before '/' is a DNS name such as example.com: at most 253 lower-case letters, digits, '-' and '.'"
	case name == "":
		return "a label key needs a name"
	case !isLabelText(name):
		return "the name in a label key is " + labelText
	}
	return ""
}
