package inputs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
)

// Objective is what the flags say of the cost of a node beyond its price, for programs that buy nodes and for those that give
// them back: both have to mean the same, or one undoes what the other did. The zero value is the price.
type Objective struct {
	factors      []string
	perNode      float64
	interruption float64
}

// Register adds the flags.
func (o *Objective) Register(set *pflag.FlagSet) {
	set.StringArrayVar(&o.factors, "factor", nil, "'REQUIREMENTS: NUMBER': count what matches so many times its price, for example 'karpenter.k8s.aws/instance-generation<6: 1.3' (repeatable, the first that matches)")
	set.Float64Var(&o.perNode, "per-node", 0, "dollars an hour that each node counts for besides, such as a licence")
	set.Float64Var(&o.interruption, "interruption", 0, "part of its price that spot capacity counts for besides, such as 0.2")
}

// Parse gives what the flags say. All that is wrong with them is said at once.
func (o *Objective) Parse() (*plan.Objective, error) {
	out := &plan.Objective{PerNode: o.perNode, Interruption: o.interruption}
	var errs []error
	bad := func(flag string, value any, want string) {
		errs = append(errs, fmt.Errorf("--%s %v: want %s", flag, value, want))
	}
	if !(o.perNode >= 0) || o.perNode > 1e6 {
		bad("per-node", o.perNode, "dollars an hour, not negative")
	}
	if !(o.interruption >= 0) || o.interruption > 1e6 {
		bad("interruption", o.interruption, "a part of the price, not negative")
	}
	for _, text := range o.factors {
		at := strings.LastIndexByte(text, ':')
		if at < 0 {
			bad("factor", strconv.Quote(text), `"REQUIREMENTS: NUMBER"`)
			continue
		}
		match, err := requirements.Parse(strings.TrimSpace(text[:at]))
		if err != nil {
			errs = append(errs, fmt.Errorf("--factor %q: %w", text, err))
			continue
		}
		times, err := strconv.ParseFloat(strings.TrimSpace(text[at+1:]), 64)
		if err != nil || !(times > 0) || times > 1e6 {
			bad("factor", strconv.Quote(text), "a positive number after the colon")
			continue
		}
		out.Factors = append(out.Factors, plan.Factor{Match: match, Times: times})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, Bad(err)
	}
	return out, nil
}
