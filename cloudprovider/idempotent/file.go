package idempotent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// File is a store in a file, for one process at a time. Make one by [NewFile]; it is safe for concurrent use.
type File struct {
	path string
	mu   sync.Mutex // held from reading to writing
}

// NewFile is the file at a path, in a folder that exists; without a file the journal is empty.
func NewFile(path string) *File { return &File{path: path} }

// View reads the file.
func (f *File) View(ctx context.Context, read func(map[string]Entry) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries, err := f.load(ctx)
	if err != nil {
		return err
	}
	return read(entries)
}

// Update changes the file. A crash, of the machine too, leaves the old one or the new one, never half of one.
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
	data, err := json.Marshal(entries)
	if err == nil {
		err = f.replace(data)
	}
	if err != nil {
		return fmt.Errorf("idempotent: %s: %w", f.path, err)
	}
	return nil
}

func (f *File) load(ctx context.Context) (map[string]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries := map[string]Entry{}
	data, err := os.ReadFile(f.path)
	if err == nil {
		err = json.Unmarshal(data, &entries)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("idempotent: %s: %w", f.path, err)
	}
	if entries == nil { // the file says null
		entries = map[string]Entry{}
	}
	return entries, nil
}

// replace writes a new file, makes sure that it is on the disk, and puts it in the place of the old one.
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
