package cloudtest_test

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
)

// documented are the obligations of the package documentation, in their order.
func documented(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	require.NoError(t, err)
	_, text, found := strings.Cut(file.Doc.Text(), "# Obligations")
	require.True(t, found)
	text, _, found = strings.Cut(text, "\n# ")
	require.True(t, found)
	var list []string
	for line := range strings.Lines(text) {
		sentence, first := strings.CutPrefix(strings.TrimSpace(line), "- ")
		switch {
		case first:
			list = append(list, sentence)
		case strings.HasPrefix(line, "    "): // it goes on in a second line
			list[len(list)-1] += " " + sentence
		}
	}
	return list
}

// The kit cites the documentation, and leaves nothing of it out.
func TestEveryObligationHasACase(t *testing.T) {
	assert.Equal(t, documented(t), cloudtest.Obligations())
}
