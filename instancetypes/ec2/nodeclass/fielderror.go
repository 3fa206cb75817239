package nodeclass

import (
	"errors"
	"fmt"
)

// FieldError is one fault in a node class. Functions of this package return all faults that they
// found, joined by errors.Join.
type FieldError struct {
	Object string // kind and name
	Path   string // spec.blockDeviceMappings[0].ebs.volumeSize
	Detail string
}

// Error returns "nodeclass: object: path: detail".
func (e *FieldError) Error() string {
	text := "nodeclass: "
	if e.Object != "" {
		text += e.Object + ": "
	}
	if e.Path != "" {
		text += e.Path + ": "
	}
	return text + e.Detail
}

// Field returns the path and the detail, for readers that print them with a file and line.
func (e *FieldError) Field() (path, detail string) { return e.Path, e.Detail }

// report collects the faults of one object.
type report struct {
	object string
	errs   []error
}

func (r *report) bad(path, format string, args ...any) {
	r.errs = append(r.errs, &FieldError{Object: r.object, Path: path, Detail: fmt.Sprintf(format, args...)})
}

func (r *report) err() error { return errors.Join(r.errs...) }
