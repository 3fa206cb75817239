package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

const help = `Usage: check < PROOF

Check verifies a plan that provision --proof FILE wrote. It reads the document from stdin, trusts nothing in the
planner, and takes no flags:

  provision -f cluster/ --proof plan.json
  check < plan.json

Exit codes: 0 all holds, 2 bad usage or an unreadable document, 3 faults, listed on stderr.
`

func start(args []string, in io.Reader, out, problems io.Writer) int {
	switch {
	case len(args) == 0:
		return run(in, out, problems)
	case len(args) == 1 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]):
		fmt.Fprint(out, help)
		return 0
	}
	fmt.Fprintf(problems, "check: %q: want the document on stdin, and no flags (see check --help)\n", args[0])
	return 2
}

// readable says what is missing if stdin is empty.
func readable(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("nothing on stdin: want what provision --proof FILE wrote (see check --help)")
	}
	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
