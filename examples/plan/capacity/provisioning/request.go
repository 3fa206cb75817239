// Package provisioning answers a ProvisioningRequest of autoscaling.x-k8s.io from a state of
// package capacity. The answer is that its pods fit, that nodes have to be bought at a price (with
// a lower bound), or that it is infeasible, with the reason and what would help. The answer covers
// all pods of the request or none. Kueue's second phase of admission waits for these conditions,
// see [Decision.Check].
package provisioning

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Class is what the request wants from an autoscaler: its spec.provisioningClassName.
type Class string

// The classes of the public API.
const (
	// CheckCapacity asks whether the pods fit on existing nodes. Nothing is bought.
	CheckCapacity Class = "check-capacity.autoscaling.x-k8s.io"
	// AtomicScaleUp asks for the nodes that the pods lack, all of them or none.
	AtomicScaleUp Class = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
)

// group is the API group of ProvisioningRequests. noRetry is the parameter that says not to retry
// the request.
const (
	group   = "autoscaling.x-k8s.io/"
	kind    = "ProvisioningRequest"
	noRetry = "noRetry"
)

// Request is the part of a ProvisioningRequest that an answer needs.
type Request struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`
}

// Spec is what a request asks for.
type Spec struct {
	PodSets               []PodSet          `json:"podSets"`
	ProvisioningClassName Class             `json:"provisioningClassName"`
	Parameters            map[string]string `json:"parameters,omitempty"`
}

// PodSet is a number of pods of a PodTemplate in the namespace of the request.
type PodSet struct {
	PodTemplateRef TemplateRef `json:"podTemplateRef"`
	Count          int32       `json:"count"`
}

// TemplateRef names a PodTemplate.
type TemplateRef struct {
	Name string `json:"name"`
}

// Decode reads a request from JSON and checks it. The error names the field.
func Decode(data []byte) (*Request, error) {
	var r Request
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("provisioning: %w", err)
	}
	return &r, r.check()
}

// mostPods limits the pods of a request, so that a mistyped count is an error and does not use up
// memory.
const mostPods = 100_000

// title is what messages call the request.
func (r *Request) title() string {
	if r.Name == "" {
		return "the request"
	}
	return "request " + r.namespace() + "/" + r.Name
}

func (r *Request) namespace() string { return cmp.Or(r.Namespace, corev1.NamespaceDefault) }

func (r *Request) check() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("provisioning: %s: %s", r.title(), fmt.Sprintf(format, args...)))
	}
	if r.Kind != kind || !strings.HasPrefix(r.APIVersion, group) {
		fail("apiVersion %q and kind %q: want a %s of %s", r.APIVersion, r.Kind, kind, strings.TrimSuffix(group, "/"))
	}
	if r.Name == "" {
		fail("metadata.name: want a name")
	} else {
		for _, wrong := range validation.IsDNS1123Subdomain(r.Name) {
			fail("metadata.name %q: %s", r.Name, wrong)
		}
	}
	for _, wrong := range validation.IsDNS1123Label(r.namespace()) {
		fail("metadata.namespace %q: %s", r.Namespace, wrong)
	}
	switch r.Spec.ProvisioningClassName {
	case CheckCapacity, AtomicScaleUp:
	default:
		fail("spec.provisioningClassName %q: want %s or %s", r.Spec.ProvisioningClassName, CheckCapacity, AtomicScaleUp)
	}
	if len(r.Spec.PodSets) == 0 {
		fail("spec.podSets: want at least one")
	}
	total := int64(0)
	for i, set := range r.Spec.PodSets {
		if total += int64(set.Count); set.Count < 1 {
			fail("spec.podSets[%d].count %d: want 1 or more", i, set.Count)
		}
	}
	if total > mostPods {
		fail("spec.podSets: %d pods, want %d at most", total, mostPods)
	}
	if text, given := r.Spec.Parameters[noRetry]; given {
		if _, err := strconv.ParseBool(text); err != nil {
			fail("spec.parameters.%s %q: want true or false", noRetry, text)
		}
	}
	return errors.Join(errs...)
}

// Pods returns the pods of the request, made from its templates. The error names a missing
// template. Pods of one template share its spec.
func (r *Request) Pods(templates []*corev1.PodTemplate) ([]*corev1.Pod, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	known := map[string]*corev1.PodTemplate{}
	for _, t := range templates {
		if cmp.Or(t.Namespace, corev1.NamespaceDefault) == r.namespace() {
			known[t.Name] = t
		}
	}
	var out []*corev1.Pod
	for i, set := range r.Spec.PodSets {
		t := known[set.PodTemplateRef.Name]
		if t == nil {
			return nil, fmt.Errorf("provisioning: %s: spec.podSets[%d].podTemplateRef: there is no PodTemplate %q in its namespace", r.title(), i, set.PodTemplateRef.Name)
		}
		for k := range set.Count {
			out = append(out, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: r.Namespace, Name: fmt.Sprintf("%s-%d-%d", r.Name, i, k),
					Labels: maps.Clone(t.Template.Labels), Annotations: maps.Clone(t.Template.Annotations),
				},
				Spec: t.Template.Spec,
			})
		}
	}
	return out, nil
}
