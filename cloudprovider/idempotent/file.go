package idempotent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
)

// File is a store in a file, for one process at a time. Make one with [NewFile]. It is safe for
// concurrent use.
type File struct {
	path string

	mu sync.Mutex // held from reading to writing
	// What the file had when it was last read or written, and the JSON of each entry.
	entries map[string]Entry
	texts   map[string]json.RawMessage
	info    fs.FileInfo // of the file at that time, or nil
}

// NewFile returns the store in the file at the path. The folder must exist. If there is no file,
// the journal is empty: List is then empty although machines may run, and used tokens are new
// again. So the file belongs on a disk that lasts as long as the claims do, never on a pod's own.
func NewFile(path string) *File { return &File{path: path} }

// View reads the file, if it is not the one that was last read or written.
func (f *File) View(ctx context.Context, read func(map[string]Entry) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries, err := f.load(ctx)
	if err != nil {
		return err
	}
	return read(entries)
}

// Update changes the file. After a crash, even of the machine, the file is the old one or the new
// one, never a part of one.
func (f *File) Update(ctx context.Context, change func(map[string]Entry) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries, err := f.load(ctx)
	if err != nil {
		return err
	}
	if err := change(entries); err != nil {
		return err
	}
	texts, err := f.encode(entries)
	if err == nil {
		f.info = nil // if it is not written for certain, the file is read again
		err = f.replace(join(texts))
	}
	if err != nil {
		return fmt.Errorf("idempotent: %s: %w", f.path, err)
	}
	f.entries, f.texts = entries, texts
	if info, err := os.Stat(f.path); err == nil {
		f.info = info
	}
	return nil
}

// encode returns the JSON of each entry. Only entries that have changed are encoded.
func (f *File) encode(entries map[string]Entry) (map[string]json.RawMessage, error) {
	texts := make(map[string]json.RawMessage, len(entries))
	for token, e := range entries {
		if text, ok := f.texts[token]; ok && reflect.DeepEqual(e, f.entries[token]) {
			texts[token] = text
			continue
		}
		text, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		texts[token] = text
	}
	return texts, nil
}

// join returns the JSON of a map of entries by token, in the order of the tokens.
func join(texts map[string]json.RawMessage) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, token := range slices.Sorted(maps.Keys(texts)) {
		if i > 0 {
			b.WriteString(",\n")
		}
		key, _ := json.Marshal(token) // a string: it cannot fail
		b.Write(key)
		b.WriteByte(':')
		b.Write(texts[token])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// load returns a copy of the entries that the caller may change. Each update makes a new file, so
// the file is decoded only if it is another one, or has another size or time.
func (f *File) load(ctx context.Context) (map[string]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := os.Stat(f.path)
	if err == nil && f.info != nil && os.SameFile(info, f.info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) {
		return maps.Clone(f.entries), nil
	}
	entries, texts := map[string]Entry{}, map[string]json.RawMessage{}
	if err == nil {
		texts, err = read(f.path, entries)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info = nil
	case err != nil:
		return nil, fmt.Errorf("idempotent: %s: %w", f.path, err)
	}
	f.entries, f.texts, f.info = entries, texts, info
	return maps.Clone(entries), nil
}

// read adds the entries of a file, and returns the JSON of each.
func read(path string, entries map[string]Entry) (texts map[string]json.RawMessage, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &texts)
	}
	for token, text := range texts {
		var e Entry
		err = errors.Join(err, json.Unmarshal(text, &e))
		entries[token] = e
	}
	return texts, err
}

// replace writes a new file, syncs it to disk, and puts it in place of the old one.
func (f *File) replace(data []byte) error {
	next, err := os.OpenFile(f.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = next.Write(data)
	if err = errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	if err := os.Rename(next.Name(), f.path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
