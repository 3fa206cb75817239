package capacityquota

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

// Versions returns the versions of the API that [Decode] reads, the one in use first.
func Versions() []string {
	return []string{"autoscaling.x-k8s.io/v1beta1", "autoscaling.x-k8s.io/v1alpha1"}
}

const (
	mostResources = 20 // maxProperties of the object's schema
	longestName   = 63 // of a resource, by a rule of the schema
)

// wireQuota is the object as an API server has it.
type wireQuota struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       struct {
		Selector *metav1.LabelSelector `json:"selector,omitempty"`
		Limits   *wireLimits           `json:"limits,omitempty"`
	} `json:"spec"`
	Status *struct {
		Used *struct {
			Resources corev1.ResourceList `json:"resources"`
		} `json:"used"`
		Conditions         []metav1.Condition `json:"conditions"`
		ObservedGeneration int64              `json:"observedGeneration"`
	} `json:"status,omitempty"`
}

type wireLimits struct {
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// MarshalJSON writes the quota as an object that can be applied, in the version in use. [Decode]
// reads it back.
func (q Quota) MarshalJSON() ([]byte, error) {
	w := wireQuota{APIVersion: Versions()[0], Kind: "CapacityQuota", Metadata: metav1.ObjectMeta{Name: q.Name}}
	w.Spec.Selector, w.Spec.Limits = q.Selector, &wireLimits{q.Limits}
	return json.Marshal(w)
}

// FieldError is a fault of a CapacityQuota.
type FieldError struct {
	// Object is kind and name. Path leads to the field, such as spec.limits.resources. Detail says
	// what is wrong there.
	Object, Path, Detail string
}

// Error returns "capacityquota: object: path: detail".
func (e *FieldError) Error() string {
	return fmt.Sprintf("capacityquota: %s: %s: %s", e.Object, e.Path, e.Detail)
}

// Field returns path and detail.
func (e *FieldError) Field() (path, detail string) { return e.Path, e.Detail }

// Decode reads a CapacityQuota from JSON; for YAML, convert it with yaml.YAMLToJSON of
// sigs.k8s.io/yaml. It refuses what the object's schema refuses, and fields that the schema does
// not have. The error joins a [*FieldError] for each problem, or names the line where data is not
// JSON.
func Decode(data []byte) (Quota, error) {
	root, err := strictjson.Parse(data)
	if err != nil {
		return Quota{}, fmt.Errorf("capacityquota: %w", err)
	}
	var d strictjson.Decoder
	var w wireQuota
	problems := d.Decode(&root, &w)
	var errs []error
	add := func(path, format string, args ...any) {
		errs = append(errs, &FieldError{Object: strings.TrimSpace("CapacityQuota " + w.Metadata.Name), Path: path, Detail: fmt.Sprintf(format, args...)})
	}
	for _, p := range problems {
		add(p.Path, "%s", p.Detail)
	}
	if w.Kind != "CapacityQuota" || !slices.Contains(Versions(), w.APIVersion) {
		add("apiVersion", "%q %q is not a CapacityQuota of %s", w.APIVersion, w.Kind, strings.Join(Versions(), " or "))
	}
	if w.Metadata.Namespace != "" {
		add("metadata.namespace", "a CapacityQuota is cluster-scoped and has no namespace")
	}
	q := Quota{Name: w.Metadata.Name, Selector: w.Spec.Selector}
	if _, err := metav1.LabelSelectorAsSelector(q.Selector); err != nil {
		add("spec.selector", "%v", err)
	}
	switch {
	case w.Spec.Limits == nil:
		add("spec.limits", "it is missing; want resources")
	case w.Spec.Limits.Resources == nil:
		add("spec.limits.resources", "it is missing; want a limit for each resource")
	default:
		q.Limits = w.Spec.Limits.Resources
	}
	if len(q.Limits) > mostResources {
		add("spec.limits.resources", "%d resources; at most %d are allowed", len(q.Limits), mostResources)
	}
	for name, amount := range q.Limits {
		at := "spec.limits.resources" + strictjson.MapKey(string(name))
		if len(name) > longestName {
			add(at, "the name has %d characters; at most %d are allowed", len(name), longestName)
		}
		if hint := Misspelt(name); hint != "" {
			add(at, "%s", hint)
		}
		if n, whole := amount.AsInt64(); !whole || n < 0 {
			add(at, "%s: want a whole number, 0 or more, without a fractional suffix such as m", amount.String())
		}
	}
	if len(errs) > 0 {
		slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return Quota{}, errors.Join(errs...)
	}
	return q, nil
}
