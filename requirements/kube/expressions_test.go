package kube_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// Whatever can be written for the API means the same when it is read again.
func TestExpressionsReadBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	written, n := 0, 20_000
	for range n {
		set, _ := requirements.Of(random(rng, "a", 3), random(rng, "b", 3)) // impossible is fine
		exprs, ok := kube.Expressions(set)
		if !ok {
			require.Empty(t, exprs)
			continue
		}
		written++
		for _, e := range exprs {
			require.NotContains(t, []corev1.NodeSelectorOperator{"Gte", "Lte"}, e.Operator, "the API does not have it")
		}
		back, err := kube.FromExpressions(exprs)
		require.NoError(t, err)
		require.True(t, back.Equal(set), "%s is written as %v", set, exprs)
	}
	require.Greater(t, written, n/20, "one set in twenty can be written, or the test is hollow")
}

// random is a requirement of some operators, combined at random.
func random(rng *rand.Rand, key string, depth int) requirements.Requirement {
	if depth == 0 || rng.IntN(4) == 0 {
		n := rng.Int64N(6)
		return []requirements.Requirement{
			requirements.In(key, "x", strconv.FormatInt(n, 10)), requirements.NotIn(key, "y"), requirements.Exists(key),
			requirements.DoesNotExist(key), requirements.Gt(key, n), requirements.Lt(key, n), requirements.Lte(key, n),
		}[rng.IntN(7)]
	}
	a, b := random(rng, key, depth-1), random(rng, key, depth-1)
	switch rng.IntN(5) {
	case 0:
		return a.Union(b)
	case 1:
		return a.Complement()
	default:
		return a.Intersect(b)
	}
}

func TestExpressions(t *testing.T) {
	union := requirements.In("k", "5").Union(requirements.DoesNotExist("k"))
	for _, set := range []requirements.Set{
		requirements.MustOf(union), requirements.MustOf(union, requirements.In("x", "y")), requirements.Impossible(),
		requirements.MustOf(requirements.Gte("x", 0)), // the API does not accept Gt -1
	} {
		exprs, ok := kube.Expressions(set)
		require.False(t, ok, set)
		require.Empty(t, exprs)
	}
	exprs, ok := kube.Expressions(requirements.MustParse("zone in (a), cpu>4, cpu!=6, !gpu"))
	require.True(t, ok)
	require.Equal(t, []corev1.NodeSelectorRequirement{
		expression("cpu", requirements.OpGt, "4"), expression("cpu", requirements.OpNotIn, "6"),
		expression("gpu", requirements.OpDoesNotExist), expression("zone", requirements.OpIn, "a"),
	}, exprs)
	exprs, ok = kube.Expressions(requirements.Set{})
	require.True(t, ok)
	require.Empty(t, exprs)
}
