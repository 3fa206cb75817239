package catalogue

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

//go:generate go run ./generate -out data

//go:embed data
var files embed.FS

// Hash returns the SHA-256 of the embedded data in hexadecimal, which identifies the catalogue
// behind an answer. An empty string means that the data is not what the generator wrote.
func Hash() string {
	sum := sha256.New()
	for _, name := range names() {
		fmt.Fprintf(sum, "%s\n%s", name, text(name))
	}
	got := hex.EncodeToString(sum.Sum(nil))
	if strings.TrimSpace(text("HASH")) != got {
		return ""
	}
	return got
}

// names returns the data files in ascending order, without HASH.
func names() []string {
	var out []string
	// Walking an embedded folder cannot fail.
	_ = fs.WalkDir(files, "data", func(path string, entry fs.DirEntry, _ error) error {
		if !entry.IsDir() && path != "data/HASH" {
			out = append(out, strings.TrimPrefix(path, "data/"))
		}
		return nil
	})
	return out
}

// text returns a data file. A missing file is empty.
func text(name string) string {
	data, _ := files.ReadFile("data/" + name)
	return string(data)
}

// lines yields the lines of a data file, without comments.
func lines(name string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for l := range strings.Lines(text(name)) {
			if l = strings.TrimSuffix(l, "\n"); l != "" && !strings.HasPrefix(l, "#") && !yield(l) {
				return
			}
		}
	}
}
