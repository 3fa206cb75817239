package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

func TestParseErrors(t *testing.T) {
	const ends = "the text ends before or within a value"
	for text, want := range map[string]string{
		"":                "line 1: " + ends,
		"\n\n  ":          "line 3: " + ends,
		"{":               "line 1: " + ends,
		"{\"a\"\n1}":      "line 2: invalid character '1' after object key",
		"{\"a\":1 \"b\"}": "line 1: invalid character '\"' after object key:value pair",
		"{\"a\":1\n,}":    "line 2: invalid character '}' looking for beginning of object key string",
		"[1,]":            "line 1: invalid character ']' looking for beginning of value",
		"[1":              "line 1: " + ends,
		"tru":             "line 1: " + ends,
		"01":              "line 1: invalid character '1' after the value",
		"1 2":             "line 1: invalid character '2' after the value",
		"1\n\n2":          "line 3: invalid character '2' after the value",
		"\"a":             "line 1: " + ends,
		"\n\"\\x\"":       "line 2: invalid character 'x' in string escape code",
		"\"a\nb\"":        "line 1: invalid character '\\n' in string literal",
		"[\n\"\xff\"]":    "line 2: a string contains bytes that are not UTF-8",
		strings.Repeat("[", 200) + strings.Repeat("]", 200): "line 1: nested deeper than 100 levels",
	} {
		_, err := strictjson.Parse([]byte(text))
		assert.EqualError(t, err, want, text)
		var bad *strictjson.ParseError
		assert.ErrorAs(t, err, &bad)
	}
}

func TestLines(t *testing.T) {
	n, err := strictjson.Parse([]byte("{\n \"a\": [1,\n  {\"b/c\": true}],\n \"d\": null}"))
	require.NoError(t, err)
	for path, want := range map[string]int{
		"": 1, "a": 2, "a[0]": 2, "a[1]": 3, `a[1]["b/c"]`: 3, "a[1].b": 3, "a[7]": 2, "d": 4, "d.e": 4, "x": 1, "a[x]": 2, "a[": 2, "[": 1,
	} {
		assert.Equal(t, want, n.At(path), path)
	}
	assert.Equal(t, `{"a":[1,{"b/c":true}],"d":null}`, string(n.Raw()))
	assert.Nil(t, n.Get("x").Get("y"))
}

func TestParsePrefixReadsAStream(t *testing.T) {
	data, line := []byte("{}\n[1]\n\n\"x\""), 10
	var kinds []strictjson.Kind
	var lines []int32
	for len(data) > 0 {
		n, rest, next, err := strictjson.ParsePrefix(data, line)
		require.NoError(t, err)
		kinds, lines = append(kinds, n.Kind), append(lines, n.Line)
		data, line = rest, next
	}
	assert.Equal(t, []strictjson.Kind{strictjson.Object, strictjson.Array, strictjson.String}, kinds)
	assert.Equal(t, []int32{10, 11, 13}, lines)
}

// inner and outer hold one field of each kind that the decoder knows.
type inner struct {
	Word string `json:"entry"`
}

type outer struct {
	metav1.TypeMeta `json:",inline"`
	Text            string              `json:"text"`
	Flag            *bool               `json:"flag"`
	Small           int8                `json:"small"`
	Share           float64             `json:"share"`
	List            []inner             `json:"list"`
	Words           []string            `json:"words"`
	Map             map[string]int      `json:"map"`
	Wait            metav1.Duration     `json:"wait"`
	When            metav1.Time         `json:"when"`
	Count           intstr.IntOrString  `json:"count"`
	Bytes           []byte              `json:"bytes"`
	Raw             json.RawMessage     `json:"raw"`
	Res             corev1.ResourceList `json:"res"`
	Pointer         *inner              `json:"pointer"`
	Hidden          string              `json:"-"`
	Status          inner               `json:"status"`
}

func decode(t *testing.T, d *strictjson.Decoder, text string) (outer, []strictjson.Problem) {
	t.Helper()
	n, err := strictjson.Parse([]byte(text))
	require.NoError(t, err)
	var o outer
	return o, d.Decode(&n, &o)
}

