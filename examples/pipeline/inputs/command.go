package inputs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joinery-sdk/joinery/requirements"
)

// Command makes cmd a program of the kind that all examples are: it takes no arguments but flags, says what is wrong with
// those and what may have been meant, and writes what run writes when run is over, in one piece. It fills in Args, RunE and
// the flag error function.
func Command(cmd *cobra.Command, run func(cmd *cobra.Command, out io.Writer) error) *cobra.Command {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.Args = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return nil
		case c.Flags().Lookup("filename") != nil:
			return Bad(fmt.Errorf("%q: files are named by -f, and all else is said by flags (see %s --help)", args[0], c.Name()))
		}
		return Bad(fmt.Errorf("%q: everything is said by flags (see %s --help)", args[0], c.Name()))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		out := bufio.NewWriter(cmd.OutOrStdout())
		return errors.Join(run(cmd, out), out.Flush())
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		for word := range strings.FieldsSeq(err.Error()) {
			if near, ok := requirements.Nearest(word, known); ok && strings.HasPrefix(word, "--") && strings.HasPrefix(err.Error(), "unknown flag") {
				return Bad(fmt.Errorf("%w (did you mean %q?)", err, near))
			}
		}
		return Bad(fmt.Errorf("%w (see %s --help)", err, c.Name()))
	})
	return cmd
}

// Complete offers the values to shells that complete the flag.
func Complete(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	})
}

// OneOf is an error, with what may have been meant, unless the flag's value is one of those allowed.
func OneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	hint := ""
	if near, ok := requirements.Nearest(value, allowed); ok {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return Bad(fmt.Errorf("--%s %q: want one of %s%s", flag, value, strings.Join(allowed, ", "), hint))
}
