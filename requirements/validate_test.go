package requirements_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/requirements"
)

func TestNewReportsEveryFaultWithItsPath(t *testing.T) {
	for _, c := range []struct {
		name   string
		key    string
		op     requirements.Operator
		values []string
		want   []string // the beginnings of the lines
	}{
		{"operator misspelt", "cpu", "Inn", []string{"a"}, []string{`operator: "Inn": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte (did you mean "In"?)`}},
		{"operator in lower case", "cpu", "doesnotexist", nil, []string{`operator: "doesnotexist": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte (did you mean "DoesNotExist"?)`}},
		{"operator of nowhere", "cpu", "Matches", nil, []string{`operator: "Matches": want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte`}},
		{"no operator", "cpu", "", nil, []string{`operator: "": want one of`}},
		{"In of nothing", "zone", requirements.OpIn, nil, []string{"values: operator In needs at least one value"}},
		{"NotIn of nothing", "zone", requirements.OpNotIn, nil, []string{"values: operator NotIn needs at least one value"}},
		{"Exists with a value", "zone", requirements.OpExists, []string{"a"}, []string{`values: operator Exists takes no values, got ["a"]`}},
		{"DoesNotExist with values", "zone", requirements.OpDoesNotExist, []string{"a", "b"}, []string{`values: operator DoesNotExist takes no values, got ["a" "b"]`}},
		{"Gt of two", "cpu", requirements.OpGt, []string{"1", "2"}, []string{"values: operator Gt needs exactly one integer, got 2 values"}},
		{"Lt of none", "cpu", requirements.OpLt, nil, []string{"values: operator Lt needs exactly one integer, got 0 values"}},
		{"Gte of a word", "cpu", requirements.OpGte, []string{"four"}, []string{`values[0]: "four": operator Gte needs an integer`}},
		{"Lte of a fraction", "cpu", requirements.OpLte, []string{"1.5"}, []string{`values[0]: "1.5": operator Lte needs an integer`}},
		{"Gt out of range", "cpu", requirements.OpGt, []string{"9223372036854775808"}, []string{`values[0]: "9223372036854775808": operator Gt needs an integer of at most 9223372036854775807`}},
		{"Lt below every range", "cpu", requirements.OpLt, []string{"-9223372036854775809"}, []string{`values[0]: "-9223372036854775809": operator Lt needs an integer that is not negative`}},
		{"Lt of a negative number", "cpu", requirements.OpLt, []string{"-1"}, []string{`values[0]: "-1": operator Lt needs an integer that is not negative`}},
		{"Gt with a sign", "cpu", requirements.OpGt, []string{"+4"}, []string{`values[0]: "+4": operator Gt needs an integer`}},
		{"no key", "", requirements.OpExists, nil, []string{`key: "": `}},
		{"a key with two slashes", "a/b/c", requirements.OpExists, nil, []string{`key: "a/b/c": `}},
		{"values and key", "-", requirements.OpIn, []string{"ok", "not ok", strings.Repeat("x", 64)}, []string{`key: "-": `, `values[1]: "not ok": `, `values[2]: "xxxx`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := requirements.New(c.key, c.op, c.values...)
			require.Error(t, err)
			require.True(t, r.Equal(requirements.Requirement{}))
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(c.want), err.Error())
			for i, want := range c.want {
				require.True(t, strings.HasPrefix(lines[i], want), "want %s, got %s", want, lines[i])
			}
			var invalid *requirements.InvalidError
			require.True(t, errors.As(err, &invalid))
			require.NotEmpty(t, invalid.Path)
		})
	}
}

func TestNewIsTheConstructorOfItsOperator(t *testing.T) {
	for _, c := range []struct {
		op     requirements.Operator
		values []string
		want   requirements.Requirement
	}{
		{requirements.OpIn, []string{"b", "a"}, requirements.In("k", "a", "b")},
		{requirements.OpNotIn, []string{"7"}, requirements.NotIn("k", "7")},
		{requirements.OpExists, nil, requirements.Exists("k")},
		{requirements.OpDoesNotExist, nil, requirements.DoesNotExist("k")},
		{requirements.OpGt, []string{"007"}, requirements.Gt("k", 7)},
		{requirements.OpLt, []string{"9223372036854775807"}, requirements.Lt("k", 9223372036854775807)},
		{requirements.OpGte, []string{"0"}, requirements.Gte("k", 0)},
		{requirements.OpLte, []string{"12"}, requirements.Lte("k", 12)},
	} {
		r, err := requirements.New("k", c.op, c.values...)
		require.NoError(t, err)
		require.True(t, r.Equal(c.want), "%s: want %s, got %s", c.op, c.want, r)
	}
}