func TestDecodeProblems(t *testing.T) {
	for _, c := range []struct{ text, path, detail string }{
		{`{"text": 1}`, "text", `want a string, got a number 1 (put the text in quotes)`},
		{`{"text": true}`, "text", `want a string, got a boolean true (put the text in quotes)`},
		{`{"text": []}`, "text", "want a string, got a list"},
		{`{"flag": "true"}`, "flag", `want true or false, got the string "true"`},
		{`{"small": 200}`, "small", `"200" does not fit into 8 bits`},
		{`{"small": 1.5}`, "small", "want an integer, got the number 1.5"},
		{`{"small": "7"}`, "small", `want an integer, got the string "7" (write it without quotes: 7)`},
		{`{"small": {}}`, "small", "want an integer, got an object"},
		{`{"share": "half"}`, "share", `want a number, got the string "half"`},
		{`{"list": {"entry": "a"}}`, "list", `want a list, got an object (start each element with "- ")`},
		{`{"list": "a"}`, "list", `want a list, got the string "a"`},
		{`{"list": [{"entry": "a"}, {"entyr": "b"}]}`, "list[1].entyr", `unknown field "entyr": did you mean "entry"?`},
		{`{"list": [5]}`, "list[0]", "want an object, got a number 5"},
		{`{"words": ["a", null]}`, "words[1]", "the element is empty (null)"},
		{`{"map": {"a b": "x"}}`, `map["a b"]`, `want an integer, got the string "x"`},
		{`{"map": {"a": 1, "a": 2}}`, "map.a", "the key is given twice"},
		{`{"map": []}`, "map", "want an object, got a list"},
		{`{"text": "a", "text": "b"}`, "text", "the field is given twice, first on line 1"},
		{`{"Text": "a"}`, "Text", `unknown field "Text": did you mean "text"?`},
		{`{"Hidden": "a"}`, "Hidden", `unknown field "Hidden"`},
		{`{"entry": "a"}`, "entry", `unknown field "entry": did you mean "list[].entry"?`},
		{`{"zzz": "a"}`, "zzz", `unknown field "zzz": use text`},
		{`{"wait": 5}`, "wait", `want a duration (such as 30s, 5m, 1h30m), got a number "5"`},
		{`{"wait": "soon"}`, "wait", `"soon" is not a duration (such as 30s, 5m, 1h30m)`},
		{`{"when": "now"}`, "when", `"now" is not a time (such as 2006-01-02T15:04:05Z)`},
		{`{"when": 5}`, "when", `want a time (such as 2006-01-02T15:04:05Z), got a number "5"`},
		{`{"count": 1.5}`, "count", `want an integer or a string, got the number "1.5"`},
		{`{"count": true}`, "count", `want an integer or a string, got a boolean "true"`},
		{`{"bytes": "%"}`, "bytes", "the string is not base64"},
		{`{"bytes": 1}`, "bytes", `want a string in base64, got a number "1"`},
		{`{"res": {"cpu": "500 m"}}`, "res.cpu", `"500 m" is not a quantity (such as 500m, 2, 1.5Gi) (did you mean "500m"?)`},
		{`{"res": {"cpu": "1 core"}}`, "res.cpu", `"1 core" is not a quantity (such as 500m, 2, 1.5Gi) (did you mean "1"?)`},
		{`{"res": {"cpu": {}}}`, "res.cpu", "want a quantity (such as 500m, 2, 1.5Gi), got an object"},
		{`{"res": {"x/y": "1e1000"}}`, `res["x/y"]`, `"1e1000" is out of the range of quantities`},
		{`{"res": {"cpu": "` + strings.Repeat("1", 65) + `"}}`, "res.cpu", `"` + strings.Repeat("1", 65) + `" is too long for a quantity`},
		{`{"status": {"later": 1}}`, "status.later", `unknown field "later"`},
		{`5`, "", "want an object, got a number 5"},
	} {
		_, got := decode(t, &strictjson.Decoder{Hints: map[string]string{"zzz": "use text"}}, c.text)
		want := strictjson.Problem{Path: c.path, Line: 1, Detail: c.detail}
		if strings.HasPrefix(c.detail, "unknown field") {
			want.Unknown = strings.ReplaceAll(c.path, "[1]", "")
		}
		assert.Equal(t, []strictjson.Problem{want}, got, c.text)
	}
}

func TestDecodeValues(t *testing.T) {
	got, problems := decode(t, &strictjson.Decoder{}, `{
		"kind": "K", "text": "a", "flag": true, "small": -3, "share": 0.5, "list": [{"entry": "b"}], "words": [], "map": {"x": 1},
		"wait": "90s", "when": "2026-03-01T12:00:00Z", "count": "50%", "bytes": "aGk=", "raw": {"a": [1, null]},
		"res": {"cpu": 0.5, "memory": " 1Gi "}, "pointer": {"entry": "c"}, "status": null}`)
	require.Empty(t, problems)
	assert.Equal(t, "K", got.Kind)
	assert.True(t, *got.Flag)
	assert.Equal(t, int8(-3), got.Small)
	assert.InDelta(t, 0.5, got.Share, 0)
	assert.Equal(t, []inner{{"b"}}, got.List)
	assert.NotNil(t, got.Words)
	assert.Equal(t, map[string]int{"x": 1}, got.Map)
	assert.Equal(t, "1m30s", got.Wait.Duration.String())
	assert.Equal(t, 2026, got.When.Year())
	assert.Equal(t, intstr.FromString("50%"), got.Count)
	assert.Equal(t, "hi", string(got.Bytes))
	assert.Equal(t, `{"a":[1,null]}`, string(got.Raw))
	cpu := got.Res["cpu"]
	assert.Equal(t, int64(500), cpu.MilliValue())
	assert.Equal(t, "c", got.Pointer.Word)
}

