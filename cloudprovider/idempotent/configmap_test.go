package idempotent_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/idempotent"
	"github.com/joinery-sdk/joinery/requirements"
)

// server has the ConfigMaps of one namespace, as an API server keeps them.
type server struct {
	mu      sync.Mutex
	objects map[string]*corev1.ConfigMap
	version int
	fail    error
}

var configMaps = schema.GroupResource{Resource: "configmaps"}

func (s *server) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(ctx.Err(), s.fail); err != nil {
		return nil, err
	}
	if s.objects[name] == nil {
		return nil, apierrors.NewNotFound(configMaps, name)
	}
	return s.objects[name].DeepCopy(), nil
}

func (s *server) Create(_ context.Context, object *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[object.Name] != nil {
		return nil, apierrors.NewAlreadyExists(configMaps, object.Name)
	}
	return s.put(object), nil
}

func (s *server) Update(_ context.Context, object *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch old := s.objects[object.Name]; {
	case old == nil:
		return nil, apierrors.NewNotFound(configMaps, object.Name)
	case old.ResourceVersion != object.ResourceVersion:
		return nil, apierrors.NewConflict(configMaps, object.Name, errors.New("it was changed"))
	}
	return s.put(object), nil
}

func (s *server) put(object *corev1.ConfigMap) *corev1.ConfigMap {
	s.version++
	object = object.DeepCopy()
	object.ResourceVersion = strconv.Itoa(s.version)
	if s.objects == nil {
		s.objects = map[string]*corev1.ConfigMap{}
	}
	s.objects[object.Name] = object
	return object.DeepCopy()
}

// No update of several processes is lost, from before there is an object on.
func TestConfigMapIsShared(t *testing.T) {
	s := &server{}
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			store := idempotent.NewConfigMap(s, "journal")
			for i := range 10 {
				assert.NoError(t, store.Update(context.WithoutCancel(t.Context()), func(entries map[string]idempotent.Entry) error {
					entries[fmt.Sprintf("%d-%d", n, i)] = idempotent.Entry{Identity: strconv.Itoa(len(entries))}
					return nil
				}))
			}
		})
	}
	all.Wait()
	store := idempotent.NewConfigMap(s, "journal")
	require.NoError(t, store.View(t.Context(), func(entries map[string]idempotent.Entry) error {
		seen := map[string]bool{}
		for _, e := range entries {
			seen[e.Identity] = true
		}
		assert.Len(t, entries, 60)
		assert.Len(t, seen, 60, "each has seen all that came before")
		return nil
	}))

	no := errors.New("no")
	require.ErrorIs(t, store.Update(t.Context(), func(map[string]idempotent.Entry) error { return no }), no)
	s.fail = errors.New("timeout")
	require.ErrorIs(t, store.View(t.Context(), func(map[string]idempotent.Entry) error { return nil }), s.fail)
	s.fail = nil
	s.objects["journal"].BinaryData["journal.json.gz"] = []byte("spoiled")
	require.ErrorContains(t, store.Update(t.Context(), func(map[string]idempotent.Entry) error { return nil }), "ConfigMap journal")
}

// Some thousand machines fit a ConfigMap.
func TestConfigMapHoldsThousands(t *testing.T) {
	s := &server{}
	require.NoError(t, idempotent.NewConfigMap(s, "journal").Update(t.Context(), func(entries map[string]idempotent.Entry) error {
		for i := range 4000 {
			token := fmt.Sprintf("0e5f6d0c-9b6e-4f5e-8a51-%012x", i*7919)
			c := claim(token)
			labels := map[string]string{}
			for k := range 30 {
				labels[fmt.Sprintf("example.com/label-%d", k)] = strconv.Itoa(i % (k + 3))
			}
			entries[token] = idempotent.Entry{Identity: c.Identity(), Claim: c, Instance: cloudprovider.Instance{
				ID: fmt.Sprintf("cloud://m-%d", i), Claim: fmt.Sprintf("general-%x", i*104729), Token: token, Type: "box", Offering: requirements.MustParse("zone=a"), Labels: labels,
				Capacity: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")}, Created: noon().Add(time.Duration(i) * time.Second),
			}}
		}
		return nil
	}))
	assert.Less(t, s.objects["journal"].Size(), 1<<20)
}

func ExampleConfigMap() {
	store := idempotent.NewConfigMap(&server{}, "journal")
	_ = store.Update(context.Background(), func(entries map[string]idempotent.Entry) error {
		entries["one"] = idempotent.Entry{Claim: claim("one")}
		return nil
	})
	err := store.View(context.Background(), func(entries map[string]idempotent.Entry) error {
		fmt.Println(len(entries), "token")
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1 token
	// <nil>
}

func ExampleConfigMaps() {
	var client idempotent.ConfigMaps = &server{} // or clientset.CoreV1().ConfigMaps("kube-system")
	err := idempotent.NewConfigMap(client, "journal").View(context.Background(), func(entries map[string]idempotent.Entry) error {
		fmt.Println(len(entries), "tokens")
		return nil
	})
	fmt.Println(err)
	// Output:
	// 0 tokens
	// <nil>
}
