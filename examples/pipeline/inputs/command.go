package inputs

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/requirements"
)

// helpWidth is the number of columns of help, unless the terminal is narrower.
const helpWidth = 100

// Command gives cmd the behaviour of all example programs. It accepts flags but no arguments, and
// says what is wrong with them and what may have been meant. It writes the output of run in one
// piece when run has ended. The words "help" and "version" do what --help and --version do. Its
// help is at most 100 columns wide, and no wider than the terminal. Command sets Args, RunE, the
// flag error function and the template of the help.
func Command(cmd *cobra.Command, run func(cmd *cobra.Command, out io.Writer) error) *cobra.Command {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	width := helpWidth
	if columns := terminal.StyleOf(os.Stdout).Width; columns > 0 {
		width = min(width, columns)
	}
	cmd.Long = wrapped(cmd.Long, width)
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", width)))
	cmd.Version = version()
	cmd.SetVersionTemplate("{{.DisplayName}} {{.Version}}\n")
	cmd.Args = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0, len(args) == 1 && (args[0] == wordHelp || args[0] == wordVersion):
			return nil
		case c.Flags().Lookup("filename") != nil:
			return Bad(fmt.Errorf("%q: name files with -f; everything else is a flag (see %s --help)", args[0], c.CommandPath()))
		}
		return Bad(fmt.Errorf("%q: want only flags (see %s --help)", args[0], c.CommandPath()))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 1 && args[0] == wordHelp:
			return cmd.Help()
		case len(args) == 1 && args[0] == wordVersion:
			_, err := fmt.Fprintln(cmd.OutOrStdout(), cmd.DisplayName(), cmd.Version)
			return err
		}
		out := bufio.NewWriter(cmd.OutOrStdout())
		return errors.Join(run(cmd, out), out.Flush())
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			if want, ok := wanted(invalid.GetFlag().Value.Type()); ok {
				return Bad(fmt.Errorf("--%s %q: want %s (see %s --help)", invalid.GetFlag().Name, invalid.GetValue(), want, c.CommandPath()))
			}
		}
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		for word := range strings.FieldsSeq(err.Error()) {
			if near, ok := requirements.Nearest(word, known); ok && strings.HasPrefix(word, "--") && strings.HasPrefix(err.Error(), "unknown flag") {
				return Bad(fmt.Errorf("%w (did you mean %q?)", err, near))
			}
		}
		return Bad(fmt.Errorf("%w (see %s --help)", err, c.CommandPath()))
	})
	return cmd
}

// ParseFlags parses the arguments of a program that uses package flag and takes no arguments
// besides flags. The words "help" and "version" do what --help and --version do, as in programs of
// Command. If done is true, the program must end with the exit code. ParseFlags has then written
// the help or the version to out, or a message about the arguments to problems. ParseFlags sets
// Usage and the output of flags.
func ParseFlags(flags *flag.FlagSet, args []string, out, problems io.Writer) (code int, done bool) {
	return ParseFlagsExplained(flags, "", args, out, problems)
}

// ParseFlagsExplained is [ParseFlags] with a text at the end of the help, such as what the exit
// codes mean.
func ParseFlagsExplained(flags *flag.FlagSet, text string, args []string, out, problems io.Writer) (code int, done bool) {
	flags.SetOutput(problems)
	flags.Usage = func() {}
	wantVersion := flags.Bool(wordVersion, false, "print the version")
	err := flags.Parse(args)
	word := ""
	if err == nil && flags.NArg() == 1 {
		word = flags.Arg(0)
	}
	switch {
	case errors.Is(err, flag.ErrHelp), word == wordHelp:
		flags.SetOutput(out)
		fmt.Fprintf(out, "Usage of %s:\n", flags.Name())
		flags.PrintDefaults()
		if text != "" {
			fmt.Fprintf(out, "\n%s\n", text)
		}
		return ExitOK, true
	case err != nil:
		fmt.Fprintf(problems, "see %s --help\n", flags.Name())
		return ExitInput, true
	case *wantVersion, word == wordVersion:
		fmt.Fprintln(out, flags.Name(), version())
		return ExitOK, true
	case flags.NArg() > 0:
		fmt.Fprintf(problems, "%q: %s takes only flags (see %[2]s --help)\n", flags.Arg(0), flags.Name())
		return ExitInput, true
	}
	return ExitOK, false
}

// wanted says what a flag of the type takes.
func wanted(typ string) (string, bool) {
	switch typ {
	case "float32", "float64":
		return "a number", true
	case "int", "int32", "int64", "uint", "uint32", "uint64":
		return "a whole number", true
	case "bool":
		return "true or false", true
	case "duration":
		return "a duration, such as 90s or 1h30m", true
	}
	return "", false
}

// The words that do the same as the flags of these names.
const (
	wordHelp    = "help"
	wordVersion = "version"
)

// version returns the version of the module that the program was built from, and of Go.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown version"
	}
	return fmt.Sprintf("%s (%s)", info.Main.Version, info.GoVersion)
}

// wrapped wraps each paragraph again to the width. An empty line separates paragraphs.
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

// OneOf returns an error, with what may have been meant, unless the flag's value is one of the
// allowed ones.
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
