package nodespec

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/requirements"
)

// Report collects problems. Make one with [NewReport]; the zero value holds none.
type Report struct {
	// Problems are in the order in which they were found. The caller fills in their lines.
	Problems []strictjson.Problem
	decoding int // how many of them there were before checking began
}

// NewReport returns a report with the problems of decoding. Fields that cannot be decoded are not
// checked further.
func NewReport(decoding []strictjson.Problem) *Report {
	return &Report{Problems: decoding, decoding: len(decoding)}
}

// Add notes one problem at path, unless decoding found one there, above or below.
func (r *Report) Add(path, format string, args ...any) {
	for _, p := range r.Problems[:r.decoding] {
		if within(path, p.Path) || within(p.Path, path) {
			return
		}
	}
	r.Problems = append(r.Problems, strictjson.Problem{Path: path, Detail: fmt.Sprintf(format, args...)})
}

// Join makes an error of each problem and joins them; nil if there are none. A field that is listed
// twice for the same reason is reported once.
func Join(problems []strictjson.Problem, field func(path, detail string) error) error {
	var errs []error
	seen := map[[2]string]bool{}
	for _, p := range problems {
		if key := [2]string{p.Path, p.Detail}; !seen[key] {
			seen[key] = true
			errs = append(errs, field(p.Path, p.Detail))
		}
	}
	return errors.Join(errs...)
}

// within reports whether path is the parent path or lies below it.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// DidYouMean returns a hint in parentheses at the nearest candidate, or nothing.
func DidYouMean(word string, candidates ...string) string {
	if near, ok := requirements.Nearest(word, candidates); ok {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// OneOf checks that a word is one of the allowed ones.
func (r *Report) OneOf(path, word string, allowed ...string) bool {
	if slices.Contains(allowed, word) {
		return true
	}
	r.Add(path, "%s: want one of %s%s", strictjson.Quote(word), strings.Join(allowed, ", "), DidYouMean(word, allowed...))
	return false
}

// Range checks that an integer, which may be missing, lies within bounds.
func Range[T int | int32 | int64](r *Report, path string, value *T, low, high T) {
	if value != nil && (*value < low || *value > high) {
		r.Add(path, "%d: want %d to %d", *value, low, high)
	}
}

// Name checks the name of an object that becomes a label value of nodes.
func (r *Report) Name(path, name string) {
	if name == "" {
		r.Add(path, "the object needs a name")
		return
	}
	for _, msg := range validation.IsDNS1123Subdomain(name) {
		r.Add(path, "%s: %s", strictjson.Quote(name), msg)
	}
	if len(name) > validation.LabelValueMaxLength {
		r.Add(path, "%s: longer than %d characters, the maximum for the label that carries it on nodes",
			strictjson.Quote(name), validation.LabelValueMaxLength)
	}
}

// Quantities checks a resource list. It reports negative values, and misspelt names of resources
// without a domain, which would limit nothing.
func (r *Report) Quantities(path string, list corev1.ResourceList) {
	known := []string{"cpu", "memory", "ephemeral-storage", "pods", "nodes"}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at := path + strictjson.MapKey(string(name))
		q := list[name]
		if q.Sign() < 0 {
			r.Add(at, "%s: must not be negative", q.String())
		}
		if near := resources.Meant(name, known...); near != "" {
			r.Add(at, "unknown resource (did you mean %q?)", near)
		}
	}
}

// Never is the word for a duration without end.
const Never = "Never"

// Duration reads a duration made of hours, minutes and seconds. If never is allowed, it also reads
// the word Never, which gives nil. The text "" gives the default.
func (r *Report) Duration(path, text string, never bool, otherwise *time.Duration) *time.Duration {
	if text == "" {
		return otherwise
	}
	want, extra := "hours, minutes and seconds such as 1h30m", ""
	if never {
		want += ", or Never"
		if text == Never {
			return nil
		}
		extra = DidYouMean(text, Never)
	}
	d, err := time.ParseDuration(text)
	switch {
	case !regexp.MustCompile(`^([0-9]+(s|m|h))+$`).MatchString(text):
		r.Add(path, "%s: want %s%s", strictjson.Quote(text), want, extra)
	case err != nil:
		r.Add(path, "%s: too long; the maximum is 292 years", strictjson.Quote(text))
	default:
		return &d
	}
	return otherwise
}
