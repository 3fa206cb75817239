package newprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/joinery-sdk/joinery/cloudprovider/idempotent"
)

// File keeps a journal in a file, for one process at a time. Make one by [NewFile]; it is safe for concurrent use.
type File struct {
	path string
	mu   sync.Mutex // held from reading to writing
}

// NewFile is the file at a path, in a folder that exists; without a file the journal is empty.
func NewFile(path string) *File { return &File{path: path} }

// Update changes the file. A crash leaves the old one or the new one, never half of one.
func (f *File) Update(ctx context.Context, change func(map[string]idempotent.Entry) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	entries := map[string]idempotent.Entry{}
	data, err := os.ReadFile(f.path)
	if err == nil {
		err = json.Unmarshal(data, &entries)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("newprovider: %s: %w", f.path, err)
	}
	if err := change(entries); err != nil {
		return err
	}
	if data, err = json.Marshal(entries); err == nil {
		err = os.WriteFile(f.path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(f.path+".new", f.path)
	}
	if err != nil {
		return fmt.Errorf("newprovider: %s: %w", f.path, err)
	}
	return nil
}
