package inputs

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// Cluster is the cluster that the flags name.
type Cluster struct {
	Manifests *manifests.Snapshot
	Snapshot  scheduling.Snapshot
	Market    *pipeline.Market
	// Groups are the pods that run only together.
	Groups []gang.Group
}

// Read reads the manifests or the sample, opens the catalogue of their region, and makes a snapshot
// of both. Notes go to stderr.
func (f *Flags) Read(sample string, stdin io.Reader, stderr io.Writer) (*Cluster, error) {
	m, err := f.Manifests(sample, stdin)
	if err != nil {
		return nil, err
	}
	market, err := f.Market(m)
	if err != nil {
		return nil, err
	}
	s, notes, err := pipeline.Snapshot(m, market)
	if err != nil {
		return nil, Bad(err)
	}
	Note(stderr, slices.Concat(m.Notes, notes)...)
	return &Cluster{Manifests: m, Snapshot: s, Market: market, Groups: pipeline.Groups(m, s.Pods)}, nil
}

// Note writes a line for each note.
func Note(stderr io.Writer, notes ...string) {
	for _, n := range notes {
		fmt.Fprintln(stderr, "note:", n)
	}
}

// Encode writes a value as indented JSON, or as YAML if that is the format.
func Encode(out io.Writer, format string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if text = append(text, '\n'); format == "yaml" {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
	}
	_, err = out.Write(text)
	return err
}
