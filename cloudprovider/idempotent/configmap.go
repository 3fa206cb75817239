package idempotent

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigMaps is the part of a client for the ConfigMaps of one namespace that this package needs.
// client-go's CoreV1().ConfigMaps(namespace) implements it. It must read from the API server, not
// from a cache.
type ConfigMaps interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.ConfigMap, error)
	Create(ctx context.Context, object *corev1.ConfigMap, options metav1.CreateOptions) (*corev1.ConfigMap, error)
	Update(ctx context.Context, object *corev1.ConfigMap, options metav1.UpdateOptions) (*corev1.ConfigMap, error)
}

// ConfigMap is a store in a ConfigMap that several processes may share. If another process has
// changed the object, the update is repeated. The journal is compressed, so several thousand
// entries fit into the limit of 1 MiB. Make one with [NewConfigMap]. It is safe for concurrent use.
type ConfigMap struct {
	client ConfigMaps
	name   string
}

// NewConfigMap returns the store in the ConfigMap with the given name. The first update creates the
// ConfigMap if it does not exist.
func NewConfigMap(client ConfigMaps, name string) *ConfigMap {
	return &ConfigMap{client: client, name: name}
}

const (
	journalKey = "journal.json.gz"
	// mostConflicts limits how often an update is tried. Each conflict means that another process
	// has made progress.
	mostConflicts = 100
)

// View reads the ConfigMap.
func (c *ConfigMap) View(ctx context.Context, read func(map[string]Entry) error) error {
	_, entries, err := c.load(ctx)
	if err != nil {
		return err
	}
	return read(entries)
}

// Update changes the ConfigMap. If another process has changed it in between, Update calls change
// again with the new entries.
func (c *ConfigMap) Update(ctx context.Context, change func(map[string]Entry) error) error {
	for try := 1; ; try++ {
		object, entries, err := c.load(ctx)
		if err != nil {
			return err
		}
		if err := change(entries); err != nil {
			return err
		}
		err = c.save(ctx, object, entries)
		if err == nil {
			return nil
		}
		if again := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err); !again || try == mostConflicts {
			return fmt.Errorf("idempotent: ConfigMap %s: %w", c.name, err)
		}
	}
}

// load reads the entries. If there is no ConfigMap, it returns neither an object nor entries.
func (c *ConfigMap) load(ctx context.Context) (*corev1.ConfigMap, map[string]Entry, error) {
	entries := map[string]Entry{}
	object, err := c.client.Get(ctx, c.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, entries, nil
	}
	if err == nil && len(object.BinaryData[journalKey]) > 0 {
		err = decode(object.BinaryData[journalKey], &entries)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("idempotent: ConfigMap %s: %w", c.name, err)
	}
	return object, entries, nil
}

func (c *ConfigMap) save(ctx context.Context, object *corev1.ConfigMap, entries map[string]Entry) error {
	data, err := encode(entries)
	if err != nil {
		return err
	}
	if object == nil {
		object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.name}, BinaryData: map[string][]byte{journalKey: data}}
		_, err = c.client.Create(ctx, object, metav1.CreateOptions{})
		return err
	}
	object = object.DeepCopy()
	if object.BinaryData == nil {
		object.BinaryData = map[string][]byte{}
	}
	object.BinaryData[journalKey] = data
	_, err = c.client.Update(ctx, object, metav1.UpdateOptions{})
	return err
}

func encode(entries map[string]Entry) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := json.NewEncoder(w).Encode(entries); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// mostJournal limits the unpacked size of a compressed journal.
const mostJournal = 256 << 20

func decode(data []byte, entries *map[string]Entry) error {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return json.NewDecoder(io.LimitReader(r, mostJournal)).Decode(entries)
}
