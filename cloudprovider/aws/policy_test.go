package aws_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// actions are one or many.
type actions []string

func (a *actions) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = actions{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// policyText is the policy for a partition, region and account.
func policyText(t *testing.T, partition, region string) string {
	t.Helper()
	text, err := os.ReadFile("infrastructure/policy.json")
	require.NoError(t, err)
	return strings.NewReplacer("${Partition}", partition, "${Region}", region, "${Account}", account, "${Cluster}", "harbour", "${NodeRole}", "node").Replace(string(text))
}

// account is the one of awstest.
const account = "111122223333"

// allowed are the actions of the policy.
func allowed(t *testing.T) []string {
	t.Helper()
	var p struct {
		Statement []struct {
			Effect   string
			Action   actions
			Resource any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(policyText(t, "aws", "us-east-1")), &p))
	all := map[string]bool{}
	for _, s := range p.Statement {
		require.Equal(t, "Allow", s.Effect)
		require.NotEmpty(t, s.Resource)
		for _, a := range s.Action {
			assert.NotContains(t, a, "*", "least privilege has no wildcards")
			all[a] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

var (
	call     = regexp.MustCompile(`clients\.(ARC|EC2|SSM|SQS|IAM|EKS|Pricing)\.([A-Z]\w+)\(`)
	paginate = regexp.MustCompile(`New(\w+)Paginator\((?:p\.|f\.|s\.)?clients\.(EC2|SSM|SQS|IAM|EKS|Pricing),`)
)

// called are the actions that the code calls.
func called(t *testing.T) []string {
	t.Helper()
	all := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "awstest" {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range call.FindAllStringSubmatch(string(text), -1) {
			all[strings.ToLower(m[1])+":"+m[2]] = true
		}
		for _, m := range paginate.FindAllStringSubmatch(string(text), -1) {
			all[strings.ToLower(m[2])+":"+m[1]] = true
		}
		return nil
	}))
	return slices.Sorted(maps.Keys(all))
}

func TestPolicyCoversEveryCall(t *testing.T) {
	calls := called(t)
	require.Greater(t, len(calls), 20)
	calls[slices.Index(calls, "arc:GetManagedResource")] = "arc-zonal-shift:GetManagedResource" // is what IAM calls the service
	i := slices.Index(calls, "sqs:DeleteMessageBatch")
	require.GreaterOrEqual(t, i, 0)
	calls[i] = "sqs:DeleteMessage" // is what allows it
	// What AWS demands besides, of those who make these calls.
	want := append(calls, "iam:PassRole", "iam:TagInstanceProfile")
	slices.Sort(want)
	assert.Equal(t, want, allowed(t))
}

// The table of features names tests that exist.
func TestFeatureTableNamesRealTests(t *testing.T) {
	doc, err := os.ReadFile("FEATURES.md")
	require.NoError(t, err)
	have := map[string]bool{}
	for _, root := range []string{".", "../../examples", "../../instancetypes", "../lifecycle", "../availability"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, "_test.go") {
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w+)\(`).FindAllStringSubmatch(string(text), -1) {
					have[m[1]] = true
				}
			}
			return err
		}))
	}
	named := regexp.MustCompile(`\b(?:Test|Fuzz|Example)[A-Z]\w+`).FindAllString(string(doc), -1)
	require.Greater(t, len(named), 30)
	for _, n := range named {
		assert.True(t, have[n], n)
	}
	rows := 0
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 3 || strings.Contains(line, "---") || strings.TrimSpace(cells[0]) == "feature" {
			continue
		}
		rows++
		switch there := strings.TrimSpace(cells[1]); there {
		case "yes":
			assert.Regexp(t, `(Test|Fuzz|Example)[A-Z]`, cells[2], line)
		default:
			assert.Contains(t, []string{"no", "other"}, there, line)
			assert.NotEmpty(t, strings.TrimSpace(cells[2]), line)
		}
	}
	assert.Greater(t, rows, 40)
}