// TestLive lets pass what clusters add, and only that.
func TestLive(t *testing.T) {
	n, err := strictjson.Parse([]byte(`{"metadata": {"managedFields": [{"new": 1}]}, "status": {"later": {"a": 1}, "phase": 5}, "spec": {"later": 1}}`))
	require.NoError(t, err)
	var p corev1.Pod
	d := strictjson.Decoder{Live: true}
	assert.Equal(t, []strictjson.Problem{
		{Path: "status.phase", Line: 1, Detail: `want a string, got a number 5 (put the text in quotes)`},
		{Path: "spec.later", Line: 1, Detail: `unknown field "later"`, Unknown: "spec.later"},
	}, d.Decode(&n, &p))
	assert.Nil(t, p.ManagedFields)

	// CSINode got a status in Kubernetes 1.37.
	for text, problems := range map[string]int{`{"status": {}}`: 0, `{"status": {"later": 1}}`: 0, `{"spec": {"status": {}}}`: 1, `{"statu": {}}`: 1} {
		n, err := strictjson.Parse([]byte(text))
		require.NoError(t, err)
		assert.Len(t, d.Decode(&n, &storagev1.CSINode{}), problems, text)
	}
}

func TestProblemsAreCut(t *testing.T) {
	_, got := decode(t, &strictjson.Decoder{}, `{"list": [`+strings.TrimSuffix(strings.Repeat(`{"x":1},`, 1000), ",")+`]}`)
	assert.Len(t, got, strictjson.MaxProblems)
}

func TestQuantityHints(t *testing.T) {
	for text, want := range map[string]string{
		"4GB": "4G", "4 Gi": "4Gi", "512mb": "512M", "1gib": "1Gi", "2cpus": "2", "10g": "10G", "5 ": "5", "64KB": "64k", "100millicores": "100m",
	} {
		_, err := strictjson.ParseQuantity(text)
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), `(did you mean "`+want+`"?)`)
	}
	for _, text := range []string{"", "two", "GB", "1.2.3", "Infinity", "0x10"} {
		_, err := strictjson.ParseQuantity(text)
		require.Error(t, err, text)
		assert.NotContains(t, err.Error(), "did you mean", text)
	}
}

// FuzzParse holds Parse against encoding/json: what one reads, the other reads, and to the same value.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e3,"x\u00e9\n",true,false,null]}`, "[]", " 1", `"\ud800"`, "{\"a\":1,\"a\":2}", "[[[[1]]]]", "\"\x7f\"", "nulll", "-", "1.e3"} {
		f.Add([]byte(seed)) // each kind of value, lone surrogates, duplicate keys, near misses
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := strictjson.Parse(data)
		var want any
		wantErr := json.Unmarshal(data, &want)
		if err != nil {
			if wantErr == nil { // stricter only in these
				require.Regexp(t, "nested deeper|not UTF-8", err.Error())
			}
			return
		}
		if wantErr != nil { // a number may be well formed and beyond float64
			require.ErrorContains(t, wantErr, "cannot unmarshal number")
			return
		}
		var got any
		require.NoError(t, json.Unmarshal(n.Raw(), &got))
		require.Equal(t, want, got)
		var p corev1.Pod
		(&strictjson.Decoder{}).Decode(&n, &p)
	})
}

// FuzzQuantity never takes long and never panics.
func FuzzQuantity(f *testing.F) {
	for _, seed := range []string{"1", "1.5Gi", "1e99", "1e-999999", "-0.5m", "1E1", "1Ei", "999999999999999999999999Ei", "00000e0000001", "e", "+.m"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := strictjson.ParseQuantity(text)
		if err == nil {
			again, err := strictjson.ParseQuantity(q.String())
			if err != nil { // canonical form moves zeros into the exponent: 1000e99 is 1e102
				require.ErrorContains(t, err, "out of the range")
				return
			}
			require.Equal(t, q.Sign(), again.Sign()) // beyond int64 package resource does not keep the value itself
		}
	})
}
