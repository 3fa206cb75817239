package api_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
)

// Every error that awstest or a test answers with is in the answer book, with its source.
func TestAnswerBook(t *testing.T) {
	list, err := api.Answers()
	require.NoError(t, err)
	have, rows := map[string]bool{}, map[string]bool{}
	for _, a := range list {
		key := strings.Join([]string{a.Code, a.Match, a.Level}, " ")
		assert.False(t, rows[key], "%s stands there twice", key)
		rows[key], have[a.Code] = true, true
		assert.Contains(t, []string{api.Call, api.Entry, api.State, "both"}, a.Level, a.Code)
		assert.Equal(t, a.Level == api.Call || a.Level == "both", a.Status >= 400, "%s: the status of a call", a.Code)
		assert.True(t, strings.HasPrefix(a.Source, "https://") || a.Source == "unverified on AWS", a.Source)
		assert.Equal(t, strings.ToLower(a.Match), a.Match)
		for _, what := range a.Forget {
			assert.Contains(t, []string{"image", "subnet", "group", "profile", "template", "placement", "reservation"}, what)
		}
		if a.Class == cloudprovider.ErrQuota.Error() && a.Level != api.State || a.Class == cloudprovider.ErrInsufficientCapacity.Error() && a.Level != api.State {
			assert.NotEmpty(t, a.Blame, a.Code)
		}
	}
	used := regexp.MustCompile(`(?:apiError\{|Code: +|RefuseOffering\([^"\n]*(?:"[^"\n]*", [^"\n]*){0,3}|KillNew\(|failing\("\w+", |cmp\.Or\(code, )"(?:com\.amazonaws\.sqs#)?([A-Z][\w.]*)"`)
	invented := regexp.MustCompile(`^(SomethingNew|NobodyKnowsThis)$`)
	n := 0
	for _, root := range []string{"..", "../awstest", "../../../examples/provision", "../../../examples/interruption"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || !strings.Contains(path, "awstest") && !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range used.FindAllStringSubmatch(string(text), -1) {
				n++
				assert.True(t, have[m[1]] || invented.MatchString(m[1]), "%s: %q is not in answers.yaml", path, m[1])
			}
			return err
		}))
	}
	assert.Greater(t, n, 60)
}

// What is not listed falls back on the HTTP status, and a fleet's entry on what it is: nothing was launched of that offering.
func TestUnlistedCodes(t *testing.T) {
	for status, want := range map[int]error{
		400: cloudprovider.ErrInvalidSpec, 404: cloudprovider.ErrInvalidSpec, 403: cloudprovider.ErrUnauthorized, 429: cloudprovider.ErrThrottled, 500: nil, 503: nil, 0: nil,
	} {
		assert.Equal(t, want, api.Find(api.Call, "NobodyKnowsThis", "", status).Err(), status)
	}
	entry := api.Find(api.Entry, "NobodyKnowsThis", "", 0)
	assert.Equal(t, cloudprovider.ErrInsufficientCapacity, entry.Err())
	assert.Equal(t, "offering", entry.Blame)
}
