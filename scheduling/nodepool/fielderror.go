package nodepool

// FieldError is one error in an object. The functions of this package and its sub-packages return all errors, joined with errors.Join; use
// errors.As, or Unwrap() []error for each.
type FieldError struct {
	// Object is kind and name, such as "NodePool default"; the name is missing where the object has none.
	Object string
	// Path is the field, such as "spec.template.spec.requirements[2].operator"; empty for the object as a whole.
	Path string
	// Detail is what is wrong and, where it is known, the fix.
	Detail string
}

// Error is "nodepool: object: path: detail".
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

// Field returns the path and the detail, for a reader that prints them beside a file and line.
func (e *FieldError) Field() (path, detail string) { return e.Path, e.Detail }
