package manifests_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// FuzzParse reads anything: it gives a snapshot or an error, within bounded time, and the same each time.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/valid/*.yaml", "testdata/malformed/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	f.Add([]byte("%YAML 1.2\n%TAG ! tag:example.com,2000:\n--- !!map\n{}\n...\n...\n--- |\n text\n"))
	f.Add([]byte("\xef\xbb\xbf--- # c\r\n"))
	f.Add([]byte("? [a, b]\n: c\n? \n: d\n<<: [1]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		start := time.Now()
		files := []manifests.File{{Name: "x", Data: data}}
		o := &manifests.Options{MaxPods: 1000}
		s, err := manifests.Parse(files, o)
		require.Equal(t, s == nil, err != nil)
		again, errAgain := manifests.Parse(files, o)
		if err != nil {
			require.EqualError(t, errAgain, err.Error())
		} else {
			require.NoError(t, errAgain)
			require.Equal(t, describe(s), describe(again))
			require.LessOrEqual(t, s.CountPods(), 1000)
		}
		require.Less(t, time.Since(start), 10*time.Second)
	})
}