func TestLabelsAreWhatIsCertain(t *testing.T) {
	s := requirements.MustParse("zone in (a,b), arch=arm64, cpu=8, gpu, !disk, team=x | !team")
	require.Equal(t, map[string]string{"arch": "arm64", "cpu": "8"}, s.Labels())
	require.Empty(t, requirements.Set{}.Labels())
	require.Empty(t, requirements.Impossible().Labels())
}

func TestInvalidErrorWithoutPath(t *testing.T) {
	require.EqualError(t, &requirements.InvalidError{Detail: "wrong"}, "wrong")
	require.EqualError(t, &requirements.InvalidError{Path: "a[1]", Detail: "wrong"}, "a[1]: wrong")
}

// A chain of expressions means what it is a chain of.
func TestExpressionsMeanTheSame(t *testing.T) {
	for _, p := range compounds(t, 100_000) {
		exprs, ok := p.real.Expressions()
		if !ok {
			require.Empty(t, exprs)
			continue
		}
		back := requirements.NotIn(key)
		for _, e := range exprs {
			require.Equal(t, key, e.Key)
			r := requirements.In(key, e.Values...)
			if e.Operator == requirements.OpNotIn {
				r = r.Complement()
			} else if len(e.Values) > 0 || e.Operator != requirements.OpIn {
				var err error
				r, err = requirements.New(key, e.Operator, e.Values...)
				require.NoError(t, err)
			}
			back = back.Intersect(r)
		}
		require.True(t, back.Equal(p.real), "%s is written as %v", p.real, exprs)
	}
}

// Every argument is compared with a copy made before, spare capacity of slices included, and then overwritten: no
// result may change.
func TestArgumentsStayTheCallers(t *testing.T) {
	values := append(make([]string, 0, 8), "c", "a", "2", "b", "a", "1")
	before := slices.Clone(values[:cap(values)])
	in, notIn := requirements.In(key, values...), requirements.NotIn(key, values...)
	fromNew, err := requirements.New(key, requirements.OpIn, values...)
	require.NoError(t, err)
	keys := requirements.KeysOf(values...)
	_, _ = requirements.Nearest("x", values)
	one := append(make([]string, 0, 4), "only")
	single := requirements.In(key, one...)
	require.Equal(t, before, values[:cap(values)])

	for i := range values {
		values[i] = "overwritten"
	}
	one[0] = "overwritten"
	require.Equal(t, "k in (1,2,a,b,c)", in.String())
	require.Equal(t, "k notin (1,2,a,b,c)", notIn.String())
	require.True(t, fromNew.Equal(in))
	require.Equal(t, "k in (only)", single.String())
	require.Equal(t, []string{"1", "2", "a", "b", "c"}, slices.Collect(keys.All()))

	rs := append(make([]requirements.Requirement, 0, 8), requirements.In("z", "1"), requirements.In("a", "1"), requirements.In("z", "1", "2"))
	set := requirements.MustOf(rs...)
	require.Equal(t, "z", rs[0].Key(), "not sorted in place")
	sets := []requirements.Set{set, set, requirements.MustParse("x")}
	alts := requirements.AnyOf(sets...)
	sets[0] = requirements.Impossible()
	require.Equal(t, "a in (1), z in (1) or x", alts.String())

	got, _ := in.Values()
	got[0] = "overwritten"
	require.Equal(t, "k in (1,2,a,b,c)", in.String(), "a result is the caller's own")
	for _, r := range []requirements.Requirement{in, requirements.NotIn(key, "w", "v")} {
		before := r.String()
		exprs, ok := r.Expressions()
		require.True(t, ok)
		exprs[0].Values[0] = "overwritten"
		require.Equal(t, before, r.String())
	}

	labels := map[string]string{"a": "1", "b": "2"}
	fromLabels := requirements.FromLabels(labels)
	labels["a"] = "3"
	require.Equal(t, "a in (1), b in (2)", fromLabels.String())
}

func TestBuilderCanBeUsedFurther(t *testing.T) {
	var b requirements.Builder
	first, err := b.Add(requirements.In("z", "1")).Add(requirements.In("a", "1", "2")).Set()
	require.NoError(t, err)
	second, err := b.Add(requirements.In("a", "2")).Set()
	require.NoError(t, err)
	require.Equal(t, "a in (1,2), z in (1)", first.String())
	require.Equal(t, "a in (2), z in (1)", second.String())
	third, err := b.AddSet(requirements.Impossible()).Set()
	require.Error(t, err)
	require.True(t, third.IsImpossible())
}
