package inputs_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

func TestCommand(t *testing.T) {
	failure := errors.New("no room")
	for _, c := range []struct {
		args      []string
		files     bool
		err, text string
		code      int
	}{
		{nil, false, "no room", "half an answer\n", inputs.ExitInternal},
		{[]string{"pods.yaml"}, true, `"pods.yaml": name files with -f`, "", inputs.ExitInput},
		{[]string{"pods.yaml"}, false, `"pods.yaml": want only flags (see plan --help)`, "", inputs.ExitInput},
		{[]string{"--seeed=1"}, false, `unknown flag: --seeed (did you mean "--seed"?)`, "", inputs.ExitInput},
		{[]string{"--seed=x"}, false, `see plan --help`, "", inputs.ExitInput},
	} {
		cmd := inputs.Command(&cobra.Command{Use: "plan"}, func(_ *cobra.Command, out io.Writer) error {
			_, _ = io.WriteString(out, "half an answer\n")
			return failure
		})
		cmd.Flags().Int("seed", 0, "")
		if c.files {
			cmd.Flags().StringArrayP("filename", "f", nil, "")
		}
		inputs.Complete(cmd, "seed", "1", "2")
		var out, errs bytes.Buffer
		cmd.SetArgs(c.args)
		cmd.SetOut(&out)
		if c.args == nil {
			cmd.SetArgs([]string{})
		}
		err := cmd.Execute()
		assert.ErrorContains(t, err, c.err)
		assert.Equal(t, c.code, inputs.End(&errs, err))
		assert.Equal(t, c.text, out.String())
	}
}

func TestOneOf(t *testing.T) {
	assert.NoError(t, inputs.OneOf("sort", "price", "price", "name"))
	err := inputs.OneOf("sort", "prise", "price", "name")
	assert.EqualError(t, err, `--sort "prise": want one of price, name (did you mean "price"?)`)
	assert.Equal(t, inputs.ExitInput, inputs.End(io.Discard, err))
}

// A flag that has no effect beside another is refused; one that has its default value is not there.
func TestCombined(t *testing.T) {
	list := []inputs.Combination{
		{Flag: "diff", Does: "compares two plans", Without: []string{"proof", "sizes", "filename"}, Outputs: []string{"json"}},
		{Flag: "now", Does: "is when it begins", With: []string{"rehearse", "diff"}},
		{Flag: "explain", Does: "prints text", Outputs: []string{}},
	}
	for args, want := range map[string]string{
		"":                                "",
		"--diff a":                        "",
		"--diff a -o json":                "",
		"--diff a -o table":               "",
		"--diff a --sizes=false":          "",
		"--diff a -o html":                "--diff compares two plans: want -o table or json",
		"--diff a --sizes":                "--diff compares two plans: leave out --sizes",
		"--diff a --sizes --proof p -f x": "--diff compares two plans: leave out --proof, --sizes and -f",
		"--now n":                         "--now is when it begins: want --rehearse or --diff, too",
		"--now n --rehearse r":            "",
		"--explain p -o json --now n":     "--now is when it begins: want --rehearse or --diff, too\n--explain prints text: leave out -o json",
	} {
		cmd := &cobra.Command{Use: "plan"}
		f := cmd.Flags()
		for _, name := range []string{"diff", "proof", "now", "rehearse", "explain"} {
			f.String(name, "", "")
		}
		f.Bool("sizes", false, "")
		f.StringP("output", "o", "table", "")
		f.StringArrayP("filename", "f", nil, "")
		assert.NoError(t, f.Parse(strings.Fields(args)))
		err := inputs.Combined(f, list...)
		if want == "" {
			assert.NoError(t, err, args)
			continue
		}
		assert.EqualError(t, err, want)
		assert.Equal(t, inputs.ExitInput, inputs.End(io.Discard, err))
	}
}

func TestHelpFitsAHundredColumns(t *testing.T) {
	cmd := inputs.Command(&cobra.Command{Use: "plan"}, func(*cobra.Command, io.Writer) error { return nil })
	cmd.Flags().String("rules-that-must-hold", "", strings.Repeat("what must be true of the plan, and ", 9))
	var out bytes.Buffer
	cmd.SetArgs([]string{"--help"})
	cmd.SetOut(&out)
	assert.NoError(t, cmd.Execute())
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(line), 101, line)
	}
	assert.Equal(t, 9, strings.Count(strings.Join(strings.Fields(out.String()), " "), "what must be true of the plan, and"))
}
