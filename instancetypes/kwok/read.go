package kwok

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// Read reads a catalogue. The types keep the order of the file. Missing fields have defaults:
// operating systems are linux, "Available" is true, and pods are 110 as in every kubelet. A missing
// price is a fault.
//
// The error joins every fault found. Each is a [*FieldError] or, for faults of the catalogue as a
// whole (duplicate names and offerings, absurd sizes), an [*instancetypes.InvalidError]. In that
// case no types are returned. The cost is linear in the input.
func Read(data []byte) ([]instancetypes.InstanceType, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	var list []json.RawMessage
	if err := dec.Decode(&list); err != nil {
		return nil, broken(data, err)
	}
	if list == nil {
		return nil, &FieldError{Path: position(data, dec.InputOffset()), Detail: "want a list of instance types, got a JSON null"}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, &FieldError{Path: position(data, dec.InputOffset()), Detail: "there is text after the end of the list: want one list of instance types"}
	}
	types := make([]instancetypes.InstanceType, 0, len(list))
	var errs []error
	for i, raw := range list {
		r := reader{at: fmt.Sprintf("[%d]", i)}
		types = append(types, r.instanceType(raw))
		errs = append(errs, r.errs...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := instancetypes.Validate(types); err != nil {
		return nil, fmt.Errorf("kwok: %w", err)
	}
	return types, nil
}

func broken(data []byte, err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &FieldError{Path: position(data, wrong.Offset), Detail: "want a list of instance types, got a JSON " + wrong.Value}
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &FieldError{Path: position(data, syntax.Offset), Detail: syntax.Error()}
	}
	if errors.Is(err, io.EOF) {
		return &FieldError{Path: "line 1", Detail: "empty: want a list of instance types"}
	}
	return &FieldError{Path: position(data, int64(len(data))), Detail: err.Error()}
}

// position converts an offset to a line.
func position(data []byte, offset int64) string {
	offset = min(max(offset, 0), int64(len(data)))
	return fmt.Sprintf("line %d", 1+bytes.Count(data[:offset], []byte("\n")))
}

func (r *reader) instanceType(raw json.RawMessage) instancetypes.InstanceType {
	var t instancetypes.InstanceType
	f := r.object("", raw, "name", "architecture", "operatingSystems", "resources", "offerings", "requirements", "overhead", "retired")
	if f == nil {
		return t
	}
	r.value(".name", f["name"], &t.Name, "a string")
	r.name = t.Name
	r.labelValue(".name", t.Name)
	r.value(".retired", f["retired"], &t.Retired, "true or false")

	var rs []requirements.Requirement
	rs = append(rs, requirements.In(corev1.LabelInstanceTypeStable, t.Name))
	var architecture string
	if r.value(".architecture", f["architecture"], &architecture, "a string such as amd64") && architecture != "" {
		r.labelValue(".architecture", architecture)
		rs = append(rs, requirements.In(corev1.LabelArchStable, architecture))
	}
	systems := []string{"linux"}
	if r.value(".operatingSystems", f["operatingSystems"], &systems, "a list of strings") && len(systems) == 0 {
		r.bad(".operatingSystems", "empty: want linux, windows or both")
		systems = []string{"linux"}
	}
	for i, system := range systems {
		r.labelValue(fmt.Sprintf(".operatingSystems[%d]", i), system)
	}
	rs = append(rs, requirements.In(corev1.LabelOSStable, systems...))

	t.Capacity = r.resources(".resources", f["resources"])
	if _, ok := t.Capacity[corev1.ResourcePods]; !ok {
		t.Capacity[corev1.ResourcePods] = *resource.NewQuantity(110, resource.DecimalSI)
	}
	if overhead := r.resources(".overhead", f["overhead"]); len(overhead) > 0 {
		t.Overhead.KubeReserved = overhead
	}
	t.Offerings = r.offerings(f["offerings"])
	rs = append(rs, places(t.Offerings)...)

	labels := kwokLabels(t)
	if raw := f["requirements"]; raw != nil {
		own := r.requirements(".requirements", raw)
		for q := range own.All() {
			delete(labels, q.Key())
		}
		rs = append(rs, slices.Collect(own.All())...)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		rs = append(rs, requirements.In(key, labels[key]))
	}
	var err error
	if t.Requirements, err = requirements.Of(rs...); err != nil {
		r.bad(".requirements", "%v", err)
	}
	return t
}

// labelValue rejects a value that a node's label cannot have.
func (r *reader) labelValue(path, value string) {
	for _, fault := range validation.IsValidLabelValue(value) {
		r.bad(path, "%q: %s", value, fault)
	}
}

// resources reads a resource list and reports one fault for each invalid quantity. Quantities may
// be strings or numbers.
func (r *reader) resources(path string, raw json.RawMessage) corev1.ResourceList {
	out := corev1.ResourceList{}
	if raw == nil {
		return out
	}
	list, ok := r.members(path, raw)
	if !ok {
		r.bad(path, "want an object of resources and quantities, got %s", kind(raw))
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at := path + "[" + name + "]"
		text := string(bytes.TrimSpace(list[name]))
		if len(text) > 0 && text[0] == '"' {
			r.value(at, list[name], &text, "a quantity")
		}
		q, err := resources.Parse(text)
		if err != nil {
			r.bad(at, "want a quantity such as 4, 500m or 8Gi, got %s", kind(list[name]))
			continue
		}
		out[corev1.ResourceName(name)] = q
	}
	return out
}

func (r *reader) offerings(raw json.RawMessage) []instancetypes.Offering {
	var list []json.RawMessage
	if !r.value(".offerings", raw, &list, "a list") {
		return nil
	}
	out := make([]instancetypes.Offering, 0, len(list))
	for i, raw := range list {
		at := fmt.Sprintf(".offerings[%d]", i)
		f := r.object(at, raw, "Price", "Available", "Requirements", "ReservationCapacity", "Commitment", "CommittedPerHour", "CommitmentRate")
		if f == nil {
			continue
		}
		o := instancetypes.Offering{Available: true}
		if f["Price"] == nil {
			r.bad(at+".Price", "missing: want a price in US dollars per hour")
		} else {
			r.value(at+".Price", f["Price"], &o.Price, "a finite number of US dollars per hour")
		}
		r.value(at+".Available", f["Available"], &o.Available, "true or false")
		r.value(at+".ReservationCapacity", f["ReservationCapacity"], &o.ReservationCount, "a count")
		r.value(at+".Commitment", f["Commitment"], &o.Commitment, "a string")
		r.value(at+".CommittedPerHour", f["CommittedPerHour"], &o.CommittedPerHour, "a number of US dollars per hour")
		r.value(at+".CommitmentRate", f["CommitmentRate"], &o.CommitmentRate, "a number of US dollars per hour")
		if raw := f["Requirements"]; raw != nil {
			o.Requirements = r.requirements(at+".Requirements", raw)
		}
		if capacity, ok := o.Requirements.Get(instancetypes.LabelCapacityType).Single(); ok && capacity == instancetypes.CapacityTypeReserved && f["ReservationCapacity"] != nil && o.ReservationCount == 0 {
			o.Available, o.Full = false, o.Available // a full reservation in Karpenter; here a count of 0 would mean any number
		}
		out = append(out, o)
	}
	return out
}

func (r *reader) requirements(path string, raw json.RawMessage) requirements.Set {
	var list []json.RawMessage
	if !r.value(path, raw, &list, "a list of requirements") {
		return requirements.Set{}
	}
	expressions := make([]corev1.NodeSelectorRequirement, 0, len(list))
	sound := true
	for i, raw := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		f := r.object(at, raw, "key", "operator", "values")
		var e corev1.NodeSelectorRequirement
		ok := f != nil
		for _, field := range []struct {
			name string
			v    any
			want string
		}{{"key", &e.Key, "a string"}, {"operator", (*string)(&e.Operator), "a string"}, {"values", &e.Values, "a list of strings"}} {
			if raw, given := f[field.name]; given {
				ok = r.value(at+"."+field.name, raw, field.v, field.want) && ok
			}
		}
		sound = sound && ok
		expressions = append(expressions, e)
	}
	if !sound {
		return requirements.Set{}
	}
	set, err := kube.FromExpressions(expressions)
	if err != nil {
		r.bad(path, "%v", err)
	}
	return set
}
