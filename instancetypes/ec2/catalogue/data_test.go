package catalogue_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
)

func TestDataStaysSmall(t *testing.T) {
	total := int64(0)
	require.NoError(t, fs.WalkDir(os.DirFS("data"), ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		total += info.Size()
		return err
	}))
	assert.Less(t, total, int64(1<<20), "the binary of everybody who imports this package grows with it")
	assert.Greater(t, total, int64(1<<19), "the catalogue is there")
}

// Every figure names its source: each line of a type by src or the main source, each price by its region's list.
func TestEveryFigureHasASource(t *testing.T) {
	known := map[string]catalogue.Source{}
	for _, s := range catalogue.Sources() {
		assert.NotEmpty(t, s.Package)
		assert.NotEmpty(t, s.Version, s.Package)
		assert.Regexp(t, `^(sha256:[0-9a-f]{64}|h1:.{44})$`, s.Hash, s.Package)
		known[s.Letter] = s
	}
	types, err := os.ReadFile("data/types.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(types)) {
		if _, letter, ok := strings.Cut(strings.TrimSpace(line), " src="); ok && !strings.HasPrefix(line, "#") {
			assert.Contains(t, known, letter, line)
		}
	}
	for _, region := range catalogue.Regions() {
		text, err := os.ReadFile("data/regions/" + region + ".txt")
		require.NoError(t, err)
		lists := 0
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "list "); ok {
				letter, date, _ := strings.Cut(strings.TrimSpace(rest), " ")
				assert.Equal(t, known[letter].Date, date, region)
				lists++
			}
		}
		assert.Equal(t, 1, lists, region)
	}
}
