// Package shed writes the deletion costs of pods that package deletioncost computes.
package shed

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joinery-sdk/joinery/deprovision/deletioncost"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

// mostNodes is the number of nodes whose pods get other deletion costs in one pass, besides nodes
// that are leaving. Karpenter has the same limit. It keeps a change of ranks from becoming a storm
// of patches.
const mostNodes = 50

// Annotations are the deletion costs that pods have, by UID.
type Annotations map[types.UID]string

// Take removes the annotations from the list and returns them. Pods that have one are replaced by
// copies without it.
func Take(pods []*corev1.Pod) Annotations {
	out := Annotations{}
	for i, pod := range pods {
		if text, ok := pod.Annotations[eviction.DeletionCost]; ok {
			out[pod.UID] = text
			pods[i] = deletioncost.Without(pod)
		}
	}
	return out
}

// Write patches the pods whose annotation is another one than the costs say. It goes on after an
// error, and joins all of them. Pods that no longer exist are passed over.
func (a Annotations) Write(ctx context.Context, to client.Client, costs []deletioncost.Cost) error {
	var failed []error
	changed := map[string]bool{}
	for _, c := range costs {
		if a[c.Pod.UID] == c.Annotation() {
			continue
		}
		if c.Value != math.MinInt32 && !changed[c.Node] {
			if len(changed) == mostNodes {
				continue
			}
			changed[c.Node] = true
		}
		failed = append(failed, client.IgnoreNotFound(write(ctx, to, c)))
	}
	return errors.Join(failed...)
}

// write adds the annotation to a pod, or removes it.
func write(ctx context.Context, to client.Client, c deletioncost.Cost) error {
	var value any // null removes it
	if text := c.Annotation(); text != "" {
		value = text
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{eviction.DeletionCost: value}}})
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Pod.Namespace, Name: c.Pod.Name}}
	return to.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
}
