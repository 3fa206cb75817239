package program

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

var update = flag.Bool("update", false, "rewrite the expected output of the scenarios; commit only what you understand")

// result is what one run printed and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

// run is the program, in this process.
func run(stdin string, args ...string) result {
	var out, errs bytes.Buffer
	cmd := Command(strings.NewReader(stdin))
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	code := inputs.End(&errs, cmd.Execute())
	return result{out.String(), errs.String(), code}
}

// A scenario is a text file that reads like documentation: prose, then parts that start with "-- name --". The part args
// holds the flags; stdout, stderr and exit what is expected; every other part is a file.
type scenario struct {
	path, prose string
	names       []string
	parts       map[string]string
}

func readScenario(t *testing.T, path string) *scenario {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	s := &scenario{path: path, parts: map[string]string{}}
	name := ""
	for line := range strings.Lines(string(data)) {
		text := strings.TrimSpace(line)
		if strings.HasPrefix(text, "-- ") && strings.HasSuffix(text, " --") {
			name = strings.TrimSuffix(strings.TrimPrefix(text, "-- "), " --")
			s.names = append(s.names, name)
			s.parts[name] = ""
			continue
		}
		if name == "" {
			s.prose += line
		} else {
			s.parts[name] += line
		}
	}
	return s
}

func (s *scenario) set(name, value string) {
	if _, ok := s.parts[name]; !ok {
		s.names = append(s.names, name)
	}
	s.parts[name] = value
}

func (s *scenario) write(t *testing.T) {
	t.Helper()
	text := s.prose
	for _, n := range s.names {
		text += "-- " + n + " --\n" + s.parts[n]
	}
	require.NoError(t, os.WriteFile(s.path, []byte(text), 0o644))
}

func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			if testing.Short() && filepath.Base(path) == "page.txt" {
				t.Skip("plans the sample anew for each size of nodes")
			}
			s := readScenario(t, path)
			dir := t.TempDir()
			for _, n := range s.names {
				switch n {
				case "args", "stdout", "stderr", "exit":
				default:
					require.NoError(t, os.WriteFile(filepath.Join(dir, n), []byte(s.parts[n]), 0o600))
				}
			}
			args := []string{"--no-timing"}
			for a := range strings.FieldsSeq(s.parts["args"]) {
				args = append(args, strings.ReplaceAll(a, "$DIR", dir))
			}
			got := run("", args...)
			got.stdout = strings.ReplaceAll(got.stdout, dir+"/", "")
			got.stderr = strings.ReplaceAll(got.stderr, dir+"/", "")
			if *update {
				s.set("exit", fmt.Sprintln(got.code))
				s.set("stdout", got.stdout)
				s.set("stderr", got.stderr)
				s.write(t)
				return
			}
			require.Equal(t, s.parts["stdout"], got.stdout)
			require.Equal(t, s.parts["stderr"], got.stderr)
			require.Equal(t, strings.TrimSpace(s.parts["exit"]), fmt.Sprint(got.code))
		})
	}
}
