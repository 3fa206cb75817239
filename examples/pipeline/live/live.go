// Package live reads a running cluster as manifests, equivalent to "kubectl get -A -o json" for
// every kind that matters to plans.
package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// Cluster is an API server and what to read from it.
type Cluster struct {
	Discovery discovery.ServerResourcesInterface
	Objects   dynamic.Interface
	// Manifests are the options with which the objects will be read. They determine which kinds are
	// exported.
	Manifests *manifests.Options
}

// Export lists all objects that matter to plans, in all namespaces, and writes them as a List in
// JSON. They are sorted by kind, namespace and name, without managedFields. It only reads.
//
// Kinds that the server does not have are left out. The notes name kinds that it has but that could
// not be listed, for example because the caller may not list them. If pods or nodes cannot be
// listed, that is an error. Objects change while they are listed, so nodes are listed after the
// pods that may run on them.
func (c Cluster) Export(ctx context.Context, w io.Writer) (notes []string, err error) {
	served, notes, err := c.served()
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, r := range served {
		list, err := c.list(ctx, r)
		switch {
		case err == nil:
			all = append(all, list...)
		case r.needed() || ctx.Err() != nil:
			return nil, fmt.Errorf("list %s: %w", r.resource.Resource, err)
		default:
			notes = append(notes, fmt.Sprintf("%s are ignored, because they could not be listed: %v", r.resource.Resource, err))
		}
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetKind(), b.GetKind()), strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	items := make([]map[string]any, len(all))
	for i, o := range all {
		items[i] = o.Object
	}
	return notes, json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}

// served is a kind that the server has.
type served struct {
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
}

func (s served) needed() bool {
	return s.kind.Group == "" && (s.kind.Kind == "Pod" || s.kind.Kind == "Node")
}

// served returns the kinds that matter to plans and that the server lists, each in the first
// version that it has. Pods come first and nodes last.
func (c Cluster) served() (out []served, notes []string, err error) {
	_, lists, err := c.Discovery.ServerGroupsAndResources()
	if failed := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &failed) {
		notes = append(notes, fmt.Sprintf("an aggregated API does not answer, so its kinds are ignored: %v", failed))
	} else if err != nil {
		return nil, nil, fmt.Errorf("ask the API server for its kinds: %w", err)
	}
	has, versions := map[schema.GroupVersionKind]string{}, map[schema.GroupKind]string{}
	for _, l := range lists {
		version, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, nil, fmt.Errorf("ask the API server for its kinds: %w", err)
		}
		for _, r := range l.APIResources {
			if !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") {
				kind := version.WithKind(r.Kind)
				has[kind], versions[kind.GroupKind()] = r.Name, l.GroupVersion
			}
		}
	}
	found := map[schema.GroupKind]bool{}
	known := manifests.Kinds(c.Manifests)
	for _, k := range known {
		if name, ok := has[k]; ok && !found[k.GroupKind()] {
			found[k.GroupKind()] = true
			out = append(out, served{k, k.GroupVersion().WithResource(name)})
		}
	}
	for _, k := range known {
		if version, ok := versions[k.GroupKind()]; ok && !found[k.GroupKind()] {
			found[k.GroupKind()] = true
			notes = append(notes, fmt.Sprintf("objects of kind %s are ignored, because the API server has them in version %s, which is not understood", k.Kind, version))
		}
	}
	for _, k := range []string{"Pod", "Node"} {
		if !found[schema.GroupKind{Kind: k}] {
			return nil, nil, fmt.Errorf("the API server has no kind %s in v1", k)
		}
	}
	place := map[string]int{"Pod": -1, "Node": 1}
	slices.SortStableFunc(out, func(a, b served) int { return cmp.Compare(place[a.kind.Kind], place[b.kind.Kind]) })
	return out, notes, nil
}

// list reads all objects of a kind, in pages.
func (c Cluster) list(ctx context.Context, s served) (out []*unstructured.Unstructured, err error) {
	options := metav1.ListOptions{}
	if s.kind.Kind == "ConfigMap" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, manifests.Settings).String()
	}
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.Objects.Resource(s.resource).List(ctx, o)
	})
	err = pages.EachListItem(ctx, options, func(o runtime.Object) error {
		item, ok := o.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("an item is of type %T", o)
		}
		item.SetManagedFields(nil)
		item.SetGroupVersionKind(s.kind)
		out = append(out, item)
		return nil
	})
	if apierrors.IsNotFound(err) { // the definition has been deleted since
		return nil, nil
	}
	return out, err
}
