package requirements_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/requirements"
)

func TestKubernetesAliases(t *testing.T) {
	a := requirements.KubernetesAliases()
	for old, now := range map[string]string{
		"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
		"beta.kubernetes.io/os":                    "kubernetes.io/os",
		"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
		"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
		"karpenter.sh/provisioner-name":            "karpenter.sh/nodepool",
	} {
		require.Equal(t, now, a.Key(old))
		require.Equal(t, now, a.Key(now))
		require.Equal(t, old, requirements.Aliases{}.Key(old), "the zero value maps nothing")
	}
}

func TestAliasesOfSets(t *testing.T) {
	a := requirements.NewAliases(map[string]string{"old": "new", "older": "new"})
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"new=1, z=2", "new in (1), z in (2)"},
		{"old=1, a=2", "a in (2), new in (1)"},
		{"old in (1,2), new in (2,3)", "new in (2)"},
		{"old in (1,2), new in (2,3), older!=2", "impossible()"},
		{"old=1 | !old", "new in (1) | !new"},
		{"impossible()", "impossible()"},
	} {
		s, err := a.Set(requirements.MustParse(c.in))
		require.Equal(t, c.want, s.String(), c.in)
		require.Equal(t, c.want == "impossible()" && c.in != c.want, err != nil, c.in)
	}
	_, err := a.Set(requirements.MustParse("old=1, new=2"))
	var conflict *requirements.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, "new", conflict.Key)

	alts := a.Alternatives(requirements.AnyOf(requirements.MustParse("old=1, new=2"), requirements.MustParse("old=3"), requirements.MustParse("new=3")))
	require.Equal(t, "new in (3)", alts.String(), "a contradiction is left out, so is a repeat")
}

func TestAliasesOfLabels(t *testing.T) {
	m := map[string]string{"old": "new", "older": "new"}
	a := requirements.NewAliases(m)
	m["x"] = "y" // the aliases hold a copy
	in := map[string]string{"older": "2", "old": "1", "x": "3"}
	before := maps.Clone(in)
	require.Equal(t, map[string]string{"older": "2", "old": "1", "x": "3", "new": "1"}, a.Labels(in), "the first alias in the order of keys wins")
	require.Equal(t, before, in)
	require.Equal(t, map[string]string{"old": "1", "new": "5"}, a.Labels(map[string]string{"old": "1", "new": "5"}), "the key in use stays")
	require.Empty(t, a.Labels(nil))
}

func TestKeysAreASet(t *testing.T) {
	k := requirements.KeysOf("b", "a", "b")
	require.Equal(t, 2, k.Len())
	require.Equal(t, []string{"a", "b"}, slices.Collect(k.All()))
	require.True(t, k.Contains("a"))
	require.False(t, k.Contains("c"))
	require.False(t, requirements.Keys{}.Contains("a"))
	union := k.Union(requirements.KeysOf("c", "b"))
	require.Equal(t, []string{"a", "b", "c"}, slices.Collect(union.All()))
	require.Equal(t, 2, k.Len())
	require.Equal(t, 2, k.Union(requirements.Keys{}).Len())
	require.Equal(t, 2, requirements.Keys{}.Union(k).Len())
}

func TestNearest(t *testing.T) {
	zones := []string{"topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/arch"}
	for _, c := range []struct {
		word       string
		candidates []string
		want       string
	}{
		{"topology.kubernetes.io/zoen", zones, zones[0]},   // neighbours swapped
		{"topology.kubernetes.io/zones", zones, zones[0]},  // one letter too many
		{"topolgy.kubernetes.io/zone", zones, zones[0]},    // one missing
		{"Topology.Kubernetes.io/Zone", zones, zones[0]},   // case is free
		{"kubernetes.io/arhc", zones, zones[2]},            //
		{"failure-domain.beta/zone", zones, ""},            // too far
		{"zone", []string{"zone"}, ""},                     // nothing to correct
		{"", []string{"a"}, "a"},                           // one letter may always change
		{"", []string{"ab"}, ""},                           //
		{"ab", []string{"cd"}, ""},                         // both letters of two is too many
		{"abc", []string{"abd", "abe"}, "abd"},             // ties go to the first
		{"abcdef", []string{"abcdxy", "abcdex"}, "abcdex"}, // nearer beats earlier
		{"abcdefghijklmnopqrst", []string{"abcdefghijklmnopXXXX"}, ""},
		{"abcdefghijklmnopqrst", []string{"abcdefghijklmnopqXXX"}, "abcdefghijklmnopqXXX"},
		{"zoen", []string{"zone"}, "zone"}, // a swap is one change, not two
		{"x", nil, ""},
	} {
		got, ok := requirements.Nearest(c.word, c.candidates)
		require.Equal(t, c.want, got, c.word)
		require.Equal(t, c.want != "", ok, c.word)
	}
}

// A node to come has the keys that agents set beside those in use, with the same values; what is constrained already stays.
func TestAgentAliases(t *testing.T) {
	a := requirements.AgentAliases()
	s := a.Both(requirements.MustParse("topology.kubernetes.io/zone in (a,b), kubernetes.io/os=linux, beta.kubernetes.io/os=windows"))
	require.Equal(t, "topology.kubernetes.io/zone in (a,b)", s.Get("topology.kubernetes.io/zone").String())
	require.Equal(t, "topology.ebs.csi.aws.com/zone in (a,b)", s.Get("topology.ebs.csi.aws.com/zone").String())
	require.Equal(t, "failure-domain.beta.kubernetes.io/zone in (a,b)", s.Get("failure-domain.beta.kubernetes.io/zone").String())
	require.True(t, s.Get("beta.kubernetes.io/os").Contains("windows"))
	require.False(t, s.Has("karpenter.sh/provisioner-name"))
	require.False(t, s.Has("beta.kubernetes.io/arch"), "nothing is known of the architecture")
	few := a.Among(requirements.KeysOf("topology.gke.io/zone", "zone"))
	require.Equal(t, 1, few.Keys().Len())
	require.Equal(t, "x", few.And(requirements.NewAliases(map[string]string{"topology.gke.io/zone": "x"})).Key("topology.gke.io/zone"))
	require.Equal(t, "kubernetes.io/arch", requirements.Aliases{}.And(a).Key("beta.kubernetes.io/arch"))
	require.Equal(t, s.String(), requirements.Aliases{}.Both(s).String())
}
