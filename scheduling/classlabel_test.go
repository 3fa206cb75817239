package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A node of a pool has a label that names its class. A type that has another value of this label can
// never be bought, whether or not a pod asks for the label.
func TestTypesContradictTheLabelOfTheirClass(t *testing.T) {
	const zone = "topology.kubernetes.io/zone in (z)"
	for name, c := range map[string]struct{ group, pool, typ, offering, err string }{
		"of the type":        {"example.com", "", "example.com/rack in (r1)", zone, `pool p: instance type blade requires example.com/rack in (r1), but the pool's nodes have the label example.com/rack=default, which names their node class; rename the label of the type, or use another kind or group for the node class`},
		"of an offering":     {"example.com", "", "", zone + ", example.com/rack in (r1)", "instance type blade requires example.com/rack in (r1), but"},
		"absent":             {"example.com", "", "!example.com/rack", zone, "instance type blade requires !example.com/rack, but"},
		"the same value":     {"example.com", "", "example.com/rack in (r1,default)", zone, ""},
		"another group":      {"example.org", "", "example.com/rack in (r1)", zone, ""},
		"the pool says both": {"example.com", "example.com/rack in (r1)", "example.com/rack in (r1)", zone, ""},
		"no collision":       {"example.com", "", "example.com/hall in (r1)", zone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			types := []instancetypes.InstanceType{{Name: "blade", Requirements: requirements.MustParse(c.typ), Offerings: []instancetypes.Offering{{
				Price: 1, Available: true, Requirements: requirements.MustParse(c.offering),
			}}}}
			pool := nodepool.NodePool{Name: "p", Requirements: requirements.MustParse(c.pool), NodeClass: nodepool.NodeClassRef{Group: c.group, Kind: "Rack", Name: "default"}}
			_, err := scheduling.Compile(scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: pool, Types: types}}}, nil)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}

// A pool may leave a label of its own open below the group of its node class. It is noted, because
// in the domain of a cloud the label is probably misspelt. Only Karpenter's domains refuse it.
func TestOpenLabelsBelowTheGroupOfTheClass(t *testing.T) {
	for ask, want := range map[string]struct{ err, note string }{
		"example.com/hall-class in (std,hi)":  {note: `pool p: no instance type has the label "example.com/hall-class", so it rules none out`},
		"karpenter.example.com/colour in (a)": {err: `pool p: no instance type has the label "karpenter.example.com/colour", and only instance types have labels of karpenter.example.com; use a label that a type has, or one of another domain`},
	} {
		types := []instancetypes.InstanceType{{Name: "a", Requirements: requirements.MustParse("example.com/licence in (x), karpenter.example.com/size in (1)")}}
		pool := nodepool.NodePool{Name: "p", Requirements: requirements.MustParse(ask), NodeClass: nodepool.NodeClassRef{Group: "example.com", Kind: "Rack", Name: "default"}}
		p, err := scheduling.Compile(scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: pool, Types: types}}}, nil)
		if want.err != "" {
			require.ErrorContains(t, err, want.err)
			continue
		}
		require.NoError(t, err)
		assert.Contains(t, p.Notes, want.note)
	}
}
