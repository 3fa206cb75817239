package program

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

// movedFlags are the flags of examples/launch that this program once had. They are known, so that
// scripts that still use them are told where they went.
type movedFlags struct{ set *pflag.FlagSet }

func (m *movedFlags) register(set *pflag.FlagSet) {
	m.set = set
	for _, name := range []string{"launch", "dry-run", "yes", "show-user-data"} {
		set.Bool(name, false, "")
		_ = set.MarkHidden(name) // fails for unknown flags only
	}
	for _, name := range []string{"cluster", "endpoint", "instance-profile", "lag"} {
		set.String(name, "", "")
		_ = set.MarkHidden(name)
	}
}

func (m *movedFlags) check() (err error) {
	m.set.Visit(func(f *pflag.Flag) {
		if f.Hidden && err == nil {
			err = inputs.Bad(fmt.Errorf("--%s: buying is a separate program: go run ./examples/launch buys a plan on EC2, and its --dry-run prints the requests", f.Name))
		}
	})
	return err
}
