package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/joinery-sdk/joinery/examples/plan"
)

// Confirm runs a program that does not trust the planner, such as a build of examples/check. The
// program reads the plan with its proof from stdin, and its output goes to out. The error says that
// the program cannot be run, or that its exit code is not 0, with what it wrote to stderr.
func Confirm(ctx context.Context, checker string, p *plan.Plan, out io.Writer) error {
	d, err := Of(p)
	if err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("proof: %w", err)
	}
	cmd := exec.CommandContext(ctx, checker)
	var said strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), out, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("proof: the checker does not confirm the plan: %w\n%s", err, said.String())
	}
	return nil
}
