package buffer

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

// wireBuffer is the object as an API server has it.
type wireBuffer struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       struct {
		ProvisioningStrategy *string             `json:"provisioningStrategy,omitempty"`
		PodTemplateRef       *wireTemplate       `json:"podTemplateRef,omitempty"`
		ScalableRef          *wireScalable       `json:"scalableRef,omitempty"`
		Replicas             *int32              `json:"replicas,omitempty"`
		Percentage           *int32              `json:"percentage,omitempty"`
		Limits               corev1.ResourceList `json:"limits,omitempty"`
	} `json:"spec"`
	Status *struct {
		PodTemplateRef *struct {
			Name string `json:"name"`
		} `json:"podTemplateRef"`
		Replicas              *int32             `json:"replicas"`
		PodTemplateGeneration *int64             `json:"podTemplateGeneration"`
		Conditions            []metav1.Condition `json:"conditions"`
		ProvisioningStrategy  *string            `json:"provisioningStrategy"`
	} `json:"status,omitempty"`
}

type wireTemplate struct {
	Name string `json:"name"`
}

type wireScalable struct {
	APIGroup string `json:"apiGroup,omitempty"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

// MarshalJSON writes the buffer as an object that can be applied, in the version in use. [Decode]
// reads it back.
func (b Buffer) MarshalJSON() ([]byte, error) {
	w := wireBuffer{APIVersion: Versions()[0], Kind: "CapacityBuffer", Metadata: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name}}
	if b.Strategy != "" {
		w.Spec.ProvisioningStrategy = &b.Strategy
	}
	if b.Template != "" {
		w.Spec.PodTemplateRef = &wireTemplate{b.Template}
	}
	if b.Scalable != (Reference{}) {
		w.Spec.ScalableRef = &wireScalable{b.Scalable.Group, b.Scalable.Kind, b.Scalable.Name}
	}
	w.Spec.Replicas, w.Spec.Percentage, w.Spec.Limits = b.Replicas, b.Percentage, b.Limits
	return json.Marshal(w)
}

// FieldError is a fault of a CapacityBuffer.
type FieldError struct {
	// Object is kind and name. Path leads to the field, such as spec.replicas. Detail says what is
	// wrong there.
	Object, Path, Detail string
}

// Error returns "buffer: object: path: detail".
func (e *FieldError) Error() string {
	return fmt.Sprintf("buffer: %s: %s: %s", e.Object, e.Path, e.Detail)
}

// Field returns path and detail.
func (e *FieldError) Field() (path, detail string) { return e.Path, e.Detail }

// Decode reads a CapacityBuffer from JSON; for YAML, convert it with yaml.YAMLToJSON of
// sigs.k8s.io/yaml. The error joins a [*FieldError] for each problem, or names the line where data
// is not JSON.
func Decode(data []byte) (Buffer, error) {
	root, err := strictjson.Parse(data)
	if err != nil {
		return Buffer{}, fmt.Errorf("buffer: %w", err)
	}
	var d strictjson.Decoder
	var w wireBuffer
	problems := d.Decode(&root, &w)
	var errs []error
	add := func(path, format string, args ...any) {
		errs = append(errs, &FieldError{Object: strings.TrimSpace("CapacityBuffer " + w.Metadata.Name), Path: path, Detail: fmt.Sprintf(format, args...)})
	}
	for _, p := range problems {
		add(p.Path, "%s", p.Detail)
	}
	if w.Kind != "CapacityBuffer" || !slices.Contains(Versions(), w.APIVersion) {
		add("apiVersion", "%q %q is not a CapacityBuffer of %s", w.APIVersion, w.Kind, strings.Join(Versions(), " or "))
	}
	s := &w.Spec
	b := Buffer{Namespace: w.Metadata.Namespace, Name: w.Metadata.Name, Replicas: s.Replicas, Percentage: s.Percentage, Limits: s.Limits}
	if s.ProvisioningStrategy != nil {
		b.Strategy = *s.ProvisioningStrategy
	}
	switch {
	case s.PodTemplateRef != nil && s.ScalableRef != nil:
		add("spec.scalableRef", "set either podTemplateRef or scalableRef, not both")
	case s.PodTemplateRef != nil:
		if b.Template = s.PodTemplateRef.Name; b.Template == "" {
			add("spec.podTemplateRef.name", "it is empty")
		}
	case s.ScalableRef != nil:
		b.Scalable = Reference{s.ScalableRef.APIGroup, s.ScalableRef.Kind, s.ScalableRef.Name}
		if b.Scalable.Kind == "" || b.Scalable.Name == "" {
			add("spec.scalableRef", "want the kind and name of a workload")
		}
	default:
		add("spec", "want podTemplateRef or scalableRef, which defines the buffer's pods")
	}
	for path, n := range map[string]*int32{"spec.replicas": s.Replicas, "spec.percentage": s.Percentage} {
		if n != nil && *n < 0 {
			add(path, "%d: must not be negative", *n)
		}
	}
	for name, q := range s.Limits {
		if q.Sign() < 0 {
			add("spec.limits["+string(name)+"]", "%s: must not be negative", q.String())
		}
	}
	if len(errs) > 0 {
		slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return Buffer{}, errors.Join(errs...)
	}
	return b, nil
}
