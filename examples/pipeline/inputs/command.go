package inputs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/requirements"
)

// helpWidth is the number of columns of help where the terminal does not say less.
const helpWidth = 100

// Command makes cmd a program of the kind that all examples are: it takes no arguments but flags, says what is wrong with
// those and what may have been meant, and writes what run writes when run is over, in one piece. Its help is at most 100
// columns wide, and no wider than the terminal. It fills in Args, RunE, the flag error function and the template of the help.
func Command(cmd *cobra.Command, run func(cmd *cobra.Command, out io.Writer) error) *cobra.Command {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	width := helpWidth
	if columns := terminal.StyleOf(os.Stdout).Width; columns > 0 {
		width = min(width, columns)
	}
	cmd.Long = wrapped(cmd.Long, width)
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", width)))
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

// wrapped breaks the lines of each paragraph anew. Paragraphs are apart by an empty line.
func wrapped(long string, width int) string {
	var out []string
	for i, paragraph := range strings.Split(long, "\n\n") {
		if i > 0 {
			out = append(out, "")
		}
		for line := range strings.SplitSeq(text.WrapSoft(strings.Join(strings.Fields(paragraph), " "), width), "\n") {
			out = append(out, strings.TrimRight(line, " "))
		}
	}
	return strings.Join(out, "\n")
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
