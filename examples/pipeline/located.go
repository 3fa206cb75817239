package pipeline

import (
	"errors"
	"fmt"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// located adds the file and line of a pool to each fault that was found in it after reading. It
// returns nil for nil.
func located(s *manifests.Snapshot, pool nodepool.NodePool, err error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, located(s, pool, e))
		}
		return errors.Join(all...)
	}
	kind := pool.Kind
	if kind == "" {
		kind = "NodePool"
	}
	what := kind + " " + pool.Name
	if at, ok := s.Position(kind, "", pool.Name); ok {
		what = at.String() + ": " + what
	}
	if field, ok := errors.AsType[manifests.FieldProblem](err); ok {
		path, detail := field.Field()
		return fmt.Errorf("%s: %s: %s", what, path, detail)
	}
	if bad, ok := errors.AsType[*scheduling.InvalidError](err); ok {
		err = bad.Err
	}
	return fmt.Errorf("%s: %w", what, err)
}
