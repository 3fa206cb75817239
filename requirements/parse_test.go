package requirements_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/requirements"
)

func TestParseReadsTheGrammar(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" \t\n", ""},
		{"impossible()", "impossible()"},
		{" impossible() ", "impossible()"},
		{"impossible", "impossible"}, // a key like any other
		{"a", "a"},
		{"!a", "!a"},
		{"! a", "!a"},
		{"a=b", "a in (b)"},
		{"a == b", "a in (b)"},
		{"a!=b", "a notin (b)"},
		{"a in (c, b,b)", "a in (b,c)"},
		{"a notin(b)", "a notin (b)"},
		{"a in ()", "impossible()"},
		{"a notin ()", ""},
		{"a>4", "a>=5"},
		{"a > 4, a < 9", "a>=5, a<=8"},
		{"a>=4,a<=1000", "a>=4, a<=1000"},
		{"a<=1000,a>=4,a!=6", "a>=4, a<=1000, a notin (6)"},
		{"a>=-5", "a>=0"},
		{"a<0", "impossible()"},
		{"a=5 | !a", "a in (5) | !a"},
		{"!a | a=5", "a in (5) | !a"},
		{"(a>4, a<6) | a=x", "a in (5,x)"},
		{"!(a=5 | !a)", "a, a notin (5)"},
		{"!((a))", "!a"},
		{"a, a!=x", "a, a notin (x)"},
		{"!(a>5)", "!(a>=6)"},
		{"b, a", "a, b"},
		{"a=1, a=2", "impossible()"},
		{`"a key"=" a value "`, `"a key" in (" a value ")`},
		{`a in ("")`, `a in ("")`},
		{`a in ("\x00")`, `a in ("\x00")`},
		{"in in (in)", "in in (in)"},
		{"notin", "notin"},
		{"topology.kubernetes.io/zone in (eu-west-1a)", "topology.kubernetes.io/zone in (eu-west-1a)"},
		{"a=007", "a in (007)"},
		{"a>007", "a>=8"}, // a bound is a number, however it is written; the label 007 is a word
		{strings.Repeat("(", 32) + "a" + strings.Repeat(")", 32), "a"},
		{"(" + strings.Repeat("(a),", 100) + "a)", "a"}, // many parentheses, but not nested
	} {
		s, err := requirements.Parse(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, s.String(), "of %q", c.text)
		back, err := requirements.Parse(s.String())
		require.NoError(t, err)
		require.True(t, back.Equal(s), "%q reads back as %q", s, back)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"zone in (", `missing ")"`},
		{"zone in", `missing "("`},
		{"zone in a", `missing "(" (at "a")`},
		{"zone inn (a)", `unknown operator "inn": want in, notin, =, !=, >, <, >= or <= (did you mean "in"?) (at "inn (a)")`},
		{"zone notinn (a)", `unknown operator "notinn": want in, notin, =, !=, >, <, >= or <= (did you mean "notin"?) (at "notinn (a)")`},
		{"zone In (a)", `unknown operator "In": want in, notin, =, !=, >, <, >= or <= (did you mean "in"?) (at "In (a)")`},
		{"zone equals a", `unknown operator "equals": want in, notin, =, !=, >, <, >= or <= (at "equals a")`},
		{"zone in (a", `missing ")"`},
		{"zone in (a b)", `missing ")" (at "b)")`},
		{"zone in (a,)", `want a value (at ")")`},
		{"a,", "want a key"},
		{",", `want a key (at ",")`},
		{"!", "want a key"},
		{"!(", "want a key"},
		{"(a", `missing ")"`},
		{"(a)b", `want "," or the end (at "b")`},
		{"a=b c", `want "," or the end (at "c")`},
		{"a|b", `"a" and "b": a union must be of one key`},
		{"(a,b)", `"a" and "b": parentheses must hold one key (at ")")`},
		{"a || b", `want a key (at "| b")`},
		{"a>x", `want an integer after ">", not "x" (at "x")`},
		{"a>=1.5", `want an integer after ">=", not "1.5" (at "1.5")`},
		{"a<9223372036854775808", `want an integer after "<", not "9223372036854775808" (at "9223372036854775808")`},
		{"a>", "want an integer"},
		{"a=", "want a value"},
		{"=b", `want a key (at "=b")`},
		{`""`, "a key must not be empty"},
		{`"a`, `a quoted string is malformed or not closed (at "\"a")`},
		{`"\x"`, `a quoted string is malformed or not closed (at "\"\\x\"")`},
		{"a;b", `want an operator (at ";b")`},
		{"a=\x00", `want a value (at "\x00")`},
		{"impossible(), a", `want an operator (at "(), a")`},
		{strings.Repeat("(", 33) + "a", `parentheses are nested too deeply (at "a")`},
	} {
		s, err := requirements.Parse(c.text)
		require.Error(t, err, c.text)
		require.True(t, s.IsAnything())
		var parse *requirements.ParseError
		require.True(t, errors.As(err, &parse))
		_, reason, found := strings.Cut(err.Error(), `"): `)
		require.True(t, found && strings.HasPrefix(err.Error(), `requirements.Parse("`), err.Error())
		require.Equal(t, c.want, reason, "of %q", c.text)
		require.Panics(t, func() { requirements.MustParse(c.text) })
	}
	require.EqualError(t, parseError("zone in ("), `requirements.Parse("zone in ("): missing ")"`)
}

func parseError(text string) error {
	_, err := requirements.Parse(text)
	return err
}

// Hostile nesting is refused; it must not exhaust the stack.
func TestParseRefusesDeepNesting(t *testing.T) {
	require.ErrorContains(t, parseError(strings.Repeat("(", 1_000_000)), "nested too deeply")
	require.ErrorContains(t, parseError(strings.Repeat("!(", 1_000_000)), "nested too deeply")
}

func TestSetsTravelAsText(t *testing.T) {
	in := map[string]requirements.Set{"nodes": requirements.MustParse("zone in (a), cpu>4"), "all": {}, "none": requirements.Impossible()}
	data, err := json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, `{"all":"","nodes":"cpu>=5, zone in (a)","none":"impossible()"}`, string(data))
	var out map[string]requirements.Set
	require.NoError(t, json.Unmarshal(data, &out))
	require.True(t, out["nodes"].Equal(in["nodes"]))
	require.True(t, out["none"].IsImpossible())

	kept := requirements.MustParse("a")
	require.Error(t, kept.UnmarshalText([]byte("a in")))
	require.Equal(t, "a", kept.String(), "a failed reading changes nothing")
}

// An empty value is a label value, but one that must be quoted.
func TestEmptyValuesAreQuoted(t *testing.T) {
	for _, text := range []string{"a=", "a==", "a!=", "a in (,b)"} {
		_, err := requirements.Parse(text)
		require.ErrorContains(t, err, "want a value", text)
	}
	set, err := requirements.Parse(`a="", b!="", c in ("",d)`)
	require.NoError(t, err)
	require.Equal(t, []string{""}, first(set.Get("a").Values()))
}

func first(values []string, _ bool) []string { return values }
