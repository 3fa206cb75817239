package nodepool

// FieldError is one error in an object. The functions of this package and its sub-packages return
// all errors, joined with errors.Join. Use errors.As for one, or Unwrap() []error for each.
type FieldError struct {
	// Object is kind and name, such as "NodePool default", or only the kind if the object has no
	// name.
	Object string
	// Path is the field, such as "spec.template.spec.requirements[2].operator"; empty for the
	// object as a whole.
	Path string
	// Detail says what is wrong and, where it is known, the fix.
	Detail string
}

// Error returns "nodepool: object: path: detail".
func (e *FieldError) Error() string {
	text := "nodepool: "
	if e.Object != "" {
		text += e.Object + ": "
	}
	if e.Path != "" {
		text += e.Path + ": "
	}
	return text + e.Detail
}

// Field returns the path and the detail, for a caller that prints them beside a file and line.
func (e *FieldError) Field() (path, detail string) { return e.Path, e.Detail }
