package api_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
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
	// awstest answers with nothing else, or panics; this finds what no test makes it answer.
	files, err := filepath.Glob("../awstest/*.go")
	require.NoError(t, err)
	literal, n := regexp.MustCompile(`apiError\{"(?:com\.amazonaws\.sqs#)?([\w.]+)"`), 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
			n++
			assert.True(t, have[m[1]], "%s: %q is not in answers.yaml", path, m[1])
		}
	}
	assert.Greater(t, n, 40)
}

// A cloud that is to answer with what nothing is known of says so.
func TestNoAnswerWithoutASource(t *testing.T) {
	cloud, clients := connect(t)
	fault := awstest.Fault{Code: "Unheard"}
	cloud.SetFault(func(awstest.Call) awstest.Fault { return fault })
	assert.PanicsWithValue(t, `awstest: answers.yaml of package api has no row for "Unheard" at level "call": add it with its source, or begin the code with "Unlisted"`, func() {
		_ = subnets(t.Context(), clients)
	})
	fault.Code = awstest.Unlisted
	require.ErrorIs(t, api.Outcome("find", "subnets", subnets(t.Context(), clients)), cloudprovider.ErrInvalidSpec)
}

// What is not listed falls back on the HTTP status, and a fleet's entry on what it is: nothing was launched of that offering.
func TestUnlistedCodes(t *testing.T) {
	for status, want := range map[int]error{
		400: cloudprovider.ErrInvalidSpec, 404: cloudprovider.ErrInvalidSpec, 403: cloudprovider.ErrUnauthorized, 429: cloudprovider.ErrThrottled, 500: nil, 503: nil, 0: nil,
	} {
		assert.Equal(t, want, api.Find(api.Call, awstest.Unlisted, "", status).Err(), status)
	}
	entry := api.Find(api.Entry, awstest.Unlisted, "", 0)
	assert.Equal(t, cloudprovider.ErrInsufficientCapacity, entry.Err())
	assert.Equal(t, "offering", entry.Blame)
}
