package main

import (
	"encoding/json"
	"os"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/proof"
)

// writeProof writes the plan with its proof to the file that the flag names, for examples/check.
func (o *options) writeProof(packed *plan.Plan) error {
	if o.proof == "" {
		return nil
	}
	d, err := proof.Of(packed)
	if err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return os.WriteFile(o.proof, append(text, '\n'), 0o600)
}
