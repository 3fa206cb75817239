package inputs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Combination says with which other flags a flag may be combined. [Combined] refuses all other
// combinations, instead of ignoring a flag. A flag counts only if its value is not the default.
type Combination struct {
	Flag string
	// Does says what the flag does, as the end of a sentence: "compares two plans".
	Does string
	// Without lists the flags that must not be set with Flag, because one of the two would have no
	// effect.
	Without []string
	// With lists flags, and at least one of them must be set with Flag. nil asks for none.
	With []string
	// Outputs lists the values of --output besides the default that Flag changes. nil means all.
	Outputs []string
}

// Combined returns an error that says for each flag which other flags to leave out or to add. It
// must be called after the flags were parsed.
func Combined(flags *pflag.FlagSet, list ...Combination) error {
	var errs []error
	for _, c := range list {
		if !isSet(flags, c.Flag) {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(c.Without), func(name string) bool { return !isSet(flags, name) })
		if len(others) > 0 {
			errs = append(errs, fmt.Errorf("%s %s: leave out %s", spelled(c.Flag), c.Does, listed("and", others)))
		}
		if c.With != nil && !slices.ContainsFunc(c.With, func(name string) bool { return isSet(flags, name) }) {
			errs = append(errs, fmt.Errorf("%s %s: want %s, too", spelled(c.Flag), c.Does, listed("or", c.With)))
		}
		if f := flags.Lookup("output"); c.Outputs != nil && isSet(flags, "output") && !slices.Contains(c.Outputs, f.Value.String()) {
			if len(c.Outputs) == 0 {
				errs = append(errs, fmt.Errorf("%s %s: leave out -o %s", spelled(c.Flag), c.Does, f.Value))
			} else {
				errs = append(errs, fmt.Errorf("%s %s: want -o %s", spelled(c.Flag), c.Does, alternatives("or", append([]string{f.DefValue}, c.Outputs...))))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Bad(err)
	}
	return nil
}

// isSet reports whether a flag has another value than the default.
func isSet(flags *pflag.FlagSet, name string) bool {
	f := flags.Lookup(name)
	return f != nil && f.Changed && f.Value.String() != f.DefValue
}

// spelled returns a flag as people write it.
func spelled(name string) string {
	if name == "filename" {
		return "-f"
	}
	return "--" + name
}

func listed(conjunction string, flags []string) string {
	texts := make([]string, len(flags))
	for i, name := range flags {
		texts[i] = spelled(name)
	}
	return alternatives(conjunction, texts)
}

// alternatives joins texts with commas, and the last two with the conjunction.
func alternatives(conjunction string, texts []string) string {
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " " + conjunction + " " + texts[last]
}
