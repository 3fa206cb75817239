package replay_test

import (
	"flag"
	"os"
	"testing"

	"github.com/joinery-sdk/joinery/examples/judges/scenario"
)

var dump = flag.String("dump", "", "directory to write the scenario of -seed to")

func TestDump(t *testing.T) {
	if *dump == "" {
		t.Skip("no -dump")
	}
	seed := *first
	pods := *size
	if pods == 0 {
		pods = 5 + int(seed*37%196)
	}
	s := scenario.Generate(seed, scenario.Options{Pods: pods, NoVolumes: *noVolumes, Limits: seed%4 == 0})
	text, _ := s.YAML()
	_ = os.WriteFile(*dump+"/s.yaml", text, 0o644)
	types, _ := scenario.CatalogueJSON(s.Catalogue)
	_ = os.WriteFile(*dump+"/types.json", types, 0o644)
}
