package requirements_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/requirements"
)

// hot is what the questions of inner loops are asked about: a pod's set, a node's, labels, and alternatives.
func hot() (pod, node requirements.Set, labels map[string]string, alts requirements.Alternatives) {
	pod = requirements.MustParse("kubernetes.io/arch in (amd64,arm64), cpu>4, cpu<=512, cpu notin (6), !gpu, topology.kubernetes.io/zone in (a,b,c), team!=x")
	node = requirements.MustParse("kubernetes.io/arch=arm64, cpu=8, topology.kubernetes.io/zone in (c,d), karpenter.sh/capacity-type in (spot,on-demand)")
	labels = map[string]string{"kubernetes.io/arch": "arm64", "cpu": "8", "topology.kubernetes.io/zone": "c", "team": "y"}
	alts = requirements.AnyOf(requirements.MustParse("zone=nowhere"), pod)
	return pod, node, labels, alts
}

func TestQuestionsAllocateNothing(t *testing.T) {
	pod, node, labels, alts := hot()
	cpu, zone, open := pod.Get("cpu"), pod.Get("topology.kubernetes.io/zone"), requirements.KeysOf("gpu", "team", "cpu")
	for name, ask := range map[string]func() bool{
		"Requirement.Contains an integer": func() bool { return cpu.Contains("8") && !cpu.Contains("6") },
		"Requirement.Contains a word":     func() bool { return zone.Contains("c") && !zone.Contains("d") },
		"Requirement.Overlaps":            func() bool { return cpu.Overlaps(cpu) && zone.Overlaps(zone) },
		"Set.Matches":                     func() bool { return pod.Matches(labels) },
		"Set.Compatible":                  func() bool { return pod.Compatible(node, open) },
		"Set.Overlaps":                    func() bool { return pod.Overlaps(node) },
		"Set.Get":                         func() bool { return !pod.Get("cpu").IsImpossible() },
		"Set.Has":                         func() bool { return pod.Has("cpu") && !pod.Has("disk") },
		"Alternatives.Matches":            func() bool { return alts.Matches(labels) },
		"Alternatives.Compatible":         func() bool { return alts.Compatible(node, open) },
		"Keys.Contains":                   func() bool { return open.Contains("gpu") && !open.Contains("disk") },
	} {
		require.True(t, ask(), name)
		require.Zero(t, testing.AllocsPerRun(100, func() { ask() }), name)
	}
}

func BenchmarkParse(b *testing.B) {
	const text = "cpu>=5, cpu<=512, karpenter.sh/capacity-type in (on-demand,spot), !gpu, topology.kubernetes.io/zone in (a,b,c)"
	b.ReportAllocs()
	for b.Loop() {
		s, err := requirements.Parse(text)
		if err != nil || s.Len() != 4 {
			b.Fatal(s, err)
		}
	}
}

func BenchmarkString(b *testing.B) {
	pod, _, _, _ := hot()
	want := pod.String()
	b.ReportAllocs()
	for b.Loop() {
		if pod.String() != want {
			b.Fatal(pod)
		}
	}
}

func BenchmarkIntersect(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		var left, right requirements.Builder
		for i := range n {
			key := fmt.Sprintf("key-%03d", i)
			left.Add(requirements.In(key, "a", "b", "c"))
			right.Add(requirements.NotIn(key, "a"))
		}
		l, err := left.Set()
		require.NoError(b, err)
		r, err := right.Set()
		require.NoError(b, err)
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if both, err := l.Intersect(r); err != nil || both.Len() != n {
					b.Fatal(both, err)
				}
			}
		})
	}
}

func BenchmarkCompatible(b *testing.B) {
	pod, node, _, _ := hot()
	open := requirements.KeysOf("gpu", "team")
	b.ReportAllocs()
	for b.Loop() {
		if !pod.Compatible(node, open) {
			b.Fatal("not compatible")
		}
	}
}

func BenchmarkMatches(b *testing.B) {
	pod, _, labels, _ := hot()
	b.ReportAllocs()
	for b.Loop() {
		if !pod.Matches(labels) {
			b.Fatal("no match")
		}
	}
}
