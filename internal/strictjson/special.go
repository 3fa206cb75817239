package strictjson

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setter sets a value of a type that is not decoded by its structure.
type setter func(*Node, reflect.Value) error

// setterOf remembers the setters of types, since looking for methods by reflection is slow.
func (d *Decoder) setterOf(t reflect.Type) setter {
	if s, ok := d.setters.Load(t); ok {
		return s.(setter)
	}
	s := special(t)
	d.setters.Store(t, s)
	return s
}

// special returns the setter of a type, or nil if it is decoded by its structure.
func special(t reflect.Type) setter {
	switch t {
	case rawType:
		return func(n *Node, v reflect.Value) error { v.SetBytes(n.Raw()); return nil }
	case quantityType:
		return setQuantity
	case timeType, microTimeType:
		return setTime
	case durationType:
		return setDuration
	case intOrStringType:
		return setIntOrString
	case bytesType:
		return setBytes
	}
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(unmarshalerType) {
		return func(n *Node, v reflect.Value) error {
			return v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(n.Raw())
		}
	}
	return nil
}

var (
	quantityType    = reflect.TypeFor[resource.Quantity]()
	timeType        = reflect.TypeFor[metav1.Time]()
	microTimeType   = reflect.TypeFor[metav1.MicroTime]()
	durationType    = reflect.TypeFor[metav1.Duration]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
	bytesType       = reflect.TypeFor[[]byte]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

func wrongKind(n *Node, want string) error {
	if n.Kind == Array || n.Kind == Object || n.Kind == Null {
		return fmt.Errorf("want %s, got %s", want, n.Kind)
	}
	return fmt.Errorf("want %s, got %s %s", want, n.Kind, Quote(n.Text))
}

func setQuantity(n *Node, v reflect.Value) error {
	if n.Kind != String && n.Kind != Number {
		return wrongKind(n, "a quantity (such as 500m, 2, 1.5Gi)")
	}
	q, err := ParseQuantity(strings.TrimSpace(n.Text)) // as the API does
	if err != nil {
		return err
	}
	v.Set(reflect.ValueOf(q))
	return nil
}

// ParseQuantity reads a quantity as resource.ParseQuantity does. The error says in words what is
// wrong. Texts longer than 64 bytes and exponents of more than two digits are errors, because no
// quantity needs them and their cost has no bound.
func ParseQuantity(text string) (resource.Quantity, error) {
	const long = 64
	if len(text) > long {
		return resource.Quantity{}, fmt.Errorf("%s is too long for a quantity", Quote(text))
	}
	if i := strings.LastIndexAny(text, "eE"); i >= 0 {
		if _, err := strconv.Atoi(text[i+1:]); err == nil && len(strings.TrimLeft(text[i+1:], "+-0")) > 2 {
			return resource.Quantity{}, fmt.Errorf("%q is out of the range of quantities", text)
		}
	}
	q, err := resource.ParseQuantity(text)
	if err == nil {
		return q, nil
	}
	hint := ""
	if better, ok := betterQuantity(text); ok {
		hint = fmt.Sprintf(" (did you mean %q?)", better)
	}
	return resource.Quantity{}, fmt.Errorf("%q is not a quantity (such as 500m, 2, 1.5Gi)%s", text, hint)
}

// betterQuantity guesses which quantity a text with a foreign unit was meant to be.
func betterQuantity(text string) (string, bool) {
	t := strings.ReplaceAll(text, " ", "")
	if _, err := resource.ParseQuantity(t); err == nil && t != text {
		return t, true
	}
	number := strings.TrimRight(t, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	units := [][2]string{
		{"kb", "k"},
		{"mb", "M"},
		{"gb", "G"},
		{"tb", "T"},
		{"kib", "Ki"},
		{"mib", "Mi"},
		{"gib", "Gi"},
		{"tib", "Ti"},
		{"ki", "Ki"},
		{"mi", "Mi"},
		{"gi", "Gi"},
		{"ti", "Ti"},
		{"g", "G"},
		{"t", "T"},
		{"k", "k"},
		{"b", ""},
		{"cpu", ""},
		{"cpus", ""},
		{"core", ""},
		{"cores", ""},
		{"vcpu", ""},
		{"milli", "m"},
		{"millicores", "m"},
		{"", ""},
	}
	for _, u := range units {
		if number != "" && strings.EqualFold(t[len(number):], u[0]) {
			better := number + u[1]
			_, err := resource.ParseQuantity(better)
			return better, err == nil && better != text
		}
	}
	return "", false
}

func setTime(n *Node, v reflect.Value) error {
	if n.Kind != String {
		return wrongKind(n, "a time (such as 2006-01-02T15:04:05Z)")
	}
	t, err := time.Parse(time.RFC3339, n.Text)
	if err != nil {
		return fmt.Errorf("%s is not a time (such as 2006-01-02T15:04:05Z)", Quote(n.Text))
	}
	if v.Type() == timeType {
		v.Set(reflect.ValueOf(metav1.Time{Time: t}))
	} else {
		v.Set(reflect.ValueOf(metav1.MicroTime{Time: t}))
	}
	return nil
}

func setDuration(n *Node, v reflect.Value) error {
	if n.Kind != String {
		return wrongKind(n, "a duration (such as 30s, 5m, 1h30m)")
	}
	d, err := time.ParseDuration(n.Text)
	if err != nil {
		return fmt.Errorf("%s is not a duration (such as 30s, 5m, 1h30m)", Quote(n.Text))
	}
	v.Set(reflect.ValueOf(metav1.Duration{Duration: d}))
	return nil
}

func setIntOrString(n *Node, v reflect.Value) error {
	switch n.Kind {
	case String:
		v.Set(reflect.ValueOf(intstr.FromString(n.Text)))
		return nil
	case Number:
		i, err := strconv.ParseInt(n.Text, 10, 32)
		if err != nil {
			return fmt.Errorf("want an integer or a string, got the number %s", Quote(n.Text))
		}
		v.Set(reflect.ValueOf(intstr.FromInt32(int32(i))))
		return nil
	default: // refused below
	}
	return wrongKind(n, "an integer or a string")
}

func setBytes(n *Node, v reflect.Value) error {
	if n.Kind != String {
		return wrongKind(n, "a string in base64")
	}
	b, err := base64.StdEncoding.DecodeString(n.Text)
	if err != nil {
		return errors.New("the string is not base64")
	}
	v.SetBytes(b)
	return nil
}
